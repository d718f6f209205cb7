import test from 'ava';
import type { Listener } from '../../../agent/model/load-balancer.ts';
import { transactionText } from '../../../agent/nftables/command-text.ts';
import { elementChange } from '../../../agent/nftables/elements.ts';
import { kernelListener } from '../../../agent/nftables/kernel-listener.ts';
import { service, slice } from '../../support/values/build.ts';
import { listenerOf, translated } from '../../support/values/translated.ts';

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
  t.regex(text, /^add counter ip headgate_counts l_[0-9a-f]{16}; add element /);
  t.regex(text, /; add element ip headgate choices \{ 192\.0\.2\.10 \. udp \. 53 : goto flow_61 \}; /);
  t.is(text.match(/ : 10\.0\.0\.1 \. 5353/g)?.length, 61);
  const end = transactionText('headgate', [elementChange(one, undefined)]);
  t.regex(end, /; delete counter ip headgate_counts l_[0-9a-f]{16}$/);
  t.is(end.match(/192\.0\.2\.10 \. udp \. 53 \. \d+/g)?.length, 61);
});

test('An endpoint that comes moves its share of slots and nothing else', (t) => {
  const { removed, added, ...counters } = elementChange(
    kernel(['10.0.0.1', '10.0.0.2']),
    kernel(['10.0.0.1', '10.0.0.2', '10.0.0.3']),
  );
  t.deepEqual(counters, { removedCounters: [], addedCounters: [] });
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

test('Session affinity chooses by the address of the client alone', (t) => {
  t.is(kernel(['10.0.0.1'], { affinitySeconds: 600 }).by, 'client');
  t.is(kernel(['10.0.0.1'], { annotations: { 'headgate.io/algorithm': 'source-hash' } }).by, 'client');
  t.is(kernel(['10.0.0.1']).by, 'flow');
});

for (const [what, change] of [
  ['address', { addresses: ['192.0.2.10; flush ruleset'] }],
  ['address', { addresses: ['2001:DB8::1'] }],
  ['number', { port: 0 }],
  ['number', { port: 1.5 }],
  ['listener', { name: 'default:web:udp:53:v4 }' }],
  ['protocol', { protocol: 'ICMP' }],
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
