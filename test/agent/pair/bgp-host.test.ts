import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { BgpHost, type BgpHostOptions } from '../../../agent/pair/bgp-host.ts';
import type { HostLinks } from '../../../agent/pair/host-links.ts';
import type { PairReport } from '../../../agent/pair/peers/report.ts';
import { nothingReleased } from '../../../agent/state/release-mark.ts';
import type { StandingReason } from '../../../agent/vips/announcer.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';
import { until } from '../../support/basics/until.ts';
import { silentLog } from '../../support/values/silent-log.ts';

interface Given {
  readonly fault?: string;
  readonly stateDir?: string;
  /** A new connection each 100 ms of this time after the order. */
  readonly arrivingMs?: number;
  readonly links?: BgpHostOptions['links'];
  /** No router has routes of this host for so long. */
  readonly untoldMs?: number;
}

async function world(t: ExecutionContext, given: Given = {}) {
  const stateDir = given.stateDir ?? (await mkdtemp(join(tmpdir(), 'hg-')));
  t.teardown(() => rm(stateDir, { recursive: true, force: true }));
  const told: (readonly StandingReason[])[] = [];
  const clock = new FakeClock();
  const opened = { at: 0 };
  const began = clock.monotonic();
  const host = new BgpHost({
    settings: () => ({ pairLowerAfter: 1_000, pairRaiseAfter: 1_000, stateDir }),
    host: { version: '1.0.0', desired: new Map(), objects: () => 'live', released: () => nothingReleased },
    dataplane: {
      served: () => undefined,
      status: () => ({ serving: true, isReloading: false }) as never,
      liveness: async () => ({ control: '', listeners: '' }),
    },
    announcer: {
      standing: async (reasons) => void told.push(reasons),
      isActive: true,
      fault: () => given.fault ?? '',
      announcesAll: () => true,
      isBlind: () => false,
      told: async () => {
        const count = clock.monotonic() < began + (given.untoldMs ?? 0) ? 0 : 1;
        return { count, of: 2, why: 'tor-b: it does not answer' };
      },
    },
    links: given.links,
    clients: {
      connections: async () => 3,
      counter: {
        open: async () => {
          opened.at = clock.monotonic();
        },
        read: async () => Math.floor(Math.min(clock.monotonic() - opened.at, given.arrivingMs ?? 0) / 100),
        close: async () => undefined,
      },
    },
    clock,
    log: silentLog(),
  });
  t.teardown(() => host.close());
  await host.start();
  /** Carries an order out, for which routers have the time that they need. */
  const order = async (isLocked: boolean) => {
    const before = told.length;
    const outcome = host.maintenance(isLocked);
    await until('routers are told', () => told.length > before);
    await clock.advance(6_000);
    return outcome;
  };
  return { host, told, order, stateDir, clock };
}

test('BgpHost locks a host, waits until no new connection comes, and says how many connections are left', async (t) => {
  const { host, told, order } = await world(t, { arrivingMs: 400 });
  const locked = await order(true);
  t.like(locked, { ok: true, active: 'unknown' });
  t.true(locked.tookMs >= 300 && locked.tookMs <= 500, String(locked.tookMs));
  t.regex(
    locked.message,
    /no new connection comes here, but too few come to other hosts to know .*; 3 connections left$/,
  );
  t.like(await host.maintenance(true), {
    tookMs: 0,
    message:
      'This host is locked: its routes are the last choice of the routers since an earlier order; 3 connections left',
  });
  t.like(await order(false), {
    ok: true,
    active: 'this host',
    message: 'This host is not locked; 1 of 2 routers has its routes: tor-b: it does not answer',
  });
  t.deepEqual(told, [[], ['maintenance'], []]);
});

test('BgpHost says that new connections still come, and from how many it knows that they do not', async (t) => {
  const still = await world(t, { arrivingMs: 60_000 });
  const outcome = await still.order(true);
  t.like(outcome, { ok: false, active: 'this host' });
  t.regex(outcome.message, /but new connections still come here: 5\d since the order/);
  const report = (lowered: readonly string[], count: number) =>
    ({ lowered, arrivals: { asks: false, count }, model: '' }) as unknown as PairReport;
  const count = { now: 0 };
  const links = (lowered: readonly string[]) => () =>
    ({
      renew: async () => undefined,
      send: () => {
        count.now += 10;
      },
      reports: () => new Map([['lb2', report(lowered, count.now)]]),
      close: () => undefined,
    }) as unknown as HostLinks;
  const moved = await world(t, { links: links([]) });
  const there = await moved.order(true);
  t.like(there, { ok: true, active: 'other hosts' });
  t.regex(there.message, /which have moved: the last \d+ new connections came to other hosts/);
  const alone = await world(t, { links: links(['maintenance']) });
  t.like(await alone.order(true), { ok: false, active: 'this host' });
});

test('BgpHost unlocks a host whose sessions are about to be established, and says it if they still are not', async (t) => {
  const soon = await world(t, { untoldMs: 8_000 });
  const order = soon.host.maintenance(false);
  await until('routers are asked', () => soon.clock.isWaiting);
  await soon.clock.advance(10_000);
  t.like(await order, {
    ok: true,
    active: 'this host',
    message: 'This host is not locked; 1 of 2 routers has its routes: tor-b: it does not answer',
  });
  const never = await world(t, { untoldMs: 60_000 });
  const late = never.host.maintenance(false);
  await until('routers are asked', () => never.clock.isWaiting);
  await never.clock.advance(10_200);
  t.like(await late, {
    ok: true,
    active: 'unknown',
    message: 'This host is not locked; 0 of 2 routers have its routes yet: tor-b: it does not answer',
  });
});

test('BgpHost keeps the lock of an agent before this one', async (t) => {
  const first = await world(t);
  await first.order(true);
  first.host.close();
  const { host, told } = await world(t, { stateDir: first.stateDir });
  t.deepEqual(
    host.lowered.map(({ reason }) => reason),
    ['maintenance'],
  );
  t.deepEqual(told, [['maintenance']]);
});

test('BgpHost says that routers are not told if BIRD has a fault', async (t) => {
  const { host } = await world(t, { fault: 'BIRD does not run' });
  t.like(await host.maintenance(true), {
    ok: false,
    message: 'This host is locked, but the routers are not told: BIRD does not run',
  });
});
