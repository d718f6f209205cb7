import test from 'ava';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { MemberHealth, type MemberHealthOptions } from '../../../../agent/nftables/checks/member-health.ts';
import { eventually } from '../../../support/basics/eventually.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { service, slice } from '../../../support/values/build.ts';
import { listenerOf, loadBalancerOf, translated } from '../../../support/values/translated.ts';

const PORT = { port: 53, protocol: 'UDP' as const };
const NAME = 'default:web:udp:53:v4';
const KEY = 'default/web';
const [ONE, TWO] = ['10.0.0.1:53', '10.0.0.2:53'] as const;
const CAUSE = 'the connection was refused or failed (L4CON)';

function state(type: string, endpoints: readonly string[] = ['10.0.0.1', '10.0.0.2']) {
  const annotations = { 'headgate.io/health-monitor': type };
  return translated([service({ ports: [PORT], annotations }), slice({ endpoints, ports: [PORT] })]);
}

type Results = Map<string, { isDown: boolean | undefined; cause: string }>;

function healthOf(type: string, options: Partial<MemberHealthOptions> = {}) {
  const results: Results = new Map();
  const changed: string[] = [];
  const desired = new Map<string, LoadBalancer>(state(type).loadBalancers);
  const health = new MemberHealth({
    desired,
    resultsOf: () => results,
    refusals: async () => new Map(),
    netns: '',
    onChanged: (keys) => changed.push(...keys),
    ...options,
  });
  return { health, results, changed, desired, listener: listenerOf(state(type), NAME) };
}

test("HAProxy's results count until there are others, also while it knows none", (t) => {
  const { health, results, changed, listener } = healthOf('tcp');
  results.set(TWO, { isDown: true, cause: CAUSE });
  health.checked([KEY]);
  t.deepEqual([...health.down(listener)], [[TWO, CAUSE]]);
  t.deepEqual(changed, [KEY]);
  const before = health.down(listener);
  results.set(TWO, { isDown: undefined, cause: '' });
  health.checked([KEY]);
  results.clear();
  health.checked([KEY, 'default/other']);
  t.is(health.down(listener), before);
  t.deepEqual(changed, [KEY], 'nothing has changed');
  results.set(TWO, { isDown: false, cause: '' });
  health.checked([KEY]);
  t.is(health.down(listener).size, 0);
  t.deepEqual(changed, [KEY, KEY]);
});

test('A listener that is new to the kernel begins with what HAProxy has found', (t) => {
  const { health, results, changed, listener } = healthOf('tcp');
  results.set(TWO, { isDown: true, cause: CAUSE });
  t.deepEqual([...health.down(listener)], [[TWO, CAUSE]]);
  t.deepEqual(changed, []);
});

test('A member that was down before the agent started is down until there is a result', (t) => {
  const { health, results, listener } = healthOf('tcp');
  health.restore(new Map([[NAME, [ONE]]]));
  t.deepEqual([...health.down(listener).keys()], [ONE]);
  health.checked([KEY]);
  t.deepEqual([...health.down(listener).keys()], [ONE]);
  results.set(ONE, { isDown: false, cause: '' });
  health.checked([KEY]);
  t.is(health.down(listener).size, 0);
});

test('No member is down without a monitor, or when its listener is forgotten', (t) => {
  const { health, listener } = healthOf('tcp');
  health.restore(new Map([[NAME, [ONE]]]));
  t.is(health.down(listenerOf(state('none'), NAME)).size, 0);
  health.forget(NAME);
  t.is(health.down(listener).size, 0);
});

test('A member that is gone and comes back is as it is found then', (t) => {
  const { health, results, desired, listener } = healthOf('tcp');
  results.set(TWO, { isDown: true, cause: CAUSE });
  health.checked([KEY]);
  desired.set(KEY, loadBalancerOf(state('tcp', ['10.0.0.1'])));
  results.delete(TWO);
  results.set(ONE, { isDown: false, cause: '' });
  health.checked([KEY]);
  t.is(health.down(listener).size, 0);
});

test('Members are probed by UDP at the interval, while their listener is there, until the end', async (t) => {
  const clock = new FakeClock();
  const probed: string[] = [];
  const probe = async ({ address, port }: { readonly address: string; readonly port: number }) => {
    probed.push(`${address}:${port} at ${clock.monotonic()}`);
    return address === '10.0.0.2' ? { failure: 'nothing listens' } : ('silence' as const);
  };
  const { health, changed, desired, listener } = healthOf('udp', { clock, probe });
  health.changed([KEY]);
  health.changed([KEY]);
  await clock.advance(5_000);
  t.deepEqual(probed, [`${ONE} at 6000`, `${TWO} at 6000`]);
  t.is(health.down(listener).size, 0);
  await clock.advance(10_000);
  t.deepEqual([...health.down(listener)], [[TWO, 'nothing listens']]);
  t.deepEqual(changed, [KEY]);
  t.is(probed.length, 6);
  desired.delete(KEY);
  health.changed([KEY]);
  await clock.advance(20_000);
  t.is(probed.length, 6, 'its Service is gone');
  desired.set(KEY, loadBalancerOf(state('udp')));
  health.changed([KEY]);
  health.close();
  await clock.advance(20_000);
  t.is(probed.length, 6, 'the agent ends');
});

test('A network namespace from which no probe can be sent is a problem', async (t) => {
  const clock = new FakeClock();
  const { health, desired, listener } = healthOf('udp', { clock, netns: 'headgate-is-not-there' });
  const state1 = { ...state('udp'), loadBalancers: desired };
  t.deepEqual(health.problemsOf(loadBalancerOf(state1)), []);
  health.changed([KEY]);
  await eventually(
    async () => {
      await clock.advance(5_000);
      return health.problemsOf(loadBalancerOf(state1));
    },
    (problems) => problems.length > 0,
  );
  const [problem] = health.problemsOf(loadBalancerOf(state1));
  t.is(problem?.reason, 'MonitorNotUsed');
  t.is(health.down(listener).size, 0);
  t.deepEqual(health.problemsOf(loadBalancerOf(state('tcp'))), []);
  health.close();
});
