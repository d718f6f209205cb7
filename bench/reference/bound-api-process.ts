// The lower bound on a real API server: `bound-api-process.ts URL CA TOKEN NAMESPACE [HAPROXY]`. Lists once, renders once,
// then sends each event of the watch of EndpointSlices directly to HAProxy's socket, or without HAPROXY to nft. Ignores new
// Services, options and the end of the watch. Answers any message when it serves.

import { readFileSync } from 'node:fs';
import https, { type RequestOptions } from 'node:https';
import { answer, over } from '../support/parent.ts';
import { withScratch } from '../support/scratch.ts';
import { Bound } from './bound.ts';
import { BoundKernel } from './bound-kernel.ts';
import type { PlainService } from './plain-service.ts';

interface Slice {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly endpoints: readonly { readonly addresses: readonly string[] }[];
  readonly ports: readonly { readonly port: number }[];
}

interface Service {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly loadBalancerIP: string; readonly ports: readonly { readonly port: number }[] };
}

interface List<T> {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly T[];
}

const [url = '', ca = '', token = '', namespace = '', haproxy = ''] = process.argv.slice(2);
const options: RequestOptions = { ca: readFileSync(ca), headers: { authorization: `Bearer ${token}` } };
const services = `/api/v1/namespaces/${namespace}/services`;
const slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;

/** Calls `take` with each part of the answer as it arrives. */
function get(path: string, take: (chunk: string) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = https.get(`${url}${path}`, options, (response) => {
      response.setEncoding('utf8').on('data', take).on('end', resolve);
    });
    request.on('error', reject);
  });
}

async function list<T>(path: string): Promise<List<T>> {
  const chunks: string[] = [];
  await get(`${path}?resourceVersion=0`, (chunk) => chunks.push(chunk));
  return JSON.parse(chunks.join(''));
}

function membersOf({ endpoints, ports }: Slice): ReadonlySet<string> {
  return new Set(endpoints.map(({ addresses }) => `${addresses[0]}:${ports[0]?.port}`));
}

await withScratch(async (scratch) => {
  const [listed, { items, metadata }] = await Promise.all([list<Service>(services), list<Slice>(slices)]);
  const known = new Map<string, PlainService>();
  for (const { metadata, spec } of listed.items) {
    const { name } = metadata;
    known.set(name, { name, vip: spec.loadBalancerIP, port: spec.ports[0]?.port ?? 0, members: new Set() });
  }
  const withMembers = (slice: Slice): PlainService | undefined => {
    const service = known.get(slice.metadata.labels['kubernetes.io/service-name'] ?? '');
    return service && { ...service, members: membersOf(slice) };
  };
  for (const slice of items) {
    const service = withMembers(slice);
    if (service !== undefined) known.set(service.name, service);
  }
  const plain = [...known.values()];
  const viaHaproxy = haproxy === '' ? undefined : await Bound.start(scratch, haproxy, plain);
  const bound = viaHaproxy ?? (await BoundKernel.start(scratch, plain));

  let queue = Promise.resolve();
  const change = (service: PlainService): void => {
    queue = queue.then(async () => {
      const remove = await bound.change(service);
      setTimeout(() => {
        queue = queue.then(remove);
      }, 1_000);
    });
  };
  let rest = '';
  void get(`${slices}?watch=true&resourceVersion=${metadata.resourceVersion}`, (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const service = withMembers((JSON.parse(line) as { readonly object: Slice }).object);
      if (service !== undefined) change(service);
    }
  });
  process.on('message', () => answer({ pids: viaHaproxy === undefined ? [] : [viaHaproxy.haproxy.pid] }));
  await over;
});
process.exit();
