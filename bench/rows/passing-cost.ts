// `passing-cost`: requests through HAProxy on a host with the rules that pass packets of other hosts' connections on, against the
// same without these rules, in turns, with keep-alive and with a connection for each request. All hosts are network namespaces.

import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { NO_ADOPTION } from '../../agent/vips/passing/adoption.ts';
import { renderPassing, renderRemoval } from '../../agent/vips/passing/render.ts';
import { ringOf } from '../../agent/vips/passing/ring.ts';
import { demandPair } from '../pair/demand-pair.ts';
import { PairNetwork, run } from '../pair/network.ts';
import { startAgent } from '../support/agent.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { isolated } from '../support/isolated.ts';
import { type Bench, type Benchmark, type Row, row } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { until } from '../support/until.ts';

const VIP = '10.10.0.1';
const [PORT, MEMBER_PORT] = [8080, 9000];
const TABLE = 'headgate_passing';
const ROUNDS = 12;
/** As many as a host of 5,000 Services has. */
const OTHER_VIPS = 5_000;

export const passingCost: Benchmark = {
  rows: ['passing-cost'],
  run: async (bench, selected) => {
    demandPair();
    return isolated(import.meta.url, bench, selected);
  },
};

export async function measure(bench: Bench): Promise<void> {
  bench.measured(await withScratch((scratch) => costRow(bench, scratch)));
}

async function costRow(bench: Bench, scratch: Scratch): Promise<Row> {
  const network = await PairNetwork.make(scratch);
  const { body, globals } = responder(`*:${MEMBER_PORT}`);
  await startHaproxy(scratch, 'member', bench.haproxy, body, { globals, within: network.within('member') });
  run([...network.within('a'), 'ip', 'address', 'add', `${VIP}/32`, 'dev', 'lo']);
  run([...network.within('client'), 'ip', 'route', 'replace', `${VIP}/32`, 'via', network.address('a')]);
  const folder = scratch.path('manifests');
  mkdirSync(folder);
  const texts = objects(network.address('member')).map((each) => JSON.stringify(each));
  writeFileSync(join(folder, 'web.yaml'), texts.join('\n---\n'));
  startAgent(scratch, folder, { haproxy: bench.haproxy, within: network.within('a') });
  const wrk = (headers: readonly string[]) => requests(network, headers);
  await until('The VIP answers', async () => (await wrk([]).catch(() => 0)) > 0, { most: 30_000 });

  const rules = { with: scratch.path('with.nft'), without: scratch.path('without.nft') };
  writeFileSync(rules.with, rulesOf(network));
  writeFileSync(rules.without, renderRemoval(TABLE));
  const keepAlive: Record<keyof typeof rules, number[]> = { with: [], without: [] };
  const newEach: Record<keyof typeof rules, number[]> = { with: [], without: [] };
  const rounds = bench.scaled(ROUNDS, 2);
  for (let round = 1; round <= rounds; round++) {
    bench.report(`passing-cost: round ${round} of ${rounds}`);
    const turns = ['with', 'without'] as const;
    for (const turn of round % 2 === 0 ? turns.toReversed() : turns) {
      run([...network.within('a'), 'nft', '-f', rules[turn]]);
      keepAlive[turn].push(await wrk([]));
      newEach[turn].push(await wrk(['Connection: close']));
    }
  }
  const ratioOf = (rates: typeof keepAlive): number =>
    median(rates.with.map((rate, at) => rate / (rates.without[at] ?? Number.NaN)));
  const [ratio, ratioOfNew] = [ratioOf(keepAlive), ratioOf(newEach)];
  return row({
    name: 'passing-cost',
    value: 100 * (1 - ratio),
    unit: '% of the rate',
    target: '≤ 8 % of HAProxy’s requests, with keep-alive and with a connection for each request',
    met: ratio >= 0.92 && ratioOfNew >= 0.92,
    reference: { name: 'without the rules, requests/s', value: median(keepAlive.without) },
    ratio,
    others: [{ name: 'without the rules, a connection for each request', value: median(newEach.without) }],
    details: {
      'requests/s': median(keepAlive.with),
      'a connection for each request, requests/s': median(newEach.with),
      'a connection for each request, %': 100 * (1 - ratioOfNew),
      rounds,
    },
  });
}

/** The rules of the first of three hosts, which has many VIPs. */
function rulesOf(network: PairNetwork): string {
  const hosts = ['a', 'b', 'c'].map((name) => ({
    name,
    address: '',
    back: [network.address('b')],
    anchors: [],
  }));
  const [self] = hosts;
  const ring = self && ringOf({ self, hosts }, new Set(['a', 'b', 'c']));
  if (ring === undefined) throw new Error('No ring');
  const others = Array.from(
    { length: OTHER_VIPS },
    (_, at) => `10.11.${Math.floor(at / 250)}.${(at % 250) + 1}`,
  );
  const next = [network.address('b')];
  const knows = { knowsSockets: true, isLoose: true, adoption: NO_ADOPTION };
  return renderPassing({ table: TABLE, ring, device: 'eth0', next, vips: [VIP, ...others], ...knows });
}

async function requests(network: PairNetwork, headers: readonly string[]): Promise<number> {
  const own = headers.flatMap((each) => ['-H', each]);
  const words = [...network.within('client'), 'wrk', '-t1', '-c64', '-d1s', ...own, `http://${VIP}:${PORT}/`];
  const { stdout } = await promisify(execFile)(words[0] ?? '', words.slice(1));
  if (/Socket errors: connect [1-9]|Non-2xx/.test(stdout)) throw new Error(`wrk: ${stdout}`);
  return Number(/Requests\/sec:\s+(\S+)/.exec(stdout)?.[1]);
}

function objects(member: string): readonly unknown[] {
  const metadata = { name: 'web', namespace: 'default' };
  const ports = [{ name: 'tcp', protocol: 'TCP', port: PORT }];
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { ...metadata, annotations: { 'headgate.io/load-balancer-ips': VIP } },
      spec: { type: 'LoadBalancer', loadBalancerClass: 'headgate.io/agent', ports },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...metadata, name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [member] }],
      ports: [{ name: 'tcp', protocol: 'TCP', port: MEMBER_PORT }],
    },
  ];
}
