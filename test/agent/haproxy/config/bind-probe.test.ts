import test from 'ava';
import { whyUnbindable } from '../../../../agent/haproxy/config/bind-probe.ts';

test('whyUnbindable() names the sysctl of the address’s own family', (t) => {
  const why = (address: string) => whyUnbindable('EADDRNOTAVAIL', address, 80);
  t.regex(why('192.0.2.1') ?? '', /^192\.0\.2\.1 is no address .* net\.ipv4\.ip_nonlocal_bind is off$/);
  t.regex(why('2001:db8::1') ?? '', /^2001:db8::1 is no address .* net\.ipv6\.ip_nonlocal_bind is off$/);
});

test('whyUnbindable() has a reason for each code, except for those of a system that has nothing left', (t) => {
  t.is(whyUnbindable('EAFNOSUPPORT', '2001:db8::1', 80), 'this host has no IPv6');
  t.is(whyUnbindable('EPROTONOSUPPORT', '2001:db8::1', 80), 'this host has no IPv6');
  t.is(whyUnbindable('EACCES', '192.0.2.1', 80), 'ports below 1024 need root or CAP_NET_BIND_SERVICE');
  t.is(whyUnbindable('EACCES', '192.0.2.1', 8080), 'the security policy of this host forbids it');
  t.is(whyUnbindable('EPERM', '192.0.2.1', 80), 'this host refuses it (EPERM)');
  for (const code of ['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS', undefined])
    t.is(whyUnbindable(code, '192.0.2.1', 80), undefined);
});
