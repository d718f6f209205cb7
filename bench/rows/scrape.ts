// `scrape-10k`: the time of a compressed scrape of /metrics with 10,000 busy members, the longest time that the agent's event
// loop is blocked, and the age of the statistics. Reference: HAProxy's own exporter with the same configuration.
// `scrape-load`: the latency of requests through HAProxy while the agent is scraped every 15 s, and while it is not.

import { setTimeout as delay } from 'node:timers/promises';
import { type Agent, ManifestFolder, serving, startAgent } from '../support/agent.ts';
import { beforeOthers } from '../support/client-start.ts';
import { startCopy } from '../support/copied-haproxy.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { startLoad } from '../support/load.ts';
import { Addresses, services } from '../support/objects.ts';
import { startModule } from '../support/processes.ts';
import { request } from '../support/request.ts';
import { type Bench, type Benchmark, type Row, row } from '../support/row.ts';
import type { ProbeOrder, ProbeResult, ScrapeOrder, ScrapeResult } from '../support/scrape-process.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median, percentile, sum } from '../support/statistics.ts';
import { processorTime, residentMemory } from '../support/usage.ts';

const MEMBER_PORT = 9000;
const EXPORTER_PORT = 8089;
/** Scrapes until the agent's memory is steady. */
const WARMING = 40;
/** Measured scrapes. */
const SCRAPES = 25;
/** A round of the agent takes several times as long, so the scrapes fall into all parts of a round. */
const SCRAPE_DELAY_MS = 1_300;
/** To measure the processor time of the agent's rounds without a scrape. */
const ROUNDS_SECONDS = 30;
const MAX_REQUESTS = 8;

/** Connections a second, to all listeners in turns. */
const RATE = 250;
const TURNS = 4;
const TURN_SECONDS = 60;
const WARMING_SECONDS = 10;
/** Until the agent makes one round for each scrape. */
const LEARNING_SECONDS = 45;
const SCRAPE_INTERVAL_MS = 15_000;

export const scrape: Benchmark = {
  rows: ['scrape-10k', 'scrape-load'],
  run: async (bench, selected) => {
    if (selected.has('scrape-10k')) bench.measured(await withScratch((scratch) => scrapeRow(scratch, bench)));
    if (selected.has('scrape-load')) bench.measured(await loadRow(bench));
  },
};

interface Served {
  readonly agent: Agent;
  /** The URL of /metrics. */
  readonly url: string;
  readonly vips: readonly string[];
}

/** Starts an agent with 10,000 members. */
async function serve(scratch: Scratch, bench: Bench): Promise<Served> {
  const count = bench.scaled(1_000, 5);
  const member = responder(`0.0.0.0:${MEMBER_PORT}`);
  // In production, members run on other hosts and do not wait for this host's processors.
  const options = { globals: member.globals, within: beforeOthers() };
  await startHaproxy(scratch, 'member', bench.haproxy, member.body, options);
  const specs = services(new Addresses(), count, 10, { memberPort: MEMBER_PORT });
  const folder = new ManifestFolder(scratch.path('m'), specs);
  const agent = startAgent(scratch, folder.path, { haproxy: bench.haproxy });
  await serving(agent, count);
  const url = `http://${/"listen":"([^"]+)"/.exec(agent.output())?.[1]}/metrics`;
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

/** HAProxy's own exporter. */
const EXPORTER = `
frontend exporter
    mode http
    bind 127.0.0.1:${EXPORTER_PORT}
    http-request use-service prometheus-exporter
`;

async function scrapeRow(scratch: Scratch, bench: Bench): Promise<Row> {
  const { agent, url, vips } = await serve(scratch, bench);
  await startCopy(scratch, bench.haproxy, agent, vips, (text) => `${text}${EXPORTER}`);
  const exporter = `http://127.0.0.1:${EXPORTER_PORT}/metrics`;
  const { scrape } = startScraper(scratch, 'scrape');
  const { probe } = startScraper(scratch, 'probe');
  const memory = (): number => residentMemory(agent.pid);
  const before = memory();
  const first = await scrape({ url, gzip: true });
  for (let at = 0; at < bench.scaled(WARMING, 3); at++) {
    await scrape({ url, gzip: true });
    await delay(bench.scaled(SCRAPE_DELAY_MS));
  }
  const after = memory();
  await requestAll(vips);
  const [gzip, plain, ofExporter]: [ScrapeResult[], ScrapeResult[], ScrapeResult[]] = [[], [], []];
  for (let round = 1; round <= bench.scaled(SCRAPES, 3); round++) {
    bench.report(`scrape-10k: round ${round}`);
    gzip.push(await scrape({ url, gzip: true }));
    plain.push(await scrape({ url, gzip: false }));
    ofExporter.push(await scrape({ url: exporter, gzip: false }));
    await delay(bench.scaled(SCRAPE_DELAY_MS));
  }
  bench.report('scrape-10k: processor time of the rounds, longest block of the event loop');
  const seconds = bench.scaled(ROUNDS_SECONDS);
  const [ofAgent, ofHaproxy] = [shareOf([agent.pid]), shareOf(agent.haproxyPids())];
  await delay(1_000 * seconds);
  const shares = { agent: ofAgent(), haproxy: ofHaproxy() };
  const probing = probe({ probe: url, seconds });
  for (let at = 0; at < seconds; at++) await Promise.all([scrape({ url, gzip: true }), delay(1_000)]);
  const { slowest: block } = await probing;
  const took = (results: readonly ScrapeResult[]): number => median(results.map(({ ms }) => ms));
  const age = Math.max(...plain.map((each) => each.age));
  const value = took(gzip);
  return row({
    name: 'scrape-10k',
    value,
    unit: 'ms',
    target: '≤ 150 ms, event loop blocked ≤ 20 ms, statistics ≤ 10 s old',
    met: value <= 150 && block <= 20 && age <= 10,
    reference: { name: "HAProxy's own exporter", value: took(ofExporter) },
    details: {
      'longest block of the event loop': block,
      'age in s, longest': age,
      'age in s, median': median(plain.map((each) => each.age)),
      slowest: Math.max(...gzip.map(({ ms }) => ms)),
      'first scrape, which waits for a round': first.ms,
      'without gzip': took(plain),
      MB: (gzip[0]?.bytes ?? 0) / 1e6,
      'MB without gzip': (plain[0]?.bytes ?? 0) / 1e6,
      'MB of the exporter': (ofExporter[0]?.bytes ?? 0) / 1e6,
      '% of a processor, agent': shares.agent,
      '% of a processor, HAProxy': shares.haproxy,
      'MB resident before the first scrape': before,
      [`MB resident after ${bench.scaled(WARMING, 3)} scrapes`]: after,
      'MB resident after the last scrape': memory(),
    },
  });
}

/** Sends one request to each VIP. */
async function requestAll(vips: readonly string[]): Promise<void> {
  const left = vips[Symbol.iterator]();
  const requests = Array.from({ length: MAX_REQUESTS }, async () => {
    for (const vip of left) {
      const { failure } = await request(vip, 8080);
      if (failure !== '') throw new Error(`${vip} does not answer: ${failure}`);
    }
  });
  await Promise.all(requests);
}

/** Returns a function that gives the percentage of one processor that the processes have used since now. */
function shareOf(pids: readonly number[]): () => number {
  const took = (): number => sum(pids.map(processorTime));
  const [began, before] = [performance.now(), took()];
  return () => (100 * (took() - before)) / (performance.now() - began);
}

async function loadRow(bench: Bench): Promise<Row> {
  const [scraped, unscraped]: [number[], number[]] = [[], []];
  for (let turn = 1; turn <= bench.scaled(TURNS, 1); turn++) {
    bench.report(`scrape-load: turn ${turn}`);
    await withScratch((scratch) => loadTurn(scratch, bench, scraped, unscraped));
  }
  const p99 = (values: readonly number[]): number => percentile(values, 0.99);
  const value = p99(scraped);
  return row({
    name: 'scrape-load',
    value,
    unit: 'ms',
    target: 'p99 with a scrape every 15 s less the p99 without ≤ 1 ms',
    met: value - p99(unscraped) <= 1,
    reference: { name: 'no scrapes', value: p99(unscraped) },
    details: {
      'p50, scrapes': median(scraped),
      'p50, no scrapes': median(unscraped),
      'p99.9, scrapes': percentile(scraped, 0.999),
      'p99.9, no scrapes': percentile(unscraped, 0.999),
      'slowest, scrapes': Math.max(...scraped),
      'slowest, no scrapes': Math.max(...unscraped),
      requests: scraped.length,
    },
  });
}

/** With an agent of its own, because an agent reads HAProxy for minutes after a scrape. */
async function loadTurn(
  scratch: Scratch,
  bench: Bench,
  scraped: number[],
  unscraped: number[],
): Promise<void> {
  const { url, vips } = await serve(scratch, bench);
  const { scrape } = startScraper(scratch, 'scrape');
  const load = startLoad(scratch, beforeOthers());
  const requests = async (seconds: number): Promise<readonly number[]> => {
    const { took, failures } = await load({ addresses: vips, port: 8080, rate: RATE, seconds });
    if (failures.length > 0) throw new Error(`${failures.length} requests failed: ${failures[0]?.why}`);
    return took;
  };
  const whileScraped = async (seconds: number): Promise<readonly number[]> => {
    const end = performance.now() + 1_000 * seconds;
    const measured = requests(seconds);
    for (; performance.now() < end; await delay(Math.min(SCRAPE_INTERVAL_MS, end - performance.now())))
      await scrape({ url, gzip: true });
    return measured;
  };
  const seconds = bench.scaled(TURN_SECONDS);
  await requests(bench.scaled(WARMING_SECONDS));
  unscraped.push(...(await requests(seconds)));
  await whileScraped(bench.scaled(LEARNING_SECONDS));
  scraped.push(...(await whileScraped(seconds)));
}
