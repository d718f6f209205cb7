import test from 'ava';
import type { Listener } from '../../../../agent/model/load-balancer.ts';
import { additions, comment, transactionText } from '../../../../agent/nftables/rules/command-text.ts';
import { elementChange } from '../../../../agent/nftables/rules/elements.ts';
import { kernelListener } from '../../../../agent/nftables/rules/kernel-listener.ts';
import { service, slice } from '../../../support/values/build.ts';
import { listenerOf, translated } from '../../../support/values/translated.ts';

const PORT = { name: 'dns', port: 53, protocol: 'UDP' as const };

function dns(endpoints: readonly string[], spec: NonNullable<Parameters<typeof service>[0]> = {}): Listener {
  const objects = [
    service({ ports: [PORT], ...spec }),
    slice({ endpoints, ports: [{ ...PORT, port: 5353 }] }),
  ];
  return listenerOf(translated(objects), 'default:web:udp:53:v4');
}

const kernel = (endpoints: readonly string[], spec = {}) => kernelListener(dns(endpoints, spec));

test('A new listener is one transaction, and its end removes the same elements', (t) => {
  const one = kernel(['10.0.0.1']);
  const text = transactionText('headgate', [elementChange(undefined, one)]);
  t.regex(text, /^add element ip headgate_counts flows \{ 192\.0\.2\.10 \. udp \. 53 \}; /);
  t.regex(text, /; add element ip headgate choices \{ 192\.0\.2\.10 \. udp \. 53 : goto flow_61 \}; /);
  t.is(text.match(/ : 10\.0\.0\.1 \. 5353/g)?.length, 61);
  const end = transactionText('headgate', [elementChange(one, undefined)]);
  t.is(
    end,
    text
      .replaceAll('add element', 'delete element')
      .replaceAll(/ : [^,}]+(?=[,}])/g, ' ')
      .replaceAll(' ,', ','),
  );
  t.is(end.match(/192\.0\.2\.10 \. udp \. 53 \. \d+/g)?.length, 61);
});

test('An endpoint that comes moves its share of slots and nothing else', (t) => {
  const { removed, added } = elementChange(
    kernel(['10.0.0.1', '10.0.0.2']),
    kernel(['10.0.0.1', '10.0.0.2', '10.0.0.3']),
  );
  t.true(removed.every(({ map }) => map === 'slots') && added.every(({ map }) => map === 'slots'));
  t.is(removed.length, added.length);
  t.true(added.length >= 20 && added.length <= 30, `${added.length}`);
});

test('An unchanged listener needs no transaction', (t) => {
  const text = transactionText('headgate', [elementChange(kernel(['10.0.0.1']), kernel(['10.0.0.1']))]);
  t.is(text, '');
});

test('A listener without ready members is refused instead of forwarded', (t) => {
  const text = transactionText('headgate', [elementChange(kernel(['10.0.0.1']), kernel([]))]);
  t.regex(
    text,
    /^delete element ip headgate choices \{ 192\.0\.2\.10 \. udp \. 53 \}; delete element ip headgate slots /,
  );
  t.regex(text, /; add element ip headgate refused \{ 192\.0\.2\.10 \. udp \. 53 \}$/);
});

test('Only elements that count begin with what was counted until now', (t) => {
  const { added } = elementChange(undefined, kernel([]));
  const counts = new Map([['192.0.2.10 . udp . 53', { packets: 2, bytes: 60 }]]);
  const lines = [...additions('headgate', added, counts)];
  t.true(lines.includes('add element ip headgate refused { 192.0.2.10 . udp . 53 }\n'));
  t.true(
    lines.includes(
      'add element ip headgate_counts flows { 192.0.2.10 . udp . 53 counter packets 2 bytes 60 }\n',
    ),
  );
});

test('Source ranges, and none at all, guard a listener', (t) => {
  const open = kernel(['10.0.0.1']);
  const ranges = { loadBalancerSourceRanges: ['10.0.0.0/8', '192.0.2.0/24'] };
  const some = transactionText('headgate', [elementChange(open, kernel(['10.0.0.1'], ranges))]);
  t.is(
    some,
    'add element ip headgate guarded { 192.0.2.10 . udp . 53 }; ' +
      'add element ip headgate allowed { 192.0.2.10 . udp . 53 . 10.0.0.0/8, 192.0.2.10 . udp . 53 . 192.0.2.0/24 }',
  );
  const v6 = { loadBalancerSourceRanges: ['2001:db8::/32'] };
  t.is(
    transactionText('headgate', [elementChange(open, kernel(['10.0.0.1'], v6))]),
    'add element ip headgate guarded { 192.0.2.10 . udp . 53 }',
  );
});

test('Source ranges inside others are left out, because nftables refuses ranges that overlap', (t) => {
  const loadBalancerSourceRanges = [
    '10.1.2.0/24',
    '10.0.0.0/8',
    '10.1.0.0/16',
    '192.0.2.0/25',
    '192.0.2.128/25',
  ];
  const { clients } = kernel(['10.0.0.1'], { loadBalancerSourceRanges });
  t.deepEqual(clients, ['10.0.0.0/8', '192.0.2.0/25', '192.0.2.128/25']);
});

test('Session affinity remembers clients of IPv4, and chooses by their address alone in IPv6', (t) => {
  t.like(kernel(['10.0.0.1'], { affinitySeconds: 600 }), { by: 'affinity', affinitySeconds: 600 });
  const listener = dns(['10.0.0.1'], { affinitySeconds: 600 });
  t.like(kernelListener({ ...listener, family: 'v6' }), { by: 'client', affinitySeconds: 0 });
  t.is(kernel(['10.0.0.1'], { annotations: { 'headgate.io/algorithm': 'source-hash' } }).by, 'client');
  t.is(kernel(['10.0.0.1']).by, 'flow');
});

test('A change of the source address is one element, and moves no slot', (t) => {
  const client = kernel(['10.0.0.1'], { annotations: { 'headgate.io/source-address': 'client' } });
  const text = transactionText('headgate', [elementChange(kernel(['10.0.0.1']), client)]);
  t.is(text, 'add element ip headgate kept { 192.0.2.10 . udp . 53 }');
});

test('With session affinity a member that goes takes its share of slots and its number along', (t) => {
  const spec = { affinitySeconds: 600 };
  const two = kernel(['10.0.0.1', '10.0.0.2'], spec);
  const text = transactionText('headgate', [elementChange(undefined, two)]);
  t.regex(text, /add element ip headgate choices \{ 192\.0\.2\.10 \. udp \. 53 : goto affinity \}/);
  t.regex(text, /add element ip headgate choosers \{ 192\.0\.2\.10 \. udp \. 53 : goto affinity_61 \}/);
  t.regex(text, /add element ip headgate_affinity timeouts \{ 192\.0\.2\.10 \. udp \. 53 : goto for_600 \}/);
  const { removed, added } = elementChange(two, kernel(['10.0.0.2'], spec));
  const members = removed.flatMap((element) => (element.map === 'members' ? [element.member.address] : []));
  t.deepEqual(members, ['10.0.0.1']);
  t.true(added.every(({ map }) => map === 'shares'));
  // Its number leads to itself, too.
  t.is(removed.length - members.length - 1, added.length);
  t.true(added.length === 30 || added.length === 31);
});

test('Another timeout changes one element, and the end of session affinity all slots', (t) => {
  const change = elementChange(
    kernel(['10.0.0.1'], { affinitySeconds: 600 }),
    kernel(['10.0.0.1'], { affinitySeconds: 900 }),
  );
  const text = transactionText('headgate', [change]);
  const place = '192.0.2.10 . udp . 53';
  t.is(
    text,
    `delete element ip headgate_affinity timeouts { ${place} }; add element ip headgate_affinity timeouts { ${place} : goto for_900 }`,
  );
  const { removed, added } = elementChange(
    kernel(['10.0.0.1'], { affinitySeconds: 600 }),
    kernel(['10.0.0.1']),
  );
  const maps = (elements: typeof added) => [...new Set(elements.map(({ map }) => map))].sort();
  t.deepEqual(maps(removed), ['choices', 'choosers', 'members', 'shares', 'timeouts']);
  t.deepEqual(maps(added), ['choices', 'slots']);
});

for (const [what, change] of [
  ['timeout', { by: 'affinity', affinitySeconds: 7 }],
  ['address', { addresses: ['192.0.2.10; flush ruleset'] }],
  ['address', { addresses: ['2001:DB8::1'] }],
  ['number', { port: 0 }],
  ['number', { port: 1.5 }],
  ['protocol', { protocol: 'ICMP' }],
  ['choice', { by: 'flow }' }],
  ['source range', { clients: ['0.0.0.0/0 }'] }],
  ['source range', { clients: ['10.0.0.1/8'] }],
] as const) {
  test(`transactionText() refuses a wrong ${what}: ${JSON.stringify(change)}`, (t) => {
    const wrong = { ...kernel(['10.0.0.1']), ...change } as ReturnType<typeof kernel>;
    const error = t.throws(() => transactionText('headgate', [elementChange(undefined, wrong)]), {
      code: 'RUNTIME_TOKEN',
    });
    t.true(error?.message.startsWith(`Cannot be a ${what} for nft: `), error?.message);
  });
}

test("comment() refuses a name that is not a listener's", (t) => {
  t.is(comment('default:web:udp:53:v4'), '# default:web:udp:53:v4\n');
  const error = t.throws(() => comment('default:web:udp:53:v4\nflush ruleset'), { code: 'RUNTIME_TOKEN' });
  t.true(error?.message.startsWith('Cannot be a listener for nft: '), error?.message);
});
