// `scrape-10k`: /metrics of 10,000 members, packed as Prometheus asks for it, and the longest time for which the
// agent's event loop is held meanwhile, with one pool that has traffic and with all of them; what the agent weighs after
// many scrapes. `scrape-p99`: requests through HAProxy, and servers told to it, while it is scraped every second and
// while it is not, in turns. Beside both, HAProxy's own exporter on the same configuration.

import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Runtime } from '../../agent/haproxy/socket/runtime.ts';
import { type Agent, ManifestFolder, serving, startAgent } from '../support/agent.ts';
import { beforeOthers, clientFlags } from '../support/client-start.ts';
import { type Halves, halves } from '../support/halves.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { startLoad } from '../support/load.ts';
import { Addresses, services } from '../support/objects.ts';
import { start, startModule } from '../support/processes.ts';
import { request } from '../support/request.ts';
import { type Bench, type Benchmark, type Row, row } from '../support/row.ts';
import type { ScrapeOrder, ScrapeResult } from '../support/scrape-process.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median, percentile } from '../support/statistics.ts';
import { until } from '../support/until.ts';
import { listeningSockets, residentMemory } from '../support/usage.ts';

const MEMBER_PORT = 9000;
const EXPORTER_PORT = 8089;
/** Connections a second. */
const RATE = 250;
const SECONDS = 3;
/** Of what is compared: in 7,500 requests the p99 is the 75th, which a few bad moments of a shared machine make. */
const COMPARED_SECONDS = 10;
const ROUNDS = 10;
/** After which an agent weighs what it weighs. */
const SCRAPES = 40;
/** After which V8 compiles hardly anything more of what a scrape runs; an agent has mostly been scraped for days. */
const WARMING = 600;
const WARMING_ROUNDS = 3;
/** Where all pools have traffic: rounds, and requests at a time. */
const BUSY_ROUNDS = 3;
const AT_A_TIME = 8;
/** Seconds of one such round, in which all pools are read twice: once in thirty, however often somebody scrapes. */
const BUSY_SECONDS = 58;
/** Milliseconds after which they are read again. */
const REST = 30_000;

type Scrape = (order: ScrapeOrder) => Promise<ScrapeResult>;

export const scrape: Benchmark = {
  rows: ['scrape-10k', 'scrape-p99'],
  run: async (bench, wanted) => {
    const rows: Row[] = [];
    if (wanted.has('scrape-10k')) rows.push(await withScratch((scratch) => scrapeRow(scratch, bench)));
    if (wanted.has('scrape-p99')) rows.push(await withScratch((scratch) => delayRow(scratch, bench)));
    return rows;
  },
};

interface Served {
  readonly agent: Agent;
  /** Where it is scraped, and HAProxy's own exporter. */
  readonly url: string;
  readonly exporter: string;
  readonly vips: readonly string[];
}

/** An agent with 10,000 members and beside it HAProxy's own exporter. */
async function serve(scratch: Scratch, bench: Bench, { host, others }: Halves): Promise<Served> {
  const count = bench.scaled(1_000, 5);
  const member = responder(`0.0.0.0:${MEMBER_PORT}`);
  // Members are on other hosts, as clients are: neither waits for a processor that is taken here.
  const options = { globals: member.globals, within: [...beforeOthers(), ...others] };
  await startHaproxy(scratch, 'member', bench.haproxy, member.body, options);
  const specs = services(new Addresses(), count, 10, { memberPort: MEMBER_PORT });
  const folder = new ManifestFolder(scratch.path('m'), specs);
  const agent = startAgent(scratch, folder.path, { haproxy: bench.haproxy, within: host });
  await serving(agent, count);
  const vips = specs.map(({ vip }) => vip);
  const exporter = await startExporter(scratch, bench, agent, vips, host);
  const url = `http://${/"listen":"([^"]+)"/.exec(agent.said())?.[1]}/metrics`;
  return { agent, url, exporter, vips };
}

function startScraper(scratch: Scratch, name: string, within: readonly string[] = []): Scrape {
  const module = new URL('../support/scrape-process.ts', import.meta.url);
  const child = startModule(scratch, name, module, [], within, clientFlags);
  return (order) => child.ask<ScrapeResult>(order);
}

/** The same text with HAProxy's own exporter, and sockets and ports of its own; where it is scraped. */
async function startExporter(
  scratch: Scratch,
  bench: Bench,
  agent: Agent,
  vips: readonly string[],
  within: readonly string[],
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
  const [program = bench.haproxy, ...args] = [...within, bench.haproxy, '-W', '-f', config];
  start(scratch, 'exporter', program, args, { detached: true });
  await until('The other HAProxy serves', () => listeningSockets(8085, vips) >= vips.length);
  return `http://127.0.0.1:${EXPORTER_PORT}/metrics`;
}

async function scrapeRow(scratch: Scratch, bench: Bench): Promise<Row> {
  const { agent, url, exporter, vips } = await serve(scratch, bench, { host: [], others: [] });
  const ask = startScraper(scratch, 'scrape');
  const weighs = (): number => residentMemory(agent.pid);
  const [own, plain, others, held, busy, busyHeld, between]: ScrapeResult[][] = [[], [], [], [], [], [], []];
  const before = weighs();
  // The first ones warm the code up.
  for (let at = 0; at < bench.scaled(SCRAPES, 3); at++) await ask({ url, gzip: true });
  const after = weighs();
  for (let round = 1; round <= bench.scaled(15, 2); round++) {
    bench.say(`scrape-10k: round ${round}`);
    own?.push(await ask({ url, gzip: true }));
    // Whoever asks for the lag takes time, too.
    held?.push(await ask({ url, gzip: true, lag: true }));
    plain?.push(await ask({ url, gzip: false }));
    others?.push(await ask({ url: exporter, gzip: false }));
  }
  for (let round = 1; round <= bench.scaled(BUSY_ROUNDS, 1); round++) {
    bench.say(`scrape-10k: all pools busy, round ${round}`);
    for (const [results, order] of [
      [busy, { url, gzip: true }],
      [busyHeld, { url, gzip: true, lag: true }],
    ] as const) {
      await delay(bench.scaled(REST));
      await requestAll(vips);
      results?.push(await ask(order));
      await requestAll(vips);
      between?.push(await ask({ url, gzip: true }));
    }
  }
  const took = (results: readonly ScrapeResult[] = []): number => median(results.map(({ ms }) => ms));
  const lagsOf = (results: readonly ScrapeResult[] = []): number[] => results.map(({ lag }) => lag);
  const lags = lagsOf(held);
  const [value, block] = [took(own), Math.max(...lags)];
  return row({
    name: 'scrape-10k',
    value,
    unit: 'ms',
    target: '≤ 150 ms, event loop held ≤ 20 ms',
    met: value <= 150 && block <= 20,
    reference: { name: "HAProxy's own exporter", value: took(others) },
    details: {
      'event loop held, longest': block,
      'event loop held, median of scrapes': median(lags),
      'without gzip': took(plain),
      'MB without gzip': (plain?.[0]?.bytes ?? 0) / 1e6,
      'MB of the exporter': (others?.[0]?.bytes ?? 0) / 1e6,
      slowest: Math.max(...(own ?? []).map(({ ms }) => ms)),
      'all pools busy, members read': took(busy),
      'all pools busy, members as they were': took(between),
      'all pools busy, event loop held, longest': Math.max(...lagsOf(busyHeld)),
      'all pools busy, event loop held, median of scrapes': median(lagsOf(busyHeld)),
      'MB resident before the first scrape': before,
      [`MB resident after ${bench.scaled(SCRAPES, 3)} scrapes`]: after,
      'MB resident after all, with all pools busy': weighs(),
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

async function delayRow(scratch: Scratch, bench: Bench): Promise<Row> {
  const each = halves();
  const { agent, url, exporter, vips } = await serve(scratch, bench, each);
  const [vip = ''] = vips;
  // Prometheus has a machine of its own: here it gets what nobody else wants.
  const ask = startScraper(scratch, 'idle-scrape', ['chrt', '--idle', '0', ...each.others]);
  const load = startLoad(scratch, [...beforeOthers(), ...each.others]);
  const runtime = await Runtime.connect({ socketPath: agent.adminSocket });
  const listener = 'bench:service-00001:tcp:8080:v4';
  const measured = { quiet: [] as number[], own: [] as number[], exporter: [] as number[] };
  const beside: number[] = [];
  const commands = { quiet: [] as number[], own: [] as number[] };
  const besideCommands = { quiet: [] as number[], own: [] as number[] };
  /** `told`: where the times of servers that are added meanwhile go to. */
  const put = async (
    port: number,
    scraped?: string,
    told?: number[],
    { addresses = [vip], seconds = SECONDS }: { addresses?: readonly string[]; seconds?: number } = {},
  ): Promise<readonly number[]> => {
    let isOver = false;
    const scraping = (async (): Promise<void> => {
      while (!isOver && scraped !== undefined) {
        const began = performance.now();
        await ask({ url: scraped, gzip: scraped === url });
        await delay(Math.max(0, 1_000 - (performance.now() - began)));
      }
    })();
    const telling = told === undefined ? [] : tell(runtime, listener, () => isOver);
    const { took, failures } = await load({ addresses, port, rate: RATE, seconds: bench.scaled(seconds) });
    isOver = true;
    await scraping;
    if (failures.length > 0) throw new Error(`${failures.length} requests failed: ${failures[0]?.why}`);
    told?.push(...(await telling));
    return took;
  };
  for (let at = 0; at < bench.scaled(WARMING, 3); at++) {
    await request(vip, 8080);
    await ask({ url, gzip: true });
  }
  for (let round = 0; round < bench.scaled(WARMING_ROUNDS, 1); round++) await put(8080, url, []);
  for (let round = 1; round <= bench.scaled(ROUNDS, 1); round++) {
    bench.say(`scrape-p99: round ${round}`);
    measured.quiet.push(...(await put(8080, undefined, undefined, { seconds: COMPARED_SECONDS })));
    measured.own.push(...(await put(8080, url, undefined, { seconds: COMPARED_SECONDS })));
    besideCommands.quiet.push(...(await put(8080, undefined, commands.quiet)));
    besideCommands.own.push(...(await put(8080, url, commands.own)));
    beside.push(...(await put(8085)));
    measured.exporter.push(...(await put(8085, exporter)));
  }
  const all = { addresses: vips, seconds: BUSY_SECONDS };
  const busy = { quiet: [] as number[], own: [] as number[] };
  for (let round = 1; round <= bench.scaled(BUSY_ROUNDS, 1); round++) {
    bench.say(`scrape-p99: all pools busy, round ${round}`);
    busy.quiet.push(...(await put(8080, undefined, undefined, all)));
    busy.own.push(...(await put(8080, url, undefined, all)));
  }
  runtime.close();
  const p99 = (values: readonly number[]): number => percentile(values, 0.99);
  const ratio = p99(measured.own) / p99(measured.quiet);
  const busyRatio = p99(busy.own) / p99(busy.quiet);
  return row({
    name: 'scrape-p99',
    value: p99(measured.own),
    unit: 'ms',
    target: 'p99 of requests while scraped every second ≤ 1.2 × while not, with one pool busy and with all',
    met: ratio <= 1.2 && busyRatio <= 1.2,
    reference: { name: 'not scraped', value: p99(measured.quiet) },
    others: [
      { name: "HAProxy's own exporter, scraped", value: p99(measured.exporter) },
      { name: "HAProxy's own exporter, not scraped", value: p99(beside) },
    ],
    details: {
      'adding a server, p99 scraped': p99(commands.own),
      'adding a server, p99 not scraped': p99(commands.quiet),
      'adding a server, p50 scraped': median(commands.own),
      'adding a server, p50 not scraped': median(commands.quiet),
      requests: measured.own.length,
      'beside added servers, p99 scraped': p99(besideCommands.own),
      'beside added servers, p99 not scraped': p99(besideCommands.quiet),
      'all pools busy, × not scraped': busyRatio,
      'all pools busy, p99 scraped': p99(busy.own),
      'all pools busy, p99 not scraped': p99(busy.quiet),
      'all pools busy, slowest scraped': Math.max(...busy.own),
      'all pools busy, slowest not scraped': Math.max(...busy.quiet),
      'all pools busy, requests': busy.own.length,
    },
  });
}

/** Milliseconds of each addition of a server to a running HAProxy, one after the other until it is over. */
async function tell(runtime: Runtime, backend: string, isOver: () => boolean): Promise<readonly number[]> {
  const took: number[] = [];
  const server = '127.0.0.1:9';
  while (!isOver()) {
    const began = performance.now();
    const keywords = ['id', '99999', 'weight', '1'];
    await runtime.send([{ kind: 'AddServer', backend, server, address: '127.0.0.1', port: 9, keywords }]);
    took.push(performance.now() - began);
    await runtime.send([{ kind: 'DeleteServer', backend, server }]);
    await delay(10);
  }
  return took;
}
