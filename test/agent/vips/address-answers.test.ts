import test from 'ava';
import {
  answersIn,
  parseNeighbour,
  parseOwnLink,
  renderAnswers,
} from '../../../agent/vips/address-answers.ts';

test('renderAnswers() notes what each family has of Ethernet addresses, on one interface', (t) => {
  const text = renderAnswers('headgate_answers_51', 'eth0');
  t.regex(text, /^table arp headgate_answers_51\ndelete table arp headgate_answers_51\n/);
  t.true(
    text.includes('iifname "eth0" arp saddr ip @watched update @answers { arp saddr ip . arp saddr ether }'),
  );
  t.true(
    text.includes(
      'iifname "eth0" icmpv6 type nd-neighbor-advert ip6 saddr @watched update @answers { ip6 saddr . ether saddr }',
    ),
  );
});

test('answersIn() reads the elements of both sets, and nothing of their heads', (t) => {
  const text = `table arp headgate_answers_51 {
	set answers {
		type ipv4_addr . ether_addr
		size 16384
		flags dynamic,timeout
		timeout 2m30s
		elements = { 10.77.0.100 . 76:0e:9a:8d:36:4e expires 14m59s480ms,
			     10.77.0.1 . 7a:3e:ab:79:79:cb expires 14m59s484ms }
	}
}
table ip6 headgate_answers_51 {
	set answers {
		elements = { fd77::100 . 76:0e:9a:8d:36:4e expires 14m59s488ms }
	}
}
`;
  t.deepEqual(answersIn(text), [
    { address: '10.77.0.100', ether: '76:0e:9a:8d:36:4e' },
    { address: '10.77.0.1', ether: '7a:3e:ab:79:79:cb' },
    { address: 'fd77::100', ether: '76:0e:9a:8d:36:4e' },
  ]);
});

test('parseOwnLink() has the networks of the one interface, and the Ethernet addresses of all', (t) => {
  const json = JSON.stringify([
    { ifname: 'lo', address: '00:00:00:00:00:00', addr_info: [{ local: '127.0.0.1', prefixlen: 8 }] },
    {
      ifname: 'eth0',
      address: '02:00:00:00:00:0A',
      addr_info: [
        { local: '192.0.2.11', prefixlen: 24 },
        { local: '192.0.2.10', prefixlen: 32 },
        { local: '2001:db8::11', prefixlen: 64 },
      ],
    },
  ]);
  const { ethers, networks } = parseOwnLink(json, 'eth0');
  t.deepEqual([...ethers], ['00:00:00:00:00:00', '02:00:00:00:00:0a']);
  t.deepEqual(networks, ['192.0.2.0/24', '2001:db8::/64']);
});

test('parseNeighbour() has no Ethernet address of a neighbour that does not answer', (t) => {
  t.is(
    parseNeighbour('[{"dst":"192.0.2.12","lladdr":"02:00:00:00:00:0B","state":["REACHABLE"]}]'),
    '02:00:00:00:00:0b',
  );
  t.is(parseNeighbour('[{"dst":"192.0.2.12","state":["FAILED"]}]'), '');
  t.is(parseNeighbour('[ ]\n'), '');
  t.is(parseNeighbour(''), '');
});
