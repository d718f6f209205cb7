import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { HostAlone } from '../../../agent/pair/host-alone.ts';
import type { StandingReason } from '../../../agent/vips/announcer.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';
import { until } from '../../support/basics/until.ts';
import { silentLog } from '../../support/values/silent-log.ts';

interface Given {
  readonly fault?: string;
  readonly stateDir?: string;
}

async function world(t: ExecutionContext, given: Given = {}) {
  const stateDir = given.stateDir ?? (await mkdtemp(join(tmpdir(), 'hg-')));
  t.teardown(() => rm(stateDir, { recursive: true, force: true }));
  const told: (readonly StandingReason[])[] = [];
  const clock = new FakeClock();
  const host = new HostAlone({
    settings: () => ({ pairLowerAfter: 1_000, pairRaiseAfter: 1_000, stateDir }),
    host: { version: '1.0.0', desired: new Map(), objects: () => 'live' },
    dataplane: {
      served: () => undefined,
      status: () => ({ serving: true, isReloading: false }) as never,
      liveness: async () => ({ control: '', listeners: '' }),
    },
    announcer: {
      standing: async (reasons) => void told.push(reasons),
      isActive: true,
      fault: () => given.fault ?? '',
    },
    links: undefined,
    connections: async () => 3,
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
    await clock.advance(500);
    return outcome;
  };
  return { host, told, order, stateDir };
}

test('HostAlone locks a host, waits until routers have chosen, and says how many connections are left', async (t) => {
  const { host, told, order } = await world(t);
  t.deepEqual(await order(true), {
    ok: true,
    active: 'unknown',
    tookMs: 500,
    message: 'This host is locked: its routes are the last choice of the routers; 3 connections left',
  });
  t.is((await host.maintenance(true)).tookMs, 0);
  t.like(await order(false), { ok: true, active: 'this host', message: 'This host is not locked' });
  t.deepEqual(told, [[], ['maintenance'], []]);
});

test('HostAlone keeps the lock of an agent before this one', async (t) => {
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

test('HostAlone says that routers are not told if BIRD has a fault', async (t) => {
  const { host } = await world(t, { fault: 'BIRD does not run' });
  t.like(await host.maintenance(true), {
    ok: false,
    message: 'This host is locked, but the routers are not told: BIRD does not run',
  });
});
