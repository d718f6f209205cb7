import test from 'ava';
import { whyUnbindable } from '../../../../agent/haproxy/config/bind-probe.ts';

test('whyUnbindable() names the sysctl of the address’s own family', (t) => {
  const why = (address: string) => whyUnbindable('EADDRNOTAVAIL', address, 80);
  t.regex(why('192.0.2.1') ?? '', /^192\.0\.2\.1 is no address .* net\.ipv4\.ip_nonlocal_bind is off$/);
  t.regex(why('2001:db8::1') ?? '', /^2001:db8::1 is no address .* net\.ipv6\.ip_nonlocal_bind is off$/);
});
