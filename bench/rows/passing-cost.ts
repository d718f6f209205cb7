// `passing-cost`: requests through HAProxy on a host with the rules that pass packets of other hosts' connections on, against the
// same without these rules, in pairs of turns, with keep-alive and then with a connection for each request. All hosts are network
// namespaces.

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
import { pause, until } from '../support/until.ts';

const VIP = '10.10.0.1';
const [PORT, MEMBER_PORT] = [8080, 9000];
const TABLE = 'headgate_passing';
const TURNS = ['with', 'without'] as const;
/** Pairs of turns of each kind. A pair is a second of each, so that both meet the same machine. */
const ROUNDS = 24;
/** The kernel frees rules that are replaced in the background. */
const LOADED_MS = 100;
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
  // One kind after the other: entries of closed connections in the table of conntrack are no cost of open ones.
  const measured = async (kind: string, headers: readonly string[]): Promise<Cost> => {
    const rates: Rates = { with: [], without: [] };
    const rounds = bench.scaled(ROUNDS, 2);
    // The round 0 does not count: the first connections find empty tables.
    for (let round = 0; round <= rounds; round++) {
      bench.report(`passing-cost, ${kind}: round ${round} of ${rounds}`);
      for (const turn of round % 2 === 0 ? TURNS.toReversed() : TURNS) {
        run([...network.within('a'), 'nft', '-f', rules[turn]]);
        await pause(LOADED_MS);
        const rate = await wrk(headers);
        if (round > 0) rates[turn].push(rate);
      }
    }
    return costOf(rates);
  };
  const keepAlive = await measured('keep-alive', []);
  const newEach = await measured('a connection for each request', ['Connection: close']);
  return row({
    name: 'passing-cost',
    value: keepAlive.percent,
    unit: '% of the rate',
    target: '≤ 8 % of HAProxy’s requests, with keep-alive and with a connection for each request',
    met: keepAlive.percent <= 8 && newEach.percent <= 8,
    reference: { name: 'without the rules, requests/s', value: keepAlive.without },
    ratio: 1 - keepAlive.percent / 100,
    others: [{ name: 'without the rules, a connection for each request', value: newEach.without }],
    details: {
      '%, 95 % certain, from': keepAlive.from,
      to: keepAlive.to,
      'requests/s': keepAlive.with,
      'a connection for each request, %': newEach.percent,
      'a connection for each request, %, 95 % certain, from': newEach.from,
      'a connection for each request, %, to': newEach.to,
      'a connection for each request, requests/s': newEach.with,
      pairs: keepAlive.pairs,
    },
  });
}

type Rates = Readonly<Record<(typeof TURNS)[number], number[]>>;

interface Cost {
  /** The median of what the rules cost in each pair of turns, with the interval of the median. */
  readonly percent: number;
  readonly from: number;
  readonly to: number;
  readonly with: number;
  readonly without: number;
  readonly pairs: number;
}

function costOf(rates: Rates): Cost {
  const costs = rates.with
    .map((rate, at) => 100 * (1 - rate / (rates.without[at] ?? Number.NaN)))
    .sort((a, b) => a - b);
  const pairs = costs.length;
  // Ranks of the 95 % interval of a median, by the binomial distribution.
  const lower = Math.max(0, Math.floor(pairs / 2 - 0.98 * Math.sqrt(pairs)));
  return {
    percent: median(costs),
    from: costs[lower] ?? Number.NaN,
    to: costs[pairs - 1 - lower] ?? Number.NaN,
    with: median(rates.with),
    without: median(rates.without),
    pairs,
  };
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
