// Endpoints change 200 times a second on a real API server, and its connections break meanwhile: HAProxy follows
// without a reload, nothing is lost, and the agent's memory stays what it was.
// SOAK_MINUTES makes it longer (`make soak`).

import { setTimeout as delay } from 'node:timers/promises';
import ava from 'ava';
import { processorTime, residentMemory } from '../../bench/support/usage.ts';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { Churn } from '../support/kube/churn.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { INSPECTED, liveHeap } from '../support/measure/live-heap.ts';
import { FaultProxy } from '../support/traffic/fault-proxy.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true });

const { SOAK_MINUTES } = process.env;
const SECONDS = SOAK_MINUTES === undefined ? 20 : 60 * Number(SOAK_MINUTES);
/** Megabytes that the live heap may grow by in the second half: 2,000 writes or more, a leak of half a kilobyte each. */
const GROWTH = 1;
/** Seconds for which removed members are remembered: as many of them at the end of one half as of the other. */
const DRAIN_TIMEOUT = 2;

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t);
});
test.after.always(() => kube?.stop());

// Conformance: churn
test.serial('Under 200 endpoint writes a second no update is lost and memory stays flat', async (t) => {
  const proxy = await FaultProxy.start({ host: '127.0.0.1', port: Number(new URL(kube.url).port) });
  t.teardown(() => proxy.close());
  const kubeconfig = `${kube.directory}/churn`;
  const server = `https://127.0.0.1:${proxy.port}`;
  await kube.writeKubeconfig(kubeconfig, { server, token: kube.adminToken });
  const flags = ['--kubeconfig', kubeconfig, '--drain-timeout', `${DRAIN_TIMEOUT}s`];
  const host = await TestHost.create(t, { flags, env: INSPECTED });
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
  const written = churn.writes;
  const [agentBegan, haproxyBegan] = [processorTime(agent.pid), processorTime(worker)];
  let took = 0;
  for (const half of [1, 2]) {
    const begin = performance.now();
    const running = churn.run(SECONDS / 2);
    await delay(SECONDS * 150);
    if (half === 1) proxy.reset();
    else proxy.cut();
    for (let left = 1; left > 0; left = begin + SECONDS * 500 - performance.now()) {
      samples.push(`${Math.round(residentMemory(agent.pid))}/${Math.round(residentMemory(worker))}`);
      await delay(Math.min(SECONDS * 50, left));
    }
    await running;
    took += performance.now() - begin;
    await host.until('HAProxy has what the slices say', isSame, 30_000);
    heaps.push(await liveHeap(agent));
  }
  // Values of work under way, such as a snapshot, are no leak: a leak is still there later.
  for (let looks = 0; looks < 10 && (heaps[2] ?? 0) - (heaps[1] ?? 0) >= GROWTH * 1e6; looks++) {
    await delay(1_000);
    heaps[2] = await liveHeap(agent);
  }
  const share = (pid: number, began: number) =>
    `${Math.round((100 * (processorTime(pid) - began)) / took)} %`;
  const megabytes = heaps.map((bytes) => (bytes / 1e6).toFixed(2)).join(', ');
  const writes = churn.writes - written;
  t.log(`${writes} writes in ${Math.round(took / 1_000)} s: ${Math.round((1_000 * writes) / took)} a second`);
  t.log(`processor: agent ${share(agent.pid, agentBegan)}, HAProxy ${share(worker, haproxyBegan)} of a core`);
  t.log(`live heap at the beginning, half-way and at the end: ${megabytes} MB`);
  t.log(`resident memory of agent/HAProxy in MB: ${samples.join(', ')}`);

  const [, half = 0, end = 0] = heaps;
  t.true(end - half < GROWTH * 1e6, `The live heap has grown: ${megabytes} MB`);
  t.deepEqual([await host.worker(), await host.reloads()], [worker, reloads]);
  const metric = await agent.metrics();
  t.is(metric('headgate_haproxy_command_failures_total'), Number.NaN);
  t.is(metric('headgate_repairs_total'), 0);
  t.true(metric('headgate_api_watch_ends_total', { kind: 'EndpointSlice' }) >= 2);
  await churn.clean();
});
