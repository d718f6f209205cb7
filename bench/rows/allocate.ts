// `allocate-1k`: with a real API server, the time from the start of the agent on 1,000 Services without addresses until all
// of them have one of a pool in their status and listen. Reference: 1,000 status patches, as fast as the API server takes
// them from sixteen connections.

import { deployDefinitions } from '../../test/support/kube/deploy.ts';
import type { Kube } from '../../test/support/kube/kube.ts';
import { servicePath } from '../../test/support/kube/kube-objects.ts';
import { buildPrograms, Rig } from '../api/rig.ts';
import { Services } from '../api/services.ts';
import { isolated } from '../support/isolated.ts';
import { beforeItsEnd } from '../support/processes.ts';
import { type Bench, type Benchmark, type Row, row } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';
import { listeningSockets } from '../support/usage.ts';

const COUNT = 1_000;
const PORT = 8080;
/** In the loopback network, so that HAProxy can listen on its addresses. */
const POOL = {
  apiVersion: 'headgate.io/v1alpha1',
  kind: 'AddressPool',
  metadata: { name: 'bench' },
  spec: { blocks: ['127.40.0.0/20'] },
};
const WRITERS = 16;
const MOST_MS = 120_000;
const MAX_SECONDS = 10;
const MAX_RATIO = 5;

export const allocate: Benchmark = {
  rows: ['allocate-1k'],
  run: async (bench, selected) => {
    await buildPrograms();
    return isolated(import.meta.url, bench, selected);
  },
};

export function measure(bench: Bench): Promise<void> {
  return withScratch(async (scratch) => bench.measured(await allocateRow(bench, scratch)));
}

async function allocateRow(bench: Bench, scratch: Scratch): Promise<Row> {
  bench.report('allocate-1k: starting and filling the API server');
  const rig = await Rig.start(bench, scratch);
  const { kube } = rig;
  await deployDefinitions(kube);
  await kube.must('POST', '/apis/headgate.io/v1alpha1/addresspools', POOL);
  const count = bench.scaled(COUNT, 5);
  const [services, others] = [await filled(kube, 'allocate', count), await filled(kube, 'patched', count)];
  bench.report('allocate-1k: patching statuses');
  const reference = await patchAll(kube, others);
  bench.report('allocate-1k: starting the agent');
  const began = performance.now();
  const agent = rig.startAgent(scratch, 'agent', services.namespace);
  let addresses: readonly string[] = [];
  const haveAddresses = async (): Promise<boolean> => {
    addresses = await addressesOf(kube, services.namespace);
    return addresses.length === count;
  };
  await beforeItsEnd(
    agent,
    until('All Services have addresses', haveAddresses, { every: 250, most: MOST_MS }),
  );
  const haveListeners = (): boolean => listeningSockets(PORT, [...addresses]) >= count;
  await until('All listeners exist', haveListeners, { most: MOST_MS });
  const value = (performance.now() - began) / 1_000;
  if (new Set(addresses).size !== count) throw new Error('Two Services have the same address and port');
  return row({
    name: 'allocate-1k',
    value,
    unit: 's',
    target: `≤ ${MAX_RATIO} × the reference, and ≤ ${MAX_SECONDS} s`,
    met: value <= MAX_SECONDS && value <= MAX_RATIO * reference,
    reference: { name: `${count} status patches`, value: reference },
    details: {
      'statuses written': await agent.counter('headgate_status_writes_total'),
      'claims written': await agent.counter('headgate_claim_writes_total'),
    },
  });
}

/** Services without addresses, each with one member. */
async function filled(kube: Kube, namespace: string, count: number): Promise<Services> {
  const services = new Services(kube, { namespace, servedBy: ['agent'], port: PORT });
  await services.fill(count, () => 1);
  return services;
}

/** Returns the seconds that it took. */
async function patchAll(kube: Kube, { namespace, all }: Services): Promise<number> {
  const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1', ipMode: 'VIP' }] } };
  const left = all[Symbol.iterator]();
  const began = performance.now();
  const writers = Array.from({ length: WRITERS }, async () => {
    for (const { name } of left)
      await kube.must('PATCH', `${servicePath(namespace, name)}/status`, { status });
  });
  await Promise.all(writers);
  return (performance.now() - began) / 1_000;
}

async function addressesOf(kube: Kube, namespace: string): Promise<readonly string[]> {
  const { items } = await kube.must('GET', servicePath(namespace));
  return items.flatMap(({ status }: ListedService) =>
    (status.loadBalancer.ingress ?? []).map(({ ip }) => ip),
  );
}

interface ListedService {
  readonly status: { readonly loadBalancer: { readonly ingress?: readonly { readonly ip: string }[] } };
}
