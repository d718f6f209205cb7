// A pair of hosts under all that happens to one in its life, at once and for long: endpoints change on a real API server,
// Services come and go (a reload each), both hosts are scraped every second, the roles are exchanged again and again.
// Memory, descriptors, threads, timers and processes of everything that runs must be what they were.
// SOAK_MINUTES makes it longer (`make soak`).

import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import ava from 'ava';
import { keepalivedPaths } from '../../agent/keepalived/paths.ts';
import { residentMemory } from '../../bench/support/usage.ts';
import { type AgentPair, order, roleOf, type Side, startAgentPair } from '../support/agent-pair.ts';
import { Churn } from '../support/churn.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube.ts';
import { servicePath, slicePath } from '../support/kube-objects.ts';
import { activeResources, INSPECTED, liveHeap } from '../support/live-heap.ts';
import { requires } from '../support/requirements.ts';
import { type Json, webObjects } from '../support/service-objects.ts';
import { SoakSeries } from '../support/soak-series.ts';
import { SteadyClient } from '../support/steady-client.ts';

const needs = kubeNeeds('keepalived', 'ip', 'nft', 'nsenter', 'sysctl', 'openssl');
const test = requires(ava, { ...needs, haproxy: true, root: true });

const { SOAK_MINUTES } = process.env;
const SECONDS = SOAK_MINUTES === undefined ? 40 : 60 * Number(SOAK_MINUTES);
/** Milliseconds. */
const SAMPLE_EVERY = Math.max(1_000, SECONDS * 8);
const FAILOVER_EVERY = Math.min(60_000, SECONDS * 300);
const SERVICE_EVERY = Math.min(20_000, SECONDS * 200);
/** Seconds for which removed members are remembered: 45,000 of them after the default of 5 min, which is to be the warm-up's. */
const DRAIN_TIMEOUT = Math.min(300, Math.floor(SECONDS / 10));
/** Endpoint writes a second. */
const RATE = 50;
const VIP = '10.9.1.1';
const PORT = 8080;

/** What the median of a series may grow by from the first third to the last one: megabytes, else a count. */
const ALLOWED: Readonly<Record<string, number>> = {
  // What is remembered of names and of removed members levels off after some minutes.
  'agent live heap': SOAK_MINUTES === undefined ? 6 : 3,
  'agent RSS': 15,
  // The median of few samples swings by the connections of a moment.
  'agent descriptors': SOAK_MINUTES === undefined ? 6 : 2,
  'agent threads': 0,
  'agent timers': 2,
  'agent resources': 4,
  'HAProxy processes': 1,
  'HAProxy master RSS': 2,
  'HAProxy master descriptors': 1,
  'HAProxy worker RSS': 5,
  'HAProxy worker descriptors': 4,
  'keepalived RSS': 2,
  'keepalived descriptors': 1,
};

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true });
});
test.after.always(() => kube?.stop());

test.serial(
  'A pair that is changed, reloaded, scraped and failed over for long stays what it was',
  async (t) => {
    const pair = await startAgentPair(t, VIP, {
      prepare: (_, network) => serve('web', VIP, [network.v4('client')]),
      flags: ['--kubeconfig', kube.kubeconfig, '--drain-timeout', `${DRAIN_TIMEOUT}s`],
      env: INSPECTED,
    });
    t.timeout(SECONDS * 1_000 + 300_000);
    const { network } = pair;
    const sides = [pair.active, pair.standby];
    const churn = new Churn(kube, pair.active.host, { rate: RATE, vip: (index) => `10.9.2.${index + 1}` });
    await churn.prepare();
    const isSame = async (): Promise<boolean> => {
      for (const { host } of sides) {
        const differences = await churn.differences(host);
        if (differences.length > 0) throw new Error(differences.slice(0, 5).join('; '));
      }
      return true;
    };
    await pair.active.host.until('all is there', isSame);
    // What is made once, for the first of its kind, is made now.
    await Promise.all([churn.run(5), ...sides.map(scrape)]);
    await exchange(pair);
    await comeAndGo(0);
    await pair.active.host.until('all is there again', isSame);
    const atRest = await Promise.all(sides.map(({ agent }) => activeResources(agent)));

    const series = new SoakSeries();
    const client = new SteadyClient(network, 'client', VIP, PORT);
    const end = performance.now() + SECONDS * 1_000;
    const counts = { scrapes: 0, reloads: 0, failovers: 0, refusals: 0 };
    const written = churn.writes;
    await Promise.all([
      churn.run(SECONDS),
      every(1_000, end, async () => {
        for (const side of sides) counts.scrapes += await scrape(side);
      }),
      every(SERVICE_EVERY, end, async (round) => comeAndGo(round)),
      every(FAILOVER_EVERY, end, async () => {
        counts.refusals += await exchange(pair);
        counts.failovers++;
      }),
      every(SAMPLE_EVERY, end, async () => {
        for (const side of sides) await sample(side, series);
      }),
    ]);
    const { answered, failures } = await client.stop();
    await pair.active.host.until('HAProxy has what the slices say', isSame, 60_000);
    for (const { host } of sides) counts.reloads += await host.reloads();

    const verdicts = series.verdicts((name) => ALLOWED[name.slice(2)] ?? 0);
    t.log(`${churn.writes - written} endpoint writes in ${SECONDS} s, ${JSON.stringify(counts)}`);
    t.log(`client: ${answered} answered, ${JSON.stringify(failures)}`);
    for (const { name, first, last, values } of verdicts)
      t.log(`${name}: ${first} → ${last}: ${values.join(' ')}`);

    const grown = verdicts.filter(({ isFlat }) => !isFlat);
    t.deepEqual(
      grown.map(({ name, first, last }) => `${name}: ${first} → ${last}`),
      [],
    );
    t.is(verdicts.length, 2 * Object.keys(ALLOWED).length);
    t.true(counts.failovers > 0 && counts.reloads > 0 && counts.scrapes > SECONDS / 4);
    const failed = Object.values(failures).reduce((sum, count) => sum + count, 0);
    t.true(failed < answered / 100, `${failed} of ${failed + answered} connections failed`);
    for (const [index, { agent, host }] of sides.entries()) {
      await host.until(
        'as much is open as at rest',
        async () => {
          const more = moreThan(atRest[index] ?? new Map(), await activeResources(agent));
          if (more.length > 0) throw new Error(more.join());
          return true;
        },
        60_000,
      );
    }
    await churn.clean();
  },
);

/** `name` is unique; its endpoints are in one slice. */
async function serve(name: string, vip: string, members: readonly string[]): Promise<void> {
  const [service, slice] = webObjects({ name, address: vip, port: PORT, members });
  for (const [path, body] of [
    [servicePath('default'), service],
    [slicePath('default'), slice],
  ] as const) {
    const { status } = await kube.api('POST', path, body as Json);
    // Each host prepares for itself.
    if (status !== 201 && status !== 409) throw new Error(`${path}: ${status}`);
  }
}

/** A Service comes, and the one before goes: a reload on each host. */
async function comeAndGo(round: number): Promise<void> {
  await serve(`guest-${round}`, `10.9.3.${1 + (round % 250)}`, ['10.70.0.1']);
  if (round === 0) return;
  await kube.must('DELETE', servicePath('default', `guest-${round - 1}`));
  await kube.must('DELETE', slicePath('default', `guest-${round - 1}-1`));
}

/** Exchanges the roles, again where that is refused since the other host is behind; gives how often it was. */
async function exchange({ active, standby }: AgentPair): Promise<number> {
  for (let refusals = 0; ; refusals++) {
    const master = (await roleOf(active.host)) === 'master' ? active : standby;
    const outcome = await order(master.host, 'failover');
    if (outcome.ok) return refusals;
    if (refusals === 20 && SOAK_MINUTES === undefined) return refusals;
    if (refusals === 60) {
      const said = [active, standby].map(({ agent }) => agent.text.slice(-3_000)).join('\n\n');
      throw new Error(`Refused for a minute: ${outcome.message}\n${said}`);
    }
    await delay(1_000);
  }
}

/** In both formats; gives the number of scrapes. */
async function scrape({ agent }: Side): Promise<number> {
  const formats = ['text/plain; version=0.0.4', 'application/openmetrics-text; version=1.0.0'];
  for (const accept of formats) {
    const response = await fetch(`${agent.url}/metrics`, { headers: { accept, 'accept-encoding': 'gzip' } });
    const text = await response.text();
    if (!response.ok || !text.includes('headgate_')) throw new Error(`Scrape: ${response.status} ${text}`);
  }
  return formats.length;
}

async function sample({ name, agent, host }: Side, series: SoakSeries): Promise<void> {
  const line: string[] = [];
  const add = (what: string, value: number): void => {
    const rounded = Math.round(value * 10) / 10;
    series.add(`${name} ${what}`, rounded);
    line.push(`${what} ${rounded}`);
  };
  const resources = await activeResources(agent);
  add('agent live heap', (await liveHeap(agent)) / 1e6);
  add('agent timers', resources.get('Timeout') ?? 0);
  add(
    'agent resources',
    [...resources.values()].reduce((sum, count) => sum + count, 0),
  );
  add('agent RSS', residentMemory(agent.pid));
  add('agent descriptors', entriesOf(`/proc/${agent.pid}/fd`));
  add('agent threads', entriesOf(`/proc/${agent.pid}/task`));

  const master = await host.master();
  const workers = childrenOf(master);
  const worker = workers.at(-1) ?? 0;
  add('HAProxy processes', 1 + workers.length);
  add('HAProxy master RSS', residentMemory(master));
  add('HAProxy master descriptors', entriesOf(`/proc/${master}/fd`));
  add('HAProxy worker RSS', residentMemory(worker));
  add('HAProxy worker descriptors', entriesOf(`/proc/${worker}/fd`));

  const { pidFile, vrrpPidFile } = keepalivedPaths(host.stateDir, host.runtimeDir);
  const pids = [pidFile, vrrpPidFile].map((path) => Number.parseInt(readFileSync(path, 'utf8'), 10));
  add(
    'keepalived RSS',
    pids.reduce((sum, pid) => sum + residentMemory(pid), 0),
  );
  add(
    'keepalived descriptors',
    pids.reduce((sum, pid) => sum + entriesOf(`/proc/${pid}/fd`), 0),
  );
  // A long run shows how it goes.
  if (SOAK_MINUTES !== undefined) console.log(`${new Date().toISOString()} ${name}: ${line.join(', ')}`);
}

/** 0 where it is gone. */
function entriesOf(folder: string): number {
  try {
    return readdirSync(folder).length;
  } catch {
    return 0;
  }
}

/** Oldest first. */
function childrenOf(pid: number): readonly number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return text === '' ? [] : text.split(' ').map(Number);
}

function moreThan(before: ReadonlyMap<string, number>, now: ReadonlyMap<string, number>): readonly string[] {
  return [...now]
    .filter(([kind, count]) => count > (before.get(kind) ?? 0) + 1)
    .map(([kind, count]) => `${kind}: ${before.get(kind) ?? 0} → ${count}`);
}

/** One after the other, none at once; `work` is given its number, from 1. */
async function every(period: number, end: number, work: (round: number) => Promise<void>): Promise<void> {
  for (let round = 1; ; round++) {
    const left = end - performance.now();
    if (left < period) {
      await delay(Math.max(0, left));
      return;
    }
    await delay(period);
    await work(round);
  }
}
