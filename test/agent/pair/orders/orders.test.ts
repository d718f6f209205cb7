import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { Clock } from '../../../../agent/base/clock.ts';
import { MaintenanceFile } from '../../../../agent/pair/orders/maintenance-file.ts';
import { ORDER_TIMEOUT_MS, Orders } from '../../../../agent/pair/orders/orders.ts';
import type { Roles } from '../../../../agent/pair/roles.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const master: Roles = { 'vrrp-51': 'master' };
const backup: Roles = { 'vrrp-51': 'backup' };

/** A clock whose timers go off at the next turn of the event loop, so that no test waits for an order to give up. */
class HastyClock implements Clock {
  #now = 0;
  /** No time passes while this is true: the disk may be slow. */
  stands = (): boolean => false;

  monotonic(): number {
    return this.#now;
  }

  wall(): number {
    return this.#now;
  }

  after(milliseconds: number, callback: () => void): () => void {
    const immediate = setImmediate(() => {
      if (!this.stands()) this.#now += milliseconds;
      callback();
    });
    return () => clearImmediate(immediate);
  }
}

/** A host whose VRRP gives way as soon as the host stands back, if there is a peer to take over. */
class Host {
  readonly path: string;
  readonly orders: Orders;
  readonly clock = new HastyClock();
  roles = master;
  peer: Roles | undefined = backup;
  isPeerLowered = false;
  whyNot = '';
  advertInterval = 0;
  /** What comes to this host after a lock, and how soon: true until it is here. */
  takes = (): boolean => false;
  /** Whether the peer takes over when it is let. */
  takesOver = true;
  moves = 0;
  whilePreparing = async (): Promise<unknown> => undefined;
  /** The roles at each preparation. */
  readonly prepared: Roles[] = [];

  private constructor(folder: string) {
    this.path = join(folder, 'maintenance');
    this.orders = new Orders({
      file: new MaintenanceFile(this.path),
      hosts: {
        roles: () => this.roles,
        peer: () => this.peer && { roles: this.peer, lowered: this.isPeerLowered ? ['maintenance'] : [] },
        whyNotReady: () => this.whyNot,
        takes: () => this.takes(),
        advertInterval: () => this.advertInterval,
      },
      hooks: {
        prepare: async () => {
          this.prepared.push(this.roles);
          await this.whilePreparing();
        },
        done: () => undefined,
        onChanged: () => this.#settle(),
      },
      clock: this.clock,
      log: silentLog(),
    });
  }

  static async create(t: ExecutionContext, stateDir?: string): Promise<Host> {
    const folder = await mkdtemp(join(tmpdir(), 'headgate-orders-'));
    const host = new Host(stateDir ?? folder);
    t.teardown(async () => {
      host.orders.close();
      await rm(folder, { recursive: true });
    });
    return host;
  }

  #settle(): void {
    const standsBack = this.orders.isLocked || this.orders.handsOver;
    if (!standsBack || !this.takesOver || this.roles !== master) return;
    this.moves += 1;
    setImmediate(() => {
      this.roles = backup;
      this.peer = master;
    });
  }
}

test('A failover moves the traffic once, however often it is ordered', async (t) => {
  const host = await Host.create(t);
  const [first, second] = await Promise.all([host.orders.failover(false), host.orders.failover(false)]);
  t.like(first, { ok: true, active: 'peer' });
  t.is(first, second);
  t.like(await host.orders.failover(false), { ok: true, active: 'peer', tookMs: 0 });
  t.is(host.moves, 1);
});

test('A failover is refused while the peer is not ready, unless it is forced', async (t) => {
  const host = await Host.create(t);
  host.whyNot = 'The peer is behind';
  const refused = await host.orders.failover(false);
  t.like(refused, { ok: false, active: 'this host' });
  t.regex(refused.message, /^Refused: The peer is behind; --force/);
  t.is(host.moves, 0);
  t.like(await host.orders.failover(true), { ok: true, active: 'peer' });
});

test('A forced failover ends the wait of an earlier one at once', async (t) => {
  const host = await Host.create(t);
  host.whyNot = 'The peer is behind';
  const [waiting, forced] = await Promise.all([host.orders.failover(false), host.orders.failover(true)]);
  t.like(waiting, { ok: true, active: 'peer' });
  t.deepEqual(forced, waiting);
  [host.roles, host.peer] = [master, backup];
  t.false((await host.orders.failover(false)).ok);
});

test('A failover waits for a peer that is behind for a moment', async (t) => {
  const host = await Host.create(t);
  host.whyNot = 'The peer is behind';
  const order = host.orders.failover(false);
  host.whyNot = '';
  t.true((await order).ok);
});

test('A host whose peer does not take over continues, and reports it', async (t) => {
  const host = await Host.create(t);
  host.takesOver = false;
  const outcome = await host.orders.failover(false);
  t.like(outcome, { ok: false, active: 'this host', tookMs: 0 });
  t.regex(outcome.message, /has not taken over within 5 s/);
  t.false(host.orders.handsOver);
});

test('A host that has handed over stays lowered while its peer is master and well, and no longer', async (t) => {
  for (const end of ['backup', 'fault', 'lowered', 'no VRRP'] as const) {
    const host = await Host.create(t);
    await host.orders.failover(false);
    t.true(host.orders.handsOver);
    if (end === 'backup') host.peer = backup;
    if (end === 'fault') host.peer = { 'vrrp-51': 'fault' };
    if (end === 'lowered') host.isPeerLowered = true;
    if (end === 'no VRRP') host.peer = {};
    t.false(host.orders.handsOver, end);
  }
});

test("A host that has handed over stays lowered while the peer's agent is silent, until this host is master", async (t) => {
  for (const peer of [
    undefined,
    { 'vrrp-51': 'unknown' },
    { 'vrrp-51': 'backup', 'vrrp-52': 'unknown' },
  ] as const) {
    const host = await Host.create(t);
    await host.orders.failover(false);
    host.peer = peer;
    // What an agent that has just started says of itself.
    host.isPeerLowered = peer !== undefined;
    for (const role of ['backup', 'fault', 'unknown', 'backup'] as const) {
      host.roles = { 'vrrp-51': role };
      t.true(host.orders.handsOver, role);
    }
    host.roles = { 'vrrp-51': 'master' };
    t.false(host.orders.handsOver);
    // The order has ended, whichever host becomes master later.
    [host.roles, host.peer, host.isPeerLowered] = [backup, master, false];
    t.false(host.orders.handsOver);
  }
});

test('A host that has handed over stays lowered when the agent of a master peer is back', async (t) => {
  const host = await Host.create(t);
  await host.orders.failover(false);
  for (const peer of [undefined, { 'vrrp-51': 'unknown' }, master] as const) {
    host.peer = peer;
    t.true(host.orders.handsOver);
  }
  host.peer = backup;
  t.false(host.orders.handsOver);
});

test('A failover without VRRP is refused with the reason', async (t) => {
  const host = await Host.create(t);
  for (const roles of [{}, { 'vrrp-51': 'unknown' }] as const) {
    host.roles = roles;
    const outcome = await host.orders.failover(true);
    t.like(outcome, { ok: false, active: 'unknown' });
    t.regex(outcome.message, /VRRP does not run here/);
  }
});

test('A lock moves the traffic, outlives the agent, and may be repeated', async (t) => {
  const host = await Host.create(t);
  t.like(await host.orders.lock(), { ok: true, active: 'peer' });
  t.like(await host.orders.lock(), { ok: true, active: 'peer', tookMs: 0 });
  t.true(host.orders.isLocked);

  const file = new MaintenanceFile(host.path);
  t.true(await file.read());
  t.like(await host.orders.unlock(), { ok: true });
  t.like(await host.orders.unlock(), { ok: true });
  t.false(host.orders.isLocked);
  t.false(await file.read());
});

test('restoreLock() writes a lock again that another process has removed, and none that was lifted', async (t) => {
  const host = await Host.create(t);
  const isThere = () => new MaintenanceFile(host.path).read();
  await host.orders.restoreLock();
  t.false(await isThere());
  await host.orders.lock();
  await rm(host.path);
  await host.orders.restoreLock();
  t.true(await isThere());
  await rm(dirname(host.path), { recursive: true });
  // MaintenanceFile does not create the folder again.
  await host.orders.restoreLock();
  t.false(await isThere());
  await mkdir(dirname(host.path));
  const unlocked = host.orders.unlock();
  await host.orders.restoreLock();
  await unlocked;
  t.false(await isThere());
});

test("unlock() returns when the host's VIPs have come back", async (t) => {
  const host = await Host.create(t);
  await host.orders.lock();
  t.is(host.prepared.length, 1);
  let looks = 0;
  host.takes = () => {
    if (++looks === 3) host.roles = master;
    return looks < 3;
  };
  host.takesOver = false;
  t.like(await host.orders.unlock(), { ok: true, message: 'This host is not locked' });
  t.is(looks, 3);
});

test('A lock prepares a peer that is behind, but not one without a report', async (t) => {
  const host = await Host.create(t);
  host.whyNot = 'The peer is behind';
  t.like(await host.orders.lock(), { ok: true, active: 'peer' });
  t.deepEqual(host.prepared, [master]);
  const alone = await Host.create(t);
  [alone.peer, alone.takesOver] = [undefined, false];
  t.like(await alone.orders.lock(), { ok: false, active: 'this host' });
  t.deepEqual(alone.prepared, []);
});

test('Traffic has more time to move with a long advertisement interval', async (t) => {
  const host = await Host.create(t);
  [host.takesOver, host.advertInterval] = [false, 500];
  t.regex((await host.orders.failover(false)).message, /has not taken over within 7 s/);
});

test('No order takes longer than the command waits, with any advertisement interval', async (t) => {
  const host = await Host.create(t);
  [host.takesOver, host.advertInterval] = [false, 10_000];
  const order = host.orders.failover(false);
  host.orders.close();
  const most = Number(/within (\d+) s/.exec((await order).message)?.[1]);
  t.true(ORDER_TIMEOUT_MS > most * 1_000 + 11_000, `${most} s, and 11 s to settle and prepare`);
});

test('A failover that the peer does not take reports the reason', async (t) => {
  const host = await Host.create(t);
  host.takesOver = false;
  const order = host.orders.failover(true);
  host.whyNot = 'The peer is lowered: maintenance';
  host.orders.close();
  t.regex((await order).message, /: this host continues; The peer is lowered: maintenance$/);
});

test('A lock that is revoked while traffic moves reports that, and so does an unlock', async (t) => {
  const host = await Host.create(t);
  const file = new MaintenanceFile(host.path);
  host.whilePreparing = () => host.orders.unlock();
  t.like(await host.orders.lock(), { ok: false, message: 'This host has been unlocked in the meantime' });
  t.is(host.moves, 0);
  t.false(host.orders.isLocked);
  t.false(await file.read());
  host.whilePreparing = async () => undefined;
  let second: Promise<unknown> | undefined;
  host.takes = () => {
    second ??= host.orders.lock();
    host.clock.stands = () => !host.orders.isLocked;
    return !host.orders.isLocked;
  };
  t.like(await host.orders.unlock(), { ok: false, message: 'This host has been locked in the meantime' });
  t.like(await second, { ok: true, message: 'This host is locked and not active' });
  t.true(host.orders.isLocked);
  t.true(await file.read());
});

test('A lock stays if the peer does not take over, and reports why traffic is still here', async (t) => {
  const host = await Host.create(t);
  host.takesOver = false;
  host.whyNot = 'The peer is not heard';
  const outcome = await host.orders.lock();
  t.like(outcome, { ok: false, active: 'this host' });
  t.regex(outcome.message, /locked, but still active: The peer is not heard/);
  t.true(host.orders.isLocked);
  await t.notThrowsAsync(stat(host.path));
});

test('A lock that cannot be written is no lock', async (t) => {
  const host = await Host.create(t, '/proc/headgate');
  await t.throwsAsync(host.orders.lock(), { code: 'FILE_WRITE' });
  t.false(host.orders.isLocked);
  t.is(host.moves, 0);
});
