// A pair of hosts under all that happens to one in its life, at once and for long: endpoints change on a real API server,
// Services come and go (a reload each), both hosts are scraped every second, the roles are exchanged again and again.
// Memory, descriptors, threads, timers and processes of everything that runs must be what they were: at rest, before and
// afterwards, so that one thing too many in all that time shows, and in a long run also in between.
// SOAK_MINUTES makes it longer (`make soak`).

import { setTimeout as delay } from 'node:timers/promises';
import ava from 'ava';
import { Deadline } from '../support/basics/deadline.ts';
import { requires } from '../support/basics/requirements.ts';
import { Churn } from '../support/kube/churn.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath, slicePath } from '../support/kube/kube-objects.ts';
import { INSPECTED } from '../support/measure/live-heap.ts';
import { type Measures, measure, measureAtRest, moreThan } from '../support/measure/side-measures.ts';
import { SoakSeries } from '../support/measure/soak-series.ts';
import { type Json, webObjects } from '../support/values/service-objects.ts';
import { type AgentPair, order, roleOf, type Side, startAgentPair } from '../support/vrrp/agent-pair.ts';
import { SteadyClient } from '../support/vrrp/steady-client.ts';

const { programs = [] } = kubeNeeds();
const more = ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl', 'openssl'];
const test = requires(ava, { programs: [...programs, ...more], haproxy: true, root: true });

const { SOAK_MINUTES } = process.env;
const SECONDS = SOAK_MINUTES === undefined ? 40 : 60 * Number(SOAK_MINUTES);
/** Milliseconds. */
const SAMPLE_EVERY = SECONDS * 8;
const FAILOVER_EVERY = Math.min(60_000, SECONDS * 150);
const SERVICE_EVERY = Math.min(20_000, SECONDS * 200);
/** Seconds for which removed members are remembered: 4,500 of them at most, and none at rest. */
const DRAIN_TIMEOUT = Math.min(30, Math.floor(SECONDS / 10));
/** What a failover leaves to do is done after a minute. */
const AT_REST_MS = 75_000;
/** Milliseconds that one measurement at rest takes. */
const MEASUREMENT = 5_000;
/** Endpoint writes a second. */
const RATE = 50;
const VIP = '10.9.1.1';
const PORT = 8080;

/**
 * What there may be more of at the end than at the beginning, both at rest: megabytes, else a count; 1 of what is not
 * named here, since another role may need one more.
 */
const ALLOWED: Readonly<Record<string, number>> = {
  // In half an hour what V8 has optimized by then makes 1.0 to 1.4, and a leak of a kilobyte a second 1.8 more.
  'agent live heap': SOAK_MINUTES === undefined ? 1 : 2.5,
  // malloc keeps what the busiest moment needed, on a busy machine up to 15; a leak of a short run shows in the live heap.
  'agent RSS': SOAK_MINUTES === undefined ? 20 : 12,
  'agent descriptors': 1,
  'agent threads': 0,
  'agent timers': 3,
  // The second connection to HAProxy, which is made when it is first needed, and its timer.
  'agent resources': 2,
  'HAProxy processes': 0,
  'HAProxy master RSS': 3,
  'HAProxy master descriptors': 1,
  'HAProxy worker RSS': 5,
  'HAProxy worker descriptors': 4,
  'keepalived RSS': 2,
  'keepalived descriptors': 1,
};
const allowed = (name: string): number => ALLOWED[name] ?? 1;
/**
 * So much more may be there at the quietest moment of a long run's last third than at that of its first one. Counts are
 * of what is under way, too; memory has grown by then to what it needs.
 */
const inBetween = (name: string): number => {
  if (name === 'agent RSS') return 6;
  if (name === 'agent live heap') return 1.5;
  return isMemory(name) ? allowed(name) : allowed(name) + 4;
};
const isMemory = (name: string): boolean => /RSS|heap/.test(name);

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true });
});
test.after.always(() => kube?.stop());

test.serial(
  'A pair keeps its memory and descriptors over many changes, reloads, scrapes and failovers',
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
    // What is made once, for the first of its kind, is made now, and V8 takes the room that scrapes need.
    await Promise.all([churn.run(5), ...sides.map(scrapeOften)]);
    await exchange(pair);
    await comeAndGo(0);
    await pair.active.host.until('all is there again', isSame);
    // Until what was removed is no longer remembered.
    await delay(DRAIN_TIMEOUT * 1_000);
    const atRest = await Promise.all(sides.map(measureAtRest));

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
        // The few looks of a short run would show what is under way.
        if (SOAK_MINUTES === undefined) return;
        for (const side of sides) {
          const measures = await measure(side);
          for (const name of Object.keys(ALLOWED))
            series.add(`${side.name} ${name}`, measures.get(name) ?? Number.NaN);
          // It shows how it goes.
          console.log(`${new Date().toISOString()} ${side.name}: ${[...measures].flat().join(' ')}`);
        }
      }),
    ]);
    const { answered, failures } = await client.stop();
    await pair.active.host.until('HAProxy has what the slices say', isSame, 60_000);
    for (const { host } of sides) counts.reloads += await host.reloads();

    const verdicts = series.verdicts((name) => inBetween(name.slice(2)));
    t.log(`${churn.writes - written} endpoint writes in ${SECONDS} s, ${JSON.stringify(counts)}`);
    const happened = {
      'endpoint write': churn.writes - written,
      scrape: counts.scrapes / 2,
      reload: counts.reloads / 2,
      failover: counts.failovers,
    };
    const shown = Object.entries(happened).map(([what, count]) => `${leastSeen(count)} by each ${what}`);
    t.log(`bytes that would have been seen, were they left behind: ${shown.join(', ')}`);
    t.log(`client: ${answered} answered, ${JSON.stringify(failures)}`);
    for (const { name, first, last, values } of verdicts)
      t.log(`${name}: ${first} → ${last}: ${values.join(' ')}`);

    const grown = verdicts.filter(({ isFlat }) => !isFlat);
    t.deepEqual(
      grown.map(({ name, first, last }) => `${name}: ${first} → ${last}`),
      [],
    );
    t.true(counts.failovers > 0 && counts.reloads > 0 && counts.scrapes > 0);
    const failed = Object.values(failures).reduce((sum, count) => sum + count, 0);
    t.true(failed < answered / 100, `${failed} of ${failed + answered} connections failed`);
    for (const [index, side] of sides.entries()) {
      const before = atRest[index] ?? new Map();
      const after = await atRestAgain(side, before);
      for (const [name, value] of after)
        t.log(`${side.name} ${name}, at rest: ${before.get(name) ?? 0} → ${value}`);
      t.deepEqual(moreThan(before, after, allowed), [], side.name);
    }
    await churn.clean();
  },
);

/** Bytes by which the live heap grows too much when so many events leave each as many of them behind. */
function leastSeen(events: number): number {
  return Math.ceil((1e6 * allowed('agent live heap')) / events);
}

/** Once all that has its time has had it, or there is still more than before. */
async function atRestAgain(side: Side, before: Measures): Promise<Measures> {
  for (const deadline = new Deadline(AT_REST_MS, MEASUREMENT); ; ) {
    const now = await measureAtRest(side);
    if (moreThan(before, now, allowed).length === 0 || deadline.isOver) return now;
  }
}

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

/** Exchanges the roles, again if that is refused because the other host is behind; returns the number of refusals. */
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

/** So often that V8's room for young objects is as large as it becomes: 7 MB more than after the first scrape. */
async function scrapeOften(side: Side): Promise<void> {
  for (let left = 20; left > 0; left--) await scrape(side);
}

/** In both formats; gives the number of scrapes. */
async function scrape({ agent }: Side): Promise<number> {
  const formats = ['text/plain; version=0.0.4', 'application/openmetrics-text; version=1.0.0'];
  for (const accept of formats) {
    const response = await fetch(`${agent.url}/metrics`, {
      headers: { accept, 'accept-encoding': 'gzip', connection: 'close' },
    });
    const text = await response.text();
    if (!response.ok || !text.includes('headgate_')) throw new Error(`Scrape: ${response.status} ${text}`);
  }
  return formats.length;
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
