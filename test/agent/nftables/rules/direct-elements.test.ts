import test from 'ava';
import fc from 'fast-check';
import type { Listener } from '../../../../agent/model/load-balancer.ts';
import { additions, transactionText } from '../../../../agent/nftables/rules/command-text.ts';
import { NO_COUNTS, newCounts } from '../../../../agent/nftables/rules/counts.ts';
import { elementChange } from '../../../../agent/nftables/rules/elements.ts';
import { kernelListener, kernelListenerWithout } from '../../../../agent/nftables/rules/kernel-listener.ts';
import { endpoint, service, slice } from '../../../support/values/build.ts';
import { listenerOf, translated } from '../../../support/values/translated.ts';

const annotations = { 'headgate.io/engine': 'kernel', 'headgate.io/members': 'direct' };
const NAMES = { TCP: 'default:web:tcp:53:v4', UDP: 'default:web:udp:53:v4' } as const;

type Endpoints = NonNullable<NonNullable<Parameters<typeof slice>[0]>['endpoints']>;

function direct(endpoints: Endpoints, spec = {}, protocol: 'TCP' | 'UDP' = 'TCP'): Listener {
  const ports = [{ name: 'dns', port: 53, protocol }];
  return listenerOf(
    translated([service({ ports, annotations, ...spec }), slice({ endpoints, ports })]),
    NAMES[protocol],
  );
}

/** Elements of a map, as nft adds them. */
function added(listener: Listener, map: string, down: readonly string[] = []): readonly string[] {
  const value = kernelListenerWithout(listener, new Map(down.map((each) => [each, 'a cause'])));
  const text = [...additions('headgate', elementChange(undefined, value).added, new Map())].join('');
  const [, elements = ''] = new RegExp(`^add element ip headgate${map} \\{ (.*) \\}$`, 'm').exec(text) ?? [];
  return elements === '' ? [] : elements.split(', ');
}

test('A listener of direct members is in no map of the others, and its end removes the same elements', (t) => {
  const one = kernelListener(direct(['10.0.0.1']));
  const text = transactionText('headgate', [elementChange(undefined, one)]);
  t.notRegex(text, /headgate (choices|slots|places|endpoints|kept) /);
  t.regex(text, /headgate_direct choices \{ 192\.0\.2\.10 \. tcp \. 53 : goto flow_61 \}/);
  // 53 is 0x35, which the kernel reads as 0x3500.
  t.regex(text, /headgate_direct errors \{ 192\.0\.2\.10 \. 406784 : goto error_flow_61 \}/);
  const end = transactionText('headgate', [elementChange(one, undefined)]);
  const keys = text.replaceAll('add element', 'delete element').replaceAll(/ : [^,}]+(?=[,}])/g, ' ');
  t.is(end, keys.replaceAll(' ,', ','));
});

test('A draining member keeps its flows and gets no new ones; one of UDP that is down keeps none', (t) => {
  const endpoints = [endpoint('10.0.0.1'), endpoint('10.0.0.2'), endpoint('10.0.0.3', { terminating: true })];
  const tcp = direct(endpoints);
  t.is(added(tcp, '_direct members').length, 3);
  t.is(added(tcp, '_direct ready').length, 2);
  t.is(added(tcp, '_direct members', ['10.0.0.2:53']).length, 3);
  t.is(added(tcp, '_direct ready', ['10.0.0.2:53']).length, 1);
  const udp = direct(endpoints, {}, 'UDP');
  t.is(added(udp, '_direct members', ['10.0.0.2:53']).length, 2);
});

test('A member that must not be reached has neither slots nor flows, also if all are', (t) => {
  const listener = direct(['10.0.0.1', '10.0.0.2']);
  const why = 'the router 10.0.0.254 is on the way to it';
  const [one, all] = [['10.0.0.1:53'], ['10.0.0.1:53', '10.0.0.2:53']].map((names) =>
    kernelListenerWithout(listener, new Map(), new Map(names.map((each) => [each, why]))),
  );
  t.deepEqual([...new Set(one?.slots.map(({ name }) => name))], ['10.0.0.2:53']);
  t.deepEqual([all?.slots, all?.members], [[], []]);
  const text = transactionText('headgate', [elementChange(undefined, all)]);
  t.regex(text, /headgate refused \{ 192\.0\.2\.10 \. tcp \. 53 \}/);
  t.notRegex(text, /_direct/);
});

test('Source ranges stand in the table of direct members', (t) => {
  const listener = direct(['10.0.0.1'], { loadBalancerSourceRanges: ['10.0.0.0/8'] });
  t.deepEqual(added(listener, '_direct choices'), ['192.0.2.10 . tcp . 53 : goto guarded_flow_61']);
  t.deepEqual(added(listener, '_direct allowed'), ['192.0.2.10 . tcp . 53 . 10.0.0.0/8']);
});

test('All hosts have the same slots by the same objects, whatever came before, in which order', (t) => {
  const all = Array.from({ length: 9 }, (_, at) => `10.0.0.${at + 1}`);
  fc.assert(
    fc.property(fc.shuffledSubarray(all, { minLength: 1 }), fc.boolean(), (some, isReversed) => {
      const slots = (endpoints: readonly string[]) =>
        kernelListener(direct(endpoints)).slots.map(({ name }) => name);
      slots(all);
      t.deepEqual(slots(some), slots(isReversed ? some.toReversed() : some.toSorted()));
    }),
    { numRuns: 30 },
  );
});

test('Packets to direct members are counted as received, and no others', (t) => {
  const listener = kernelListener(direct(['10.0.0.1']));
  const text = `elements = { 192.0.2.10 . 6 . 53 counter packets 2 bytes 120 }
    elements = { 6 . 192.0.2.10 . 53 counter packets 9 bytes 900, 6 . fd00::a . 53 counter packets 7 bytes 700 }
    elements = { 192.0.2.10 . 6 . 80 . 0 counter packets 5 bytes 500 }`;
  const { flows, received, sent } = newCounts([listener], NO_COUNTS, text).listeners.get(NAMES.TCP) ?? {};
  t.deepEqual([flows?.packets, received?.packets, received?.bytes, sent?.packets], [2, 9, 900, 0]);
});
