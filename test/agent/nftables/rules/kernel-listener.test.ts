import test from 'ava';
import type { Listener } from '../../../../agent/model/load-balancer.ts';
import { transactionText } from '../../../../agent/nftables/rules/command-text.ts';
import { elementChange } from '../../../../agent/nftables/rules/elements.ts';
import { kernelListener, kernelListenerWithout } from '../../../../agent/nftables/rules/kernel-listener.ts';
import { downIn, rulesText } from '../../../../agent/nftables/rules/rules-file.ts';
import { endpoint, service, slice } from '../../../support/values/build.ts';
import { listenerOf, translated } from '../../../support/values/translated.ts';

const PORT = { port: 53, protocol: 'UDP' as const };
const NAME = 'default:web:udp:53:v4';
const [ONE, TWO, THREE] = ['10.0.0.1:53', '10.0.0.2:53', '10.0.0.3:53'] as const;

/** Three members, of which the last one drains. */
function dns(whenAllDown: 'serve' | 'reject' = 'serve'): Listener {
  const annotations = { 'headgate.io/health-monitor': 'udp', 'headgate.io/when-all-down': whenAllDown };
  const endpoints = [endpoint('10.0.0.1'), endpoint('10.0.0.2'), endpoint('10.0.0.3', { terminating: true })];
  return listenerOf(
    translated([service({ ports: [PORT], annotations }), slice({ endpoints, ports: [PORT] })]),
    NAME,
  );
}

const down = (...names: readonly string[]) => new Map(names.map((name) => [name, 'a cause']));

/** The members that have slots when these are down. */
const slots = test.macro(
  (t, names: readonly string[], expected: readonly string[], all: 'serve' | 'reject' = 'serve') => {
    const listener = kernelListenerWithout(dns(all), down(...names));
    t.deepEqual([...new Set(listener.slots.map(({ name }) => name))].sort(), expected);
    t.deepEqual(
      listener.members.map(({ name }) => name),
      [ONE, TWO, THREE],
    );
  },
);

test('With all members up the ready ones have slots', slots, [], [ONE, TWO]);
test('A member that is down has no slots', slots, [TWO], [ONE]);
test('If all ready members are down, all of them have slots', slots, [ONE, TWO], [ONE, TWO]);
test('If all ready members are down, none has slots if the Service says so', slots, [ONE, TWO], [], 'reject');
test('A draining member that is down changes nothing', slots, [THREE], [ONE, TWO]);

test('A member that goes down moves its own slots alone', (t) => {
  const listener = dns();
  const { removed, added } = elementChange(
    kernelListener(listener),
    kernelListenerWithout(listener, down(TWO)),
  );
  const before = kernelListener(listener).slots.filter(({ name }) => name === TWO).length;
  t.is(removed.length, added.length);
  t.true(removed.length >= before && removed.length < 1.3 * before, `${removed.length} for ${before}`);
});

test('While all are down, one more that is down is no transaction', (t) => {
  const listener = dns();
  const change = elementChange(
    kernelListenerWithout(listener, down(ONE, TWO)),
    kernelListenerWithout(listener, down(ONE, TWO, THREE)),
  );
  t.is(transactionText('headgate', [change]), '');
});

test('The same listener and the same members give the same value', (t) => {
  const listener = dns();
  const two = down(TWO);
  t.is(kernelListenerWithout(listener, two), kernelListenerWithout(listener, two));
  t.is(kernelListenerWithout(listener, new Map()), kernelListener(listener));
});

test('The file of the rules has the members that are down', (t) => {
  const text = [
    ...rulesText({
      table: 'headgate',
      generation: '0123456789abcdef',
      listeners: [kernelListenerWithout(dns(), down(TWO, ONE))],
      sources: { groups: [], groupOf: () => 0 },
      counts: new Map(),
      countsTraffic: true,
      knowsSockets: true,
    }),
  ].join('');
  t.deepEqual([...downIn(text)], [[NAME, [ONE, TWO]]]);
  t.is(downIn('').size, 0);
});

test('Clients with the same bits in front share a member, by chains that the rules have for these bits', (t) => {
  const { pool, ...rest } = dns();
  const listener = kernelListener({ ...rest, pool: { ...pool, persistence: 60, persistencePrefix: 20 } });
  t.like(listener, { by: 'client', prefix: 20, affinitySeconds: 0 });
  const text = [
    ...rulesText({
      table: 'headgate',
      generation: '0123456789abcdef',
      listeners: [listener],
      sources: { groups: [], groupOf: () => 0 },
      counts: new Map(),
      countsTraffic: true,
      knowsSockets: true,
    }),
  ].join('');
  t.regex(text, /chain client_61_20 \{\n +meta mark set jhash ip saddr & 255\.255\.240\.0 mod 61 /);
  t.regex(text, /: goto client_61_20 /);
  t.notRegex(text, /jhash ip6 saddr & /);
});
