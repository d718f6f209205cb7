// `scrape-10k`: /metrics of 10,000 members in all of which something happens, packed as Prometheus asks for it: how long
// a scrape takes, how long the agent's event loop is held at most, how old the figures are. Beside it HAProxy's own
// exporter on the same configuration.
// `scrape-load`: requests through HAProxy while the agent is scraped every 15 s, and while it stands still, in turns.

import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type Agent, ManifestFolder, serving, startAgent } from '../support/agent.ts';
import { beforeOthers } from '../support/client-start.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { startLoad } from '../support/load.ts';
import { Addresses, services } from '../support/objects.ts';
import { start, startModule } from '../support/processes.ts';
import { request } from '../support/request.ts';
import { type Bench, type Benchmark, type Row, row } from '../support/row.ts';
import type { ProbeOrder, ProbeResult, ScrapeOrder, ScrapeResult } from '../support/scrape-process.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median, percentile, sum } from '../support/statistics.ts';
import { until } from '../support/until.ts';
import { listeningSockets, processorTime, residentMemory } from '../support/usage.ts';

const MEMBER_PORT = 9000;
const EXPORTER_PORT = 8089;
/** Scrapes after which an agent weighs what it weighs, and those that are measured. */
const WARMING = 40;
const SCRAPES = 25;
/** Between two scrapes: a round of the agent takes several, so that scrapes fall into all of its parts. */
const SCRAPE_DELAY_MS = 1_300;
/** Of what the rounds take without a scrape. */
const ROUNDS_SECONDS = 30;
/** Requests at a time. */
const AT_A_TIME = 8;

/** Connections a second, taken by all listeners in turns. */
const RATE = 250;
const TURNS = 5;
const TURN_SECONDS = 60;
const SCRAPE_INTERVAL_MS = 15_000;

export const scrape: Benchmark = {
  rows: ['scrape-10k', 'scrape-load'],
  run: async (bench, wanted) => {
    const rows: Row[] = [];
    if (wanted.has('scrape-10k')) rows.push(await withScratch((scratch) => scrapeRow(scratch, bench)));
    if (wanted.has('scrape-load')) rows.push(await withScratch((scratch) => loadRow(scratch, bench)));
    return rows;
  },
};

interface Served {
  readonly agent: Agent;
  /** Where it is scraped. */
  readonly url: string;
  readonly vips: readonly string[];
}

/** An agent with 10,000 members. */
async function serve(scratch: Scratch, bench: Bench): Promise<Served> {
  const count = bench.scaled(1_000, 5);
  const member = responder(`0.0.0.0:${MEMBER_PORT}`);
  // Members are on other hosts in truth: they do not wait for a processor that is taken here.
  const options = { globals: member.globals, within: beforeOthers() };
  await startHaproxy(scratch, 'member', bench.haproxy, member.body, options);
  const specs = services(new Addresses(), count, 10, { memberPort: MEMBER_PORT });
  const folder = new ManifestFolder(scratch.path('m'), specs);
  const agent = startAgent(scratch, folder.path, { haproxy: bench.haproxy });
  await serving(agent, count);
  const url = `http://${/"listen":"([^"]+)"/.exec(agent.said())?.[1]}/metrics`;
  return { agent, url, vips: specs.map(({ vip }) => vip) };
}

function startScraper(scratch: Scratch, name: string) {
  const module = new URL('../support/scrape-process.ts', import.meta.url);
  const child = startModule(scratch, name, module);
  return {
    scrape: (order: ScrapeOrder) => child.ask<ScrapeResult>(order),
    probe: (order: ProbeOrder) => child.ask<ProbeResult>(order),
  };
}

/** The same text with HAProxy's own exporter, and sockets and ports of its own; where it is scraped. */
async function startExporter(
  scratch: Scratch,
  bench: Bench,
  agent: Agent,
  vips: readonly string[],
): Promise<string> {
  const config = scratch.path('exporter.cfg');
  const text = readFileSync(agent.config, 'utf8')
    .replaceAll(scratch.path('agent-r/haproxy'), scratch.directory)
    .replaceAll(/^( {4}bind \S+):8080\b/gm, '$1:8085');
  writeFileSync(
    config,
    `${text}
frontend exporter
    mode http
    bind 127.0.0.1:${EXPORTER_PORT}
    http-request use-service prometheus-exporter
`,
  );
  start(scratch, 'exporter', bench.haproxy, ['-W', '-f', config], { detached: true });
  await until('The other HAProxy serves', () => listeningSockets(8085, vips) >= vips.length);
  return `http://127.0.0.1:${EXPORTER_PORT}/metrics`;
}

async function scrapeRow(scratch: Scratch, bench: Bench): Promise<Row> {
  const { agent, url, vips } = await serve(scratch, bench);
  const exporter = await startExporter(scratch, bench, agent, vips);
  const { scrape } = startScraper(scratch, 'scrape');
  const { probe } = startScraper(scratch, 'probe');
  const weighs = (): number => residentMemory(agent.pid);
  const before = weighs();
  const first = await scrape({ url, gzip: true });
  for (let at = 0; at < bench.scaled(WARMING, 3); at++) {
    await scrape({ url, gzip: true });
    await delay(bench.scaled(SCRAPE_DELAY_MS));
  }
  const after = weighs();
  await requestAll(vips);
  const [own, plain, others]: [ScrapeResult[], ScrapeResult[], ScrapeResult[]] = [[], [], []];
  for (let round = 1; round <= bench.scaled(SCRAPES, 3); round++) {
    bench.say(`scrape-10k: round ${round}`);
    own.push(await scrape({ url, gzip: true }));
    plain.push(await scrape({ url, gzip: false }));
    others.push(await scrape({ url: exporter, gzip: false }));
    await delay(bench.scaled(SCRAPE_DELAY_MS));
  }
  bench.say('scrape-10k: what the rounds take, and how long they hold the event loop');
  const seconds = bench.scaled(ROUNDS_SECONDS);
  const [ofAgent, ofHaproxy] = [shareOf([agent.pid]), shareOf(agent.haproxyPids())];
  await delay(1_000 * seconds);
  const shares = { agent: ofAgent(), haproxy: ofHaproxy() };
  const probing = probe({ probe: url, seconds });
  for (let at = 0; at < seconds; at++) await Promise.all([scrape({ url, gzip: true }), delay(1_000)]);
  const { slowest: block } = await probing;
  const took = (results: readonly ScrapeResult[]): number => median(results.map(({ ms }) => ms));
  const age = Math.max(...plain.map((each) => each.age));
  const value = took(own);
  return row({
    name: 'scrape-10k',
    value,
    unit: 'ms',
    target: '≤ 150 ms, event loop held ≤ 20 ms, figures ≤ 10 s old',
    met: value <= 150 && block <= 20 && age <= 10,
    reference: { name: "HAProxy's own exporter", value: took(others) },
    details: {
      'event loop held, longest': block,
      'seconds old, at most': age,
      'seconds old, median': median(plain.map((each) => each.age)),
      slowest: Math.max(...own.map(({ ms }) => ms)),
      'the first one, which waits for a round': first.ms,
      'without gzip': took(plain),
      MB: (own[0]?.bytes ?? 0) / 1e6,
      'MB without gzip': (plain[0]?.bytes ?? 0) / 1e6,
      'MB of the exporter': (others[0]?.bytes ?? 0) / 1e6,
      '% of a processor, agent': shares.agent,
      '% of a processor, HAProxy': shares.haproxy,
      'MB resident before the first scrape': before,
      [`MB resident after ${bench.scaled(WARMING, 3)} scrapes`]: after,
      'MB resident after all': weighs(),
    },
  });
}

/** One request to each. */
async function requestAll(vips: readonly string[]): Promise<void> {
  const left = vips[Symbol.iterator]();
  const requests = Array.from({ length: AT_A_TIME }, async () => {
    for (const vip of left) {
      const { failure } = await request(vip, 8080);
      if (failure !== '') throw new Error(`${vip} does not answer: ${failure}`);
    }
  });
  await Promise.all(requests);
}

/** Percent of one processor that these take from now until it is called. */
function shareOf(pids: readonly number[]): () => number {
  const took = (): number => sum(pids.map(processorTime));
  const [began, before] = [performance.now(), took()];
  return () => (100 * (took() - before)) / (performance.now() - began);
}

async function loadRow(scratch: Scratch, bench: Bench): Promise<Row> {
  const { agent, url, vips } = await serve(scratch, bench);
  const { scrape } = startScraper(scratch, 'scrape');
  const load = startLoad(scratch, beforeOthers());
  const seconds = bench.scaled(TURN_SECONDS);
  const requests = async (): Promise<readonly number[]> => {
    const { took, failures } = await load({ addresses: vips, port: 8080, rate: RATE, seconds });
    if (failures.length > 0) throw new Error(`${failures.length} requests failed: ${failures[0]?.why}`);
    return took;
  };
  const whileScraped = async (): Promise<readonly number[]> => {
    const end = performance.now() + 1_000 * seconds;
    const measured = requests();
    for (; performance.now() < end; await delay(Math.min(SCRAPE_INTERVAL_MS, end - performance.now())))
      await scrape({ url, gzip: true });
    return measured;
  };
  // After its last scrape the agent reads HAProxy for minutes still, unless it stands still itself.
  const whileStill = async (): Promise<readonly number[]> => {
    process.kill(agent.pid, 'SIGSTOP');
    try {
      return await requests();
    } finally {
      process.kill(agent.pid, 'SIGCONT');
    }
  };
  await whileScraped();
  const [scraped, still]: [number[], number[]] = [[], []];
  for (let turn = 1; turn <= bench.scaled(TURNS, 1); turn++) {
    bench.say(`scrape-load: turn ${turn}`);
    still.push(...(await whileStill()));
    scraped.push(...(await whileScraped()));
  }
  const p99 = (values: readonly number[]): number => percentile(values, 0.99);
  const value = p99(scraped);
  return row({
    name: 'scrape-load',
    value,
    unit: 'ms',
    target: 'p99 of requests while scraped every 15 s ≤ 1.2 × while not',
    met: value <= 1.2 * p99(still),
    reference: { name: 'not scraped, the agent stopped', value: p99(still) },
    details: {
      'p50 scraped': median(scraped),
      'p50 not scraped': median(still),
      'p99.9 scraped': percentile(scraped, 0.999),
      'p99.9 not scraped': percentile(still, 0.999),
      'slowest scraped': Math.max(...scraped),
      'slowest not scraped': Math.max(...still),
      requests: scraped.length,
    },
  });
}
