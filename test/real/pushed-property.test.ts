// Random pushes of member changes: after each the worker has what the text says, and now and then a fresh HAProxy with the
// same text judges it. `SEED=NUMBER` repeats a run's choices.

import { randomInt } from 'node:crypto';
import ava from 'ava';
import { killHaproxy } from '../../agent/haproxy/instance/process.ts';
import { askOnce } from '../../agent/haproxy/socket/ask-once.ts';
import { parseServersState } from '../../agent/haproxy/socket/servers-state.ts';
import type { OwnHaproxy } from '../../agent/pushed/own-haproxy.ts';
import { readBack } from '../../agent/pushed/readback.ts';
import { readText } from '../../agent/pushed/text/pushed-text.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { type PushedHost, pushedHost } from '../support/octavia/pushed-host.ts';
import type { RenderedMember, RenderSpec } from '../support/octavia/render-haproxy.ts';
import { Seeded } from '../support/soak/seeded.ts';

const test = requires(ava, { haproxy: true, root: true, programs: ['octavia-worker'] });

const LASTS = Array.from({ length: 8 }, (_, at) => 11 + at);
/** A push after which a fresh HAProxy judges. */
const JUDGED_EACH = 25;

const KINDS: readonly {
  readonly title: string;
  readonly pushes: number;
  readonly reloads: 'none' | 'some';
  readonly spec: Partial<RenderSpec>;
}[] = [
  {
    title: 'round robin without checks',
    pushes: 500,
    reloads: 'none',
    spec: { listener: { persistence: false, monitor: false } },
  },
  {
    title: 'fewest connections with checks and stick tables',
    pushes: 500,
    reloads: 'none',
    spec: {
      listener: { proto: 'TCP', persistence_type: 'SOURCE_IP' },
      pool: { lb_algorithm: 'LEAST_CONNECTIONS' },
      monitor: { delay: 60, timeout: 2 },
    },
  },
  {
    title: 'hashes of sources',
    pushes: 30,
    reloads: 'some',
    spec: { listener: { persistence: false, monitor: false }, pool: { lb_algorithm: 'SOURCE_IP' } },
  },
  {
    title: 'cookies',
    pushes: 30,
    reloads: 'some',
    spec: { listener: { persistence_type: 'HTTP_COOKIE', monitor: false } },
  },
];

for (const { title, pushes, reloads, spec } of KINDS)
  test.serial(`After each of many random pushes a worker is as a fresh one: ${title}`, async (t) => {
    const seed = Number(process.env.SEED ?? randomInt(1_000_000));
    t.log(`SEED=${seed}`);
    const random = new Seeded(seed);
    const host = await pushedHost(t);
    await host.startMembers(...LASTS);
    const texts = await host.texts(randomPools(host, random, pushes), spec);
    const results = new Map<string, number>();
    const began = performance.now();
    for (const [at, text] of texts.entries()) {
      const result = await host.haproxy.run(text);
      results.set(result, (results.get(result) ?? 0) + 1);
      const { difference } = readBack(await host.serversState(), readText(text));
      t.is(difference, '', `push ${at}`);
      if (at % JUDGED_EACH !== JUDGED_EACH - 1) continue;
      const expected = await judged(host, text);
      let seen = '';
      const isAsFresh = async () => {
        seen = await seenOf(host.haproxy, host.files.adminSocket, text);
        return seen === expected;
      };
      await until(`push ${at} is as ${expected}`, isAsFresh, { seconds: 5, seen: () => seen });
    }
    t.log(
      [...results].map(([result, count]) => `${result}: ${count}`).join(', '),
      Math.round(performance.now() - began),
      'ms',
    );
    if (reloads === 'none') t.is(results.get('reload'), 1);
  });

/** Each differs from the one before in some members. */
function randomPools(
  host: PushedHost,
  random: Seeded,
  count: number,
): readonly (readonly RenderedMember[])[] {
  const members = new Map<number, RenderedMember>();
  return Array.from({ length: count }, () => {
    for (let changes = random.below(4); changes > 0; changes--) {
      const last = random.one(LASTS);
      if (members.has(last) && random.below(2) === 0) members.delete(last);
      else
        members.set(
          last,
          host.member(last, { weight: random.one([0, 1, 1, 7, 256]), enabled: random.below(10) < 7 }),
        );
    }
    return [...members.values()].sort(() => random.below(3) - 1);
  });
}

/** What a fresh HAProxy has, as text. */
async function judged(host: PushedHost, text: string): Promise<string> {
  const { haproxy, files } = host.beside();
  try {
    await haproxy.run(text);
    return await seenOf(haproxy, files.adminSocket, text);
  } finally {
    haproxy.close();
    await killHaproxy(files);
  }
}

/** What matters of the members, and the statuses that reports show. */
async function seenOf(haproxy: OwnHaproxy, adminSocket: string, text: string): Promise<string> {
  const { sections } = readText(text);
  const servers = [...parseServersState(await askOnce(adminSocket, 'show servers state'))]
    .filter(({ backend, server }) => sections.get(`backend ${backend}`)?.servers.has(server))
    .map(({ server, address, port, weight, state, check }) =>
      // In maintenance nothing is checked.
      [server, address, port, weight, state, state === 'maint' ? check !== 'on' : check],
    );
  const rows = ((await haproxy.stats()) ?? []).map((row) => {
    const column = (name: string): string => row.get(name) ?? '';
    const status = column('status').replace(/^UP -?\d+\/\d+$/, 'UP');
    const names = ['pxname', 'svname', 'mode', 'algo', 'bck', 'act'].map(column);
    // The effective weight, which in maintenance is that of the last change.
    return [...names, status, status === 'MAINT' ? '' : column('weight')];
  });
  return [...servers.map(String).sort(), ...rows.map(String).sort()].join('\n');
}
