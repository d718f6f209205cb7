// Everything that can change, at once, at random and for long, on a pair of hosts with a real API server, while clients ask on
// HTTP/1.1, HTTP/2, TLS, TCP and UDP: none that should be answered may fail, and none that should be refused may be let in.
// `make soak KIND=all MINUTES=60` makes it longer; SEED repeats a run's choices.

import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { processesOf } from '../support/host/agent.ts';
import { otherVersion } from '../support/host/other-version.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { CounterWatch } from '../support/soak/counter-watch.ts';
import { Seeded } from '../support/soak/seeded.ts';
import { SoakChanges, type SoakHost } from '../support/soak/soak-changes.ts';
import type { SoakReport, SoakTarget } from '../support/soak/soak-client.ts';
import { SoakClients, startSoakMembers } from '../support/soak/soak-clients.ts';
import { grown, soakUsage } from '../support/soak/soak-usage.ts';
import { createSoakObjects, MEMBERS, PODS, soakKeys, soakTargets, VIPS } from '../support/soak/soak-world.ts';
import { startAgentPair } from '../support/vrrp/agent-pair.ts';

const { programs = [] } = kubeNeeds();
const more = ['keepalived', 'ip', 'nft', 'conntrack', 'nsenter', 'sysctl', 'openssl'];
const test = requires(ava, { programs: [...programs, ...more], haproxy: true, root: true });

const { SOAK_MINUTES, SEED } = process.env;
const SECONDS = SOAK_MINUTES === undefined ? 120 : 60 * Number(SOAK_MINUTES);
const OBJECT_EVERY_MS = 200;
const FAULT_EVERY_MS = 4_000;
const SCRAPE_EVERY_MS = 2_000;
/** From a change of an engine until both agents have carried it out, and a scrape shows it. */
const ENGINE_MS = 8_000;
/** For the state after the last change to be that of the objects. */
const SETTLE_MS = 120_000;
/** Two looks in a row without a failure: the state has settled. */
const LOOK_EVERY_MS = 2_000;
/** Old workers wait for their connections for so long, and drained members for their timeout. */
const AT_REST_MS = 90_000;
/** The part of the log that is shown around a wrong answer. */
const [BEFORE_MS, AFTER_MS] = [45_000, 6_000];

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true });
  await deployDefinitions(kube);
});
test.after.always(() => kube?.stop());

test.serial(
  'Whatever changes, requests are answered, and those that must be refused are refused',
  async (t) => {
    const seed = SEED === undefined ? randomInt(2 ** 31) : Number(SEED);
    console.log(`soak-all: SEED=${seed}, ${SECONDS} s`);
    const keys = await soakKeys(t);
    await createSoakObjects(kube, keys);
    let isMade = false;
    const pair = await startAgentPair(t, VIPS.web, {
      prepare: async (_, network) => {
        for (const name of ['a', 'b']) await network.run(name, 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
        if (!isMade) await startSoakMembers(network, MEMBERS, PODS);
        isMade = true;
      },
      isServed: async (own) => {
        const at = 'client';
        const script = `fetch('http://${VIPS.web}:8080').then((answer) => process.exit(answer.ok ? 0 : 1))`;
        return (await own.try(at, process.execPath, '-e', script)).exitCode === 0;
      },
      flags: ['--kubeconfig', kube.kubeconfig, '--drain-timeout', '5s'],
      others: ['m'],
      landing: true,
    });
    // The hosts have set a shorter one.
    t.timeout(SECONDS * 1_000 + 900_000);
    const { network } = pair;
    const hosts: SoakHost[] = [pair.active, pair.standby].map(({ name, host, agent }) => ({
      ...{ name, host, agent },
      former: '',
      backAt: 0,
    }));
    const settled = async (targets: readonly SoakTarget[]): Promise<SoakReport> => {
      const clients = new SoakClients(network);
      await clients.add(...targets);
      let before = await clients.report();
      for (const end = performance.now() + SETTLE_MS; ; ) {
        await delay(LOOK_EVERY_MS);
        const now = await clients.report();
        const isQuiet = now.failures === before.failures && now.passes === before.passes;
        if (isQuiet || performance.now() > end) {
          clients.stop();
          return isQuiet ? { ...now, failed: [], letThrough: [] } : now;
        }
        before = now;
      }
    };
    const begun = await settled(soakTargets(keys));
    t.deepEqual([...begun.failed, ...begun.letThrough], [], 'at the beginning');
    const used = await Promise.all(hosts.map(soakUsage));

    const clients = new SoakClients(network);
    await clients.add(...soakTargets(keys));
    const versions = [
      hosts[0]?.host.headgate ?? '',
      await otherVersion(t, { version: '99.0.0', tells: '{ ...report }' }),
    ];
    const web = { isFailover: false, changedAt: performance.now(), engineAt: Number.NEGATIVE_INFINITY };
    const common = { kube, hosts, clients, keys, versions, web };
    const changes = new SoakChanges({ ...common, seeded: new Seeded(seed) });
    const faults = new SoakChanges({ ...common, seeded: new Seeded(seed + 1) });
    const counters = new CounterWatch();
    const end = performance.now() + SECONDS * 1_000;
    await Promise.all([
      every(OBJECT_EVERY_MS, end, () => changes.object()),
      every(FAULT_EVERY_MS, end, () => faults.fault()),
      every(SCRAPE_EVERY_MS, end, async () => {
        const isChanging = performance.now() - web.engineAt < ENGINE_MS;
        for (const one of hosts) await counters.look(one, isChanging ? 'web' : undefined);
      }),
      every(60_000, end, async () => {
        console.log(`${new Date().toISOString()} ${tableOf(await clients.report())}`);
      }),
    ]);
    await changes.removeGuests();
    await delay(LOOK_EVERY_MS);
    const report = await clients.report();
    clients.stop();
    const after = await settled(soakTargets(keys, changes.pods));

    const all = [...changes.counts, ...faults.counts].map(([kind, count]) => `${kind} ${count}`);
    t.log(`SEED=${seed}, ${SECONDS} s: ${tableOf(report)}`);
    t.log(`changes: ${all.join(', ')}; scrapes ${counters.looks}`);
    for (const [name, count] of Object.entries(report.requests)) t.log(`${name}: ${count}`);
    // What happened around the first wrong answer, for those who look for its cause.
    for (const text of [...report.letThrough.slice(0, 1), ...report.failed.slice(0, 3)]) {
      t.log(`around ${text}`);
      for (const line of around(text, hosts, [...changes.log, ...faults.log])) t.log(line);
    }
    const again = `, again with SEED=${seed}`;
    t.deepEqual(report.letThrough, [], `let through${again}`);
    t.deepEqual(report.failed, [], `failed${again}`);
    t.deepEqual(
      [...after.failed, ...after.letThrough],
      [],
      `the last objects are not what is served${again}`,
    );
    t.deepEqual(counters.backward, [], `counters went back${again}`);
    for (const [at, one] of hosts.entries()) {
      const before = used[at];
      if (before === undefined) throw new Error('It was not there at the beginning');
      // Old workers end, and files are tidied.
      let left: readonly string[] = [];
      for (
        const until = performance.now() + AT_REST_MS;
        performance.now() < until;
        await delay(LOOK_EVERY_MS)
      ) {
        left = grown(before, await soakUsage(one));
        if (left.length === 0) break;
      }
      t.log(`${one.name}: ${JSON.stringify(before)} → ${JSON.stringify(await soakUsage(one))}`);
      for (const pid of left.length === 0 ? [] : processesOf(one.host.directory))
        t.log(`${pid} ${readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')}`);
      t.deepEqual(left, [], `${one.name}: left over${again}`);
    }
  },
);

/** Changes and lines of the agents' logs, in their order. */
function around(text: string, hosts: readonly SoakHost[], changes: readonly string[]): readonly string[] {
  const at = Date.parse(text.slice(0, 24));
  const isNear = (line: string): boolean =>
    Date.parse(line.slice(0, 24)) > at - BEFORE_MS && Date.parse(line.slice(0, 24)) < at + AFTER_MS;
  const logged = hosts.flatMap(({ name, agent, former }) =>
    (former + agent.text).split('\n').flatMap((line) => {
      const [, time] = /"time":"([^"]+)"/.exec(line) ?? [];
      return time === undefined ? [] : [`${time} agent ${name} ${line}`];
    }),
  );
  return [...changes, ...logged].filter(isNear).sort();
}

function tableOf({ requests, failures, passes }: SoakReport): string {
  const sum = Object.values(requests).reduce((one, other) => one + other, 0);
  return `${sum} requests, ${failures} failed, ${passes} let through`;
}

/** One after the other, none at once. */
async function every(period: number, end: number, work: () => Promise<void>): Promise<void> {
  while (performance.now() < end) {
    await delay(Math.min(period, Math.max(0, end - performance.now())));
    if (performance.now() < end) await work();
  }
}
