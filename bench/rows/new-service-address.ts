// `new-service-address`: with a real API server that holds 1,000 Services × 10 endpoints and a pool, the time from the end of
// the write of a Service without an address until its status has one and that address answers, ten in a row. Reference: one
// patch of a status by hand, in turns.

import { setTimeout as delay } from 'node:timers/promises';
import { deployDefinitions } from '../../test/support/kube/deploy.ts';
import type { Kube } from '../../test/support/kube/kube.ts';
import { servicePath } from '../../test/support/kube/kube-objects.ts';
import { monotonic } from '../api/monotonic.ts';
import { Prober } from '../api/prober.ts';
import { API_SERVER, buildPrograms, Rig } from '../api/rig.ts';
import { Services } from '../api/services.ts';
import { STATUSES_MS, settled } from '../api/settled.ts';
import { serving } from '../support/agent.ts';
import { isolated } from '../support/isolated.ts';
import { type Bench, type Benchmark, type Row, row } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';

const COUNT = 1_000;
const MEMBERS = 10;
const SAMPLES = 10;
const PORT = 8080;
const NAMESPACE = 'addressed';
/** In the loopback network, so that HAProxy can listen on its addresses. */
const POOL = {
  apiVersion: 'headgate.io/v1alpha1',
  kind: 'AddressPool',
  metadata: { name: 'bench' },
  spec: { blocks: ['127.41.0.0/24'] },
};
const MOST_MS = 20_000;
const MAX_P50_MS = 60;
/** More often, the questions would take the processor from those who are measured. */
const POLL_MS = 5;

export const newServiceAddress: Benchmark = {
  rows: ['new-service-address'],
  run: async (bench, selected) => {
    await buildPrograms(API_SERVER);
    return isolated(import.meta.url, bench, selected);
  },
};

export function measure(bench: Bench): Promise<void> {
  return withScratch(async (scratch) => bench.measured(await addressRow(bench, scratch)));
}

async function addressRow(bench: Bench, scratch: Scratch): Promise<Row> {
  bench.report('new-service-address: starting and filling the API server');
  const rig = await Rig.start(bench, scratch);
  const { kube } = rig;
  await deployDefinitions(kube);
  const [count, samples] = [bench.scaled(COUNT, 5), bench.scaled(SAMPLES, 3)];
  const present = { namespace: NAMESPACE, servedBy: ['agent'] as const, port: PORT };
  const services = new Services(kube, { ...present, network: 26 });
  await services.fill(count, () => MEMBERS);
  const agent = rig.startAgent(scratch, 'agent', NAMESPACE);
  bench.report('new-service-address: waiting until the agent serves them');
  await serving(agent, count);
  await kube.must('POST', '/apis/headgate.io/v1alpha1/addresspools', POOL);
  bench.report('new-service-address: waiting for the statuses');
  await settled(agent, STATUSES_MS);
  bench.report(`new-service-address: ${samples} Services`);
  const prober = new Prober(scratch, 'own');
  const newOnes = new Services(kube, present);
  // Their names follow those of the Services that are present.
  newOnes.all.push(...services.all);
  const [own, statuses, patches]: [number[], number[], number[]] = [[], [], []];
  // The first one warms up and does not count.
  for (let n = -1; n < samples; n++) {
    const patched = await patchByHand(kube, services.at((n + count) % count).name);
    const { service, written } = await newOnes.add();
    const { address, at } = await published(kube, service.name);
    const answered = await prober.answered(address, PORT, service.members[0] ?? '', { most: MOST_MS });
    if (n < 0) continue;
    patches.push(patched);
    statuses.push(at - written);
    own.push(Math.max(at, answered) - written);
  }
  const value = median([...own]);
  return row({
    name: 'new-service-address',
    value,
    unit: 'ms',
    target: `p50 ≤ ${MAX_P50_MS} ms`,
    met: value <= MAX_P50_MS,
    reference: { name: 'one status patch by hand, p50', value: median([...patches]) },
    details: {
      fastest: Math.min(...own),
      slowest: Math.max(...own),
      'until the status has the address, p50': median([...statuses]),
      samples: own.length,
    },
  });
}

/** Changes a condition of another writer, which the agent keeps. Gives milliseconds. */
async function patchByHand(kube: Kube, name: string): Promise<number> {
  const at = new Date().toISOString();
  const condition = { type: 'example.org/Bench', status: 'True', reason: 'Any', lastTransitionTime: at };
  const { status } = await kube.must('GET', servicePath(NAMESPACE, name));
  const others = (status.conditions ?? []).filter(({ type }: { type: string }) => type !== condition.type);
  const began = performance.now();
  await kube.must('PATCH', `${servicePath(NAMESPACE, name)}/status`, {
    status: { conditions: [...others, { ...condition, message: at }] },
  });
  return performance.now() - began;
}

async function published(
  kube: Kube,
  name: string,
): Promise<{ readonly address: string; readonly at: number }> {
  for (const end = performance.now() + MOST_MS; performance.now() < end; await delay(POLL_MS)) {
    const { status } = await kube.must('GET', servicePath(NAMESPACE, name));
    const [ingress] = status.loadBalancer.ingress ?? [];
    if (ingress !== undefined) return { address: ingress.ip, at: monotonic() };
  }
  throw new Error(`Service ${name} has no address within ${MOST_MS} ms`);
}
