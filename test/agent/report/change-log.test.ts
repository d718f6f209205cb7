import { readFileSync } from 'node:fs';
import test from 'ava';
import { createLog, type LogLevel } from '../../../agent/host/log.ts';
import { Cluster } from '../../../agent/kubernetes/cluster.ts';
import type { KubernetesObject } from '../../../agent/kubernetes/objects.ts';
import { ChangeLog, MESSAGES } from '../../../agent/report/change-log.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';
import { endpoint, service, slice } from '../../support/values/build.ts';
import { FollowedState } from '../../support/values/translated.ts';

/** A change log that follows objects. */
function start(level: LogLevel = 'info') {
  const clock = new FakeClock();
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => lines.push(JSON.parse(line)) };
  const state = new FollowedState(new Cluster());
  const log = createLog({ level, format: 'json', destination });
  const changeLog = new ChangeLog({ desired: state.desired, log, clock });
  const apply = (...upserted: KubernetesObject[]) =>
    changeLog.changed(state.apply({ upserted, removed: [] }));
  const remove = (key: string) =>
    changeLog.changed(state.apply({ upserted: [], removed: [{ kind: 'Service', key }] }));
  /** The lines since the last call, without time and level. */
  const logged = () => lines.splice(0).map(({ time: _, level: __, ...line }) => line);
  return { clock, state, changeLog, apply, remove, logged };
}

const web = { namespace: 'default', service: 'web' };

test('A load balancer that appears and goes has a line each, with its addresses and ports', (t) => {
  const { apply, remove, logged } = start();
  apply(service());
  const places = { addresses: ['192.0.2.10'], ports: ['TCP/80'] };
  const at = { ...web, kind: 'LoadBalancer', ...places };
  t.deepEqual(logged(), [{ ...at, reason: 'added', message: 'A load balancer appeared' }]);
  apply(service());
  t.deepEqual(logged(), [], 'Nothing has changed');
  remove('default/web');
  t.deepEqual(logged(), [{ ...at, reason: 'removed', message: 'A load balancer is gone' }]);
});

test('A load balancer that is no longer served says why', (t) => {
  const { apply, logged } = start();
  apply(service());
  logged();
  apply(service({ type: 'ClusterIP' }));
  const [line] = logged();
  t.is(line?.message, 'A load balancer is gone');
  t.regex(String(line?.why), /LoadBalancer/);
});

test('Listeners and addresses that appear, change and go have a line each', (t) => {
  const { apply, logged } = start();
  apply(service());
  logged();
  const port = (number: number) => ({ name: `p${number}`, port: number });
  apply(service({ ports: [port(80), port(443)] }));
  const listener = { ...web, kind: 'Listener', protocol: 'TCP', family: 'v4' };
  t.deepEqual(
    logged().filter(({ port: number }) => number === 443),
    [{ ...listener, reason: 'added', port: 443, message: 'A listener appeared' }],
  );
  apply(service({ ports: [port(80), port(443)], affinitySeconds: 60 }));
  const changed = { ...listener, reason: 'changed', fields: ['persistence'], message: 'A listener changed' };
  t.deepEqual(
    logged(),
    [80, 443].map((number) => ({ ...changed, port: number })),
  );
  apply(service({ ports: [port(80)], affinitySeconds: 60, loadBalancerIP: '192.0.2.11' }));
  t.deepEqual(
    logged().map(({ message, address, port: number }) => [message, address ?? number]),
    [
      ['An address is gone', '192.0.2.10'],
      ['An address appeared', '192.0.2.11'],
      ['A listener changed', 80],
      ['A listener is gone', 443],
    ],
  );
});

test('Members have one line a minute under churn, and at the level debug one for each change', async (t) => {
  for (const level of ['info', 'debug'] as const) {
    const { clock, apply, logged } = start(level);
    apply(service(), slice({ endpoints: [endpoint('10.0.0.1')] }));
    logged();
    for (let n = 2; n <= 11; n++) {
      apply(slice({ endpoints: [endpoint(`10.0.0.${n}`)] }));
      await clock.advance(1_000);
    }
    t.is(logged().length, level === 'info' ? 0 : 10);
    await clock.advance(60_000);
    const counts = { services: 1, added: 10, removed: 10, changed: 0 };
    t.deepEqual(logged(), [{ kind: 'Member', ...counts, message: 'Members changed in the last minute' }]);
    await clock.advance(120_000);
    t.deepEqual(logged(), [], 'Nothing changes');
  }
});

test('A thousand Services at once have a hundred lines, and the number of the others', async (t) => {
  const { clock, apply, logged } = start();
  apply(
    ...Array.from({ length: 1_000 }, (_, n) =>
      service({ name: `s${n}`, loadBalancerIP: `10.0.${n >> 8}.${n & 255}` }),
    ),
  );
  t.is(logged().length, 100);
  await clock.advance(60_000);
  t.deepEqual(logged(), [
    {
      namespace: 'default',
      unlogged: 900,
      message: 'There were more changes in the last minute than the log shows',
    },
  ]);
  apply(service({ name: 'one-more' }));
  t.is(logged().length, 1);
});

test('An agent that starts has one line for all load balancers', (t) => {
  const { state, changeLog, logged } = start();
  state.apply({
    upserted: [service(), service({ name: 'shop', loadBalancerIP: '192.0.2.11' })],
    removed: [],
  });
  changeLog.began(new Set(state.desired.loadBalancers.keys()));
  changeLog.changed(new Set(state.desired.loadBalancers.keys()));
  t.deepEqual(logged(), [
    { loadBalancers: 2, listeners: 2, addresses: 2, message: 'The agent begins with these load balancers' },
  ]);
});

test('The documents list every message of a change', (t) => {
  const text = readFileSync(new URL('../../../docs/operations.md', import.meta.url), 'utf8');
  t.deepEqual(
    Object.values(MESSAGES).filter((message) => !text.includes(`\`${message}\``)),
    [],
  );
});

test('A port that loses its last ready member has a line, and another one when it has one again', (t) => {
  const { apply, logged } = start();
  apply(service(), slice({ endpoints: [endpoint('10.0.0.1'), endpoint('10.0.0.2')] }));
  logged();
  apply(slice({ endpoints: [endpoint('10.0.0.2')] }));
  t.deepEqual(logged(), [], 'One is left');
  apply(slice({ endpoints: [endpoint('10.0.0.2', { ready: false })] }));
  const port = { ...web, kind: 'Pool', protocol: 'TCP', port: 80, family: 'v4' };
  t.deepEqual(logged(), [{ ...port, reason: 'emptied', message: 'A port has no ready member' }]);
  apply(slice({ endpoints: [] }));
  t.deepEqual(logged(), []);
  apply(slice({ endpoints: [endpoint('10.0.0.3')] }));
  t.deepEqual(logged(), [{ ...port, reason: 'filled', message: 'A port has a ready member again' }]);
});

test('A port that never had a member is no news, nor its first one', (t) => {
  const { apply, logged } = start();
  apply(service(), slice({ endpoints: [] }));
  logged();
  apply(slice({ endpoints: [endpoint('10.0.0.3')] }));
  t.deepEqual(logged(), []);
});
