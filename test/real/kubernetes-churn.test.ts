// Endpoints change 200 times a second on a real API server, and its connections break meanwhile: HAProxy follows
// without a reload, nothing is lost, and the agent's memory stays what it was.
// CHURN_SECONDS makes it longer (`make soak`); the figures are then in the log.

import { setTimeout as delay } from 'node:timers/promises';
import ava from 'ava';
import { processorTime, residentMemory } from '../../bench/support/usage.ts';
import { TestHost } from '../support/agent.ts';
import { Churn } from '../support/churn.ts';
import { FaultProxy } from '../support/fault-proxy.ts';
import { KUBE_BUILD_TIMEOUT, type Kube, kubeNeeds, startKube } from '../support/kube.ts';
import { INSPECTED, liveHeap } from '../support/live-heap.ts';
import { requires } from '../support/requirements.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true });

const SECONDS = Number(process.env.CHURN_SECONDS ?? 20);
/** Megabytes that the live heap may grow by in the second half: thousands of events, a leak of a kilobyte each. */
const GROWTH = 3;

let kube: Kube;
test.before(async (t) => {
  t.timeout(KUBE_BUILD_TIMEOUT);
  kube = await startKube();
});
test.after.always(() => kube?.stop());

test.serial('Under 200 endpoint writes a second no update is lost and memory stays flat', async (t) => {
  const proxy = await FaultProxy.start({ host: '127.0.0.1', port: Number(new URL(kube.url).port) });
  t.teardown(() => proxy.close());
  const kubeconfig = `${kube.directory}/churn`;
  const server = `https://127.0.0.1:${proxy.port}`;
  await kube.writeKubeconfig(kubeconfig, { server, token: kube.adminToken });
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kubeconfig], env: INSPECTED });
  t.timeout(SECONDS * 1_000 + 120_000);
  const churn = new Churn(kube, host);
  await churn.prepare();
  const agent = await host.start();
  const isSame = async () => {
    const differences = await churn.differences();
    if (differences.length > 0) throw new Error(differences.slice(0, 20).join('; '));
    return true;
  };
  await host.until('all is there', isSame);
  const worker = await host.worker();
  const reloads = await host.reloads();

  // What is made once, for the first of its kind, is made now.
  await churn.run(5);
  const heaps = [await liveHeap(agent)];
  const samples: string[] = [];
  const began = [performance.now(), processorTime(agent.pid), processorTime(worker), churn.writes] as const;
  for (const half of [1, 2]) {
    const running = churn.run(SECONDS / 2);
    const end = performance.now() + SECONDS * 500;
    await delay(SECONDS * 150);
    if (half === 1) proxy.reset();
    else proxy.cut();
    while (performance.now() < end) {
      const second = Math.round((performance.now() - began[0]) / 1_000);
      samples.push(
        `${second} s: ${Math.round(residentMemory(agent.pid))}/${Math.round(residentMemory(worker))}`,
      );
      await delay(Math.min(10_000, Math.max(0, end - performance.now())));
    }
    await running;
    await host.until('HAProxy has what the slices say', isSame, 30_000);
    heaps.push(await liveHeap(agent));
  }
  const took = (performance.now() - began[0]) / 1_000;
  const share = (pid: number, before: number) =>
    `${((processorTime(pid) - before) / took / 10).toFixed(0)} %`;
  const megabytes = heaps.map((bytes) => (bytes / 1e6).toFixed(2));
  t.log(
    `${churn.writes - began[3]} writes in ${took.toFixed(0)} s, ${((churn.writes - began[3]) / took).toFixed(0)} a second`,
  );
  t.log(`processor: agent ${share(agent.pid, began[1])}, HAProxy ${share(worker, began[2])} of a core`);
  t.log(`live heap at the beginning, half-way and at the end: ${megabytes.join(', ')} MB`);
  t.log(`resident memory of agent and HAProxy in MB: ${samples.join(', ')}`);

  const [, half = 0, end = 0] = heaps;
  t.true(end - half < GROWTH * 1e6, `The live heap has grown: ${megabytes.join(', ')} MB`);
  t.deepEqual([await host.worker(), await host.reloads()], [worker, reloads]);
  const metric = await agent.metrics();
  t.is(metric('headgate_haproxy_command_failures_total'), Number.NaN);
  t.is(metric('headgate_repairs_total'), Number.NaN);
  t.true(metric('headgate_api_watch_ends_total', { kind: 'EndpointSlice' }) >= 2);
  await churn.clean();
});
