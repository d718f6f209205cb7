import test from 'ava';
import { agesIn, renderAdverts } from '../../../../../agent/vips/keepalived/process/advert-ages.ts';

test('agesIn() reads the latest age of each virtual router', (t) => {
  const text = `table inet headgate_adverts_51 {
	set heard_51 {
		type ipv4_addr
		size 64
		flags dynamic,timeout
		timeout 10s
		elements = { 192.0.2.12 expires 9s976ms, 192.0.2.13 expires 9s988ms,
			     192.0.2.14 expires 9s }
	}

	set heard_52 {
		type ipv4_addr
		size 64
		flags dynamic,timeout
		timeout 10s
		elements = { 192.0.2.12 expires 996ms }
	}

	set heard_53 {
		type ipv4_addr
		size 64
		flags dynamic,timeout
		timeout 10s
	}

	set heard_54 {
		type ipv4_addr
		size 64
		flags dynamic,timeout
		timeout 10s
		elements = { 192.0.2.12 timeout 10s expires 10s }
	}

	chain in {
		type filter hook input priority 300; policy accept;
		meta l4proto vrrp @th,8,8 0x33 ip saddr { 192.0.2.12, 192.0.2.13 } update @heard_51 { ip saddr }
	}
}`;
  t.deepEqual(
    agesIn(text),
    new Map([
      [51, 12],
      [52, 9_004],
      [54, 0],
    ]),
  );
});

test('agesIn() finds nothing where nothing was heard', (t) => {
  t.is(agesIn('').size, 0);
});

test('renderAdverts() asks for the advertisements of the peers alone, in their family', (t) => {
  const v4 = renderAdverts('headgate_adverts_51', [51, 52], ['192.0.2.12', '192.0.2.13']);
  t.true(v4.includes('set heard_51 { type ipv4_addr; flags dynamic,timeout; timeout 10s; size 64; }'));
  t.true(
    v4.includes(
      'meta l4proto 112 @th,8,8 52 ip saddr { 192.0.2.12, 192.0.2.13 } update @heard_52 { ip saddr }',
    ),
  );
  const v6 = renderAdverts('headgate_adverts_51', [51], ['fd00::12']);
  t.true(v6.includes('@th,8,8 51 ip6 saddr { fd00::12 } update @heard_51 { ip6 saddr }'));
  t.true(v6.includes('set heard_51 { type ipv6_addr;'));
});
