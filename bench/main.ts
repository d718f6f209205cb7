// `make bench`: runs benchmarks, prints the table of their rows and writes bench/results.json, again after each row.
// SIGINT, SIGTERM and SIGHUP end it with all that it has started; the rows that have ended stay.
// --rows or ROWS selects rows by a pattern. Variables: BENCH_SCALE is a share of the full size (for tests), BENCH_RESULTS
// another result file, HAPROXY another HAProxy, BENCH_CHANGES the number of changes of `vips-churn`, BENCH_PATIENCE the
// seconds to wait for a quiet machine before each benchmark. A missed target is printed and leaves the exit status at 0.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { endMarked } from '../scripts/marked-processes.ts';
import { ack } from './rows/ack.ts';
import { allocate } from './rows/allocate.ts';
import { amphora } from './rows/amphora.ts';
import { amphoraPair } from './rows/amphora-pair.ts';
import { apiChanges } from './rows/api-changes.ts';
import { apiColdStart } from './rows/api-cold-start.ts';
import { authCost } from './rows/auth-cost.ts';
import { bgp } from './rows/bgp.ts';
import { burstReloads } from './rows/burst-reloads.ts';
import { certificates } from './rows/certificates.ts';
import { coldStart } from './rows/cold-start.ts';
import { connectionLog } from './rows/connection-log.ts';
import { cpuPerChange } from './rows/cpu-per-change.ts';
import { editToTraffic } from './rows/edit-to-traffic.ts';
import { egress } from './rows/egress.ts';
import { ejection } from './rows/ejection.ts';
import { failover } from './rows/failover.ts';
import { idle } from './rows/idle.ts';
import { jwtCost } from './rows/jwt-cost.ts';
import { kernel } from './rows/kernel.ts';
import { kernelApi } from './rows/kernel-api.ts';
import { newService } from './rows/new-service.ts';
import { newServiceAddress } from './rows/new-service-address.ts';
import { pairFaults } from './rows/pair-faults.ts';
import { passingCost } from './rows/passing-cost.ts';
import { planRequests } from './rows/plan-requests.ts';
import { rolling } from './rows/rolling.ts';
import { rollingAbrupt } from './rows/rolling-abrupt.ts';
import { routeChange } from './rows/route-change.ts';
import { routeCost } from './rows/route-cost.ts';
import { routesAtOnce } from './rows/routes-at-once.ts';
import { rssKernel } from './rows/rss-kernel.ts';
import { scrape } from './rows/scrape.ts';
import { throughputHaproxy } from './rows/throughput-haproxy.ts';
import { benchOf } from './support/bench.ts';
import { busy, machine, stolen, versions } from './support/machine.ts';
import type { Benchmark, Row } from './support/row.ts';
import { cleanAll } from './support/scratch.ts';
import { table } from './support/table.ts';

const QUIET_PERCENT = 15;

/** In the order in which they run. */
const benchmarks: readonly Benchmark[] = [
  ack,
  cpuPerChange,
  editToTraffic,
  newService,
  kernel,
  egress,
  rssKernel,
  amphora,
  rolling,
  rollingAbrupt,
  ejection,
  burstReloads,
  throughputHaproxy,
  passingCost,
  routeCost,
  authCost,
  jwtCost,
  routeChange,
  certificates,
  connectionLog,
  planRequests,
  scrape,
  idle,
  coldStart,
  apiChanges,
  kernelApi,
  apiColdStart,
  allocate,
  newServiceAddress,
  routesAtOnce,
  failover,
  amphoraPair,
  pairFaults,
  bgp,
];

const { values } = parseArgs({ options: { rows: { type: 'string' } } });
const pattern = new RegExp(values.rows ?? process.env.ROWS ?? '');
const results = process.env.BENCH_RESULTS ?? fileURLToPath(new URL('results.json', import.meta.url));
// The system's programs, before those of npm's packages: Debian installs haproxy in sbin, which an ordinary user's PATH lacks.
process.env.PATH = `/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:${process.env.PATH}`;
// Node would load these authorities into every child's memory; a service has no such variable.
delete process.env.NODE_EXTRA_CA_CERTS;
process.env.BENCH_RUN ??= String(process.pid);

const bench = benchOf(
  process.env,
  (text) => console.error(`${new Date().toISOString().slice(11, 19)} ${text}`),
  (...measured) => keep(measured),
);
const selected = new Set(benchmarks.flatMap(({ rows }) => rows).filter((name) => pattern.test(name)));
if (selected.size === 0) {
  console.error(
    `No row's name matches ${pattern}: there are ${benchmarks.flatMap(({ rows }) => rows).join(', ')}`,
  );
  process.exit(2);
}

// bin/headgate runs an agent from its sources if one is newer than the bundle, with 10 MB more. In a process of its own, because
// esbuild's would stay beside what is measured.
if (bench.scaled(100) >= 100) {
  bench.report('Bundling the agent');
  execFileSync(process.execPath, [fileURLToPath(new URL('../scripts/bundle.ts', import.meta.url))], {
    stdio: 'inherit',
  });
}

// Every process of a benchmark inherits it. The folder has all their files, also those of a process that is killed.
const temporary = mkdtempSync(join(tmpdir(), 'b-'));
process.env.TMPDIR = temporary;
let isStopping = false;
for (const [signal, status] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)
  process.on(signal, () => void stop(status));

const about = { versions: versions(bench.haproxy), machine: machine() };
const rows: Row[] = [];
const failures: string[] = [];
/** What every row of the present benchmark gets. */
let around: () => Readonly<Record<string, number>> = () => ({});
for (const benchmark of benchmarks) {
  const own = new Set(benchmark.rows.filter((name) => selected.has(name)));
  if (own.size === 0 || isStopping) continue;
  try {
    const before = await quiet();
    const share = stolen();
    around = () => ({
      '% of processors busy before': before,
      "% of the processors' time taken by the hypervisor": Number(share().toFixed(1)),
    });
    await benchmark.run(bench, own);
    const without = missing(own);
    if (without.length > 0 && !isStopping) throw new Error(`No value came of ${without.join(', ')}`);
  } catch (error) {
    // Errors while the processes end are expected.
    if (isStopping) await new Promise(() => undefined);
    // The other benchmarks continue; the exit status reports the missing rows.
    console.error(error);
    failures.push(...missing(own));
  }
}
console.log(table(rows));
for (const name of failures) console.log(`The benchmark of row ${name} failed: the row has no value`);
await stop(failures.length > 0 ? 1 : 0);

/** The rows that have no value. */
function missing(names: ReadonlySet<string>): readonly string[] {
  return [...names].filter((name) => rows.every((each) => each.name !== name));
}

/** Writes all rows that have ended. An interrupted run leaves a whole file. */
function keep(measured: readonly Row[]): void {
  for (const each of measured) rows.push({ ...each, details: { ...each.details, ...around() } });
  mkdirSync(dirname(results), { recursive: true });
  writeFileSync(`${results}.part`, `${JSON.stringify({ ...about, rows }, null, 2)}\n`);
  renameSync(`${results}.part`, results);
}

/** Ends all that the benchmarks have started, and then this process. A second signal changes nothing. */
async function stop(status: number): Promise<void> {
  if (isStopping) return;
  isStopping = true;
  await cleanAll();
  await endMarked(`TMPDIR=${temporary}`);
  rmSync(temporary, { recursive: true, force: true, maxRetries: 5 });
  process.exit(status);
}

/** Waits up to BENCH_PATIENCE seconds for a quiet machine; returns the percentage of processor time that is in use. */
async function quiet(): Promise<number> {
  const end = performance.now() + 1_000 * Number(process.env.BENCH_PATIENCE ?? 0);
  for (;;) {
    const share = Math.round(await busy(1_000));
    if (share < QUIET_PERCENT || performance.now() > end) return share;
  }
}
