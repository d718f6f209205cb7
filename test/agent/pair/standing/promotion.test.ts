import test from 'ava';
import type { PairReport } from '../../../../agent/pair/peers/report.ts';
import type { Roles } from '../../../../agent/pair/roles.ts';
import { movesOf, Promotion } from '../../../../agent/pair/standing/promotion.ts';
import type { StandingReason } from '../../../../agent/vips/announcer.ts';
import { FakeClock, settled } from '../../../support/basics/fake-clock.ts';
import { silentLog } from '../../../support/values/silent-log.ts';
import { pairReport } from '../../../support/vrrp/pair-report.ts';

const MASTER: Roles = { 'vrrp-51': 'master' };
const BACKUP: Roles = { 'vrrp-51': 'backup' };
const PEER: PairReport = { ...pairReport, roles: MASTER, priorities: { 'vrrp-51': 200 } };

/** A host of priority 250 that is lowered by 100 for any reason, but by 200 where HAProxy is silent. */
class Host {
  readonly clock = new FakeClock();
  roles = BACKUP;
  peer: PairReport | undefined = PEER;
  /** What VRRP was told, and preparations. */
  readonly done: string[] = [];
  readonly prepared = Promise.withResolvers<void>();
  readonly promotion = new Promotion({
    roles: () => this.roles,
    peer: () => this.peer,
    priorities: (reasons) => ({
      'vrrp-51': 250 - (reasons.includes('haproxy') ? 200 : Math.min(reasons.length, 1) * 100),
    }),
    setStanding: (reasons) => this.done.push(reasons.join() || 'full'),
    prepareToTake: () => {
      this.done.push('prepare');
      return this.prepared.promise;
    },
    prepareToGive: () => {
      this.done.push('give');
      return this.prepared.promise;
    },
    log: silentLog(),
    clock: this.clock,
  });

  stand(...reasons: readonly StandingReason[]): string {
    this.promotion.promote(reasons);
    return this.done.splice(0).join();
  }
}

test('A host that would take VIPs from its peer rises when both are prepared', async (t) => {
  const host = new Host();
  t.is(host.stand('maintenance'), 'maintenance');
  t.is(host.stand(), 'prepare');
  t.true(host.promotion.takes);
  t.deepEqual(host.promotion.priorities, { 'vrrp-51': 150 });
  host.promotion.review();
  t.is(host.done.join(), '');
  host.prepared.resolve();
  await settled();
  t.is(host.done.join(), 'full');
  t.deepEqual(host.promotion.priorities, { 'vrrp-51': 250 });
  t.true(host.promotion.takes);
  host.roles = MASTER;
  t.false(host.promotion.takes);
});

test('A host that falls during the preparation of its rise falls at once', async (t) => {
  const host = new Host();
  host.stand('maintenance');
  t.is(host.stand(), 'prepare');
  t.is(host.stand('haproxy'), 'haproxy');
  host.prepared.resolve();
  await settled();
  t.is(host.done.join(), '');
});

test('A rise without a move of VIPs prepares nothing', (t) => {
  for (const [roles, peer] of [
    [MASTER, { ...PEER, roles: BACKUP }],
    [BACKUP, { ...PEER, priorities: { 'vrrp-51': 250 } }],
    // VRRP moves without an order.
    [BACKUP, { ...PEER, priorities: { 'vrrp-51': 98 } }],
    // A version that does not tell.
    [BACKUP, { ...PEER, priorities: {} }],
  ] as const) {
    const host = new Host();
    host.stand('maintenance');
    [host.roles, host.peer] = [roles, peer];
    t.is(host.stand(), 'full');
  }
});

test('A rise waits for a while until one host is known as master', async (t) => {
  const host = new Host();
  host.stand('maintenance');
  // The peer has taken over, and has not said so yet.
  host.peer = { ...PEER, roles: BACKUP };
  t.is(host.stand(), '');
  t.true(host.promotion.takes);
  host.peer = PEER;
  host.promotion.review();
  t.is(host.done.splice(0).join(), 'prepare');

  const alone = new Host();
  alone.stand('maintenance');
  alone.peer = { ...PEER, roles: BACKUP };
  t.is(alone.stand(), '');
  await alone.clock.advance(3_000);
  t.is(alone.done.join(), 'full');
});

test('Before the first standing a master counts as not lowered, and any other host as lowered', (t) => {
  const host = new Host();
  t.deepEqual(host.promotion.priorities, { 'vrrp-51': 50 });
  host.roles = MASTER;
  t.deepEqual(host.promotion.priorities, { 'vrrp-51': 250 });
  host.stand('maintenance');
  t.deepEqual(host.promotion.priorities, { 'vrrp-51': 150 });
});

test('A peer that does not serve is replaced at once', (t) => {
  for (const change of [{ running: '' }, { lowered: ['haproxy'] }, { lowered: ['listeners'] }]) {
    const host = new Host();
    host.peer = { ...PEER, ...change };
    host.stand('maintenance');
    t.is(host.stand(), 'full');
  }
});

test("A rise waits for a while for the peer's report, a fall never does", async (t) => {
  const host = new Host();
  host.stand('maintenance');
  host.peer = undefined;
  t.is(host.stand(), '');
  host.peer = PEER;
  host.promotion.review();
  t.is(host.done.splice(0).join(), 'prepare');

  const alone = new Host();
  alone.peer = undefined;
  t.is(alone.stand('haproxy'), 'haproxy');
  t.is(alone.stand(), '');
  await alone.clock.advance(2_900);
  t.is(alone.done.join(), '');
  await alone.clock.advance(200);
  t.is(alone.done.join(), 'full');

  const active = new Host();
  [active.peer, active.roles] = [undefined, MASTER];
  active.stand('haproxy');
  t.is(active.stand(), 'full');
});

test('movesOf() lists only the instances that move', (t) => {
  const peer = {
    ...PEER,
    roles: { 'vrrp-51': 'master', 'vrrp-52': 'master', 'vrrp-53': 'backup' },
    priorities: { 'vrrp-51': 200, 'vrrp-52': 250, 'vrrp-53': 200 },
  } as const;
  const before = { 'vrrp-51': 97, 'vrrp-52': 47, 'vrrp-53': 97 };
  const after = { 'vrrp-51': 250, 'vrrp-52': 200, 'vrrp-53': 250 };
  t.deepEqual(movesOf(before, after, BACKUP, peer).gains, ['vrrp-51']);
  t.deepEqual(movesOf(before, after, MASTER, peer).gains, []);
  t.deepEqual(movesOf(before, after, BACKUP, undefined).gains, []);
});

test('New priorities wait for preparation only if VIPs move', async (t) => {
  const prioritiesBy = (priority: number) => (reasons: readonly StandingReason[]) => ({
    'vrrp-51': priority - 100 * reasons.length,
  });
  for (const [roles, theirs, priority, expected] of [
    // This host has 250.
    [MASTER, 230, 210, 'give'],
    [MASTER, 230, 235, ''],
    [MASTER, 210, 210, ''],
    [BACKUP, 250, 251, 'prepare'],
    [BACKUP, 255, 251, ''],
    [BACKUP, 250, 200, ''],
  ] as const) {
    const host = new Host();
    host.roles = MASTER;
    host.stand();
    host.roles = roles;
    const peer = roles === MASTER ? BACKUP : MASTER;
    host.peer = { ...PEER, roles: peer, priorities: { 'vrrp-51': theirs } };
    let isDone = false;
    void host.promotion.beforePriorities(prioritiesBy(priority)).then(() => {
      isDone = true;
    });
    await settled();
    t.is(host.done.join(), expected);
    t.is(isDone, expected === '');
    host.prepared.resolve();
    await settled();
    t.true(isDone);
  }
  // What lowers this host counts as before.
  const lowered = new Host();
  lowered.stand('maintenance');
  await lowered.promotion.beforePriorities(prioritiesBy(255));
  t.is(lowered.done.join(), '');
});

test('movesOf() lists no losses to a peer that is unknown, does not serve, or stays below', (t) => {
  const [before, after] = [{ 'vrrp-51': 250 }, { 'vrrp-51': 200 }];
  const peer = { ...PEER, roles: BACKUP, priorities: { 'vrrp-51': 220 } };
  t.deepEqual(movesOf(before, after, MASTER, peer).losses, ['vrrp-51']);
  t.deepEqual(movesOf(before, after, MASTER, undefined).losses, []);
  t.deepEqual(movesOf(before, after, MASTER, { ...peer, running: '' }).losses, []);
  t.deepEqual(movesOf(before, after, MASTER, { ...peer, lowered: ['haproxy'] }).losses, []);
  t.deepEqual(movesOf(before, after, MASTER, { ...peer, priorities: {} }).losses, []);
  t.deepEqual(movesOf(before, after, BACKUP, { ...peer, roles: MASTER }).losses, []);
  t.deepEqual(movesOf({ 'vrrp-51': 210 }, after, MASTER, peer).losses, []);
});
