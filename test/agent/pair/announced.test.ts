import test from 'ava';
import type { LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { Announced, MOST_WAIT_MS } from '../../../agent/pair/announced.ts';
import type { Roles } from '../../../agent/pair/roles.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';
import { service, slice } from '../../support/values/build.ts';
import { loadBalancerOf, translated } from '../../support/values/translated.ts';

const KEY = 'default/web';
const MASTER: Roles = { 'vrrp-51': 'master' };
const BACKUP: Roles = { 'vrrp-51': 'backup' };
const WEB = loadBalancerOf(translated([service(), slice({ endpoints: ['10.0.0.1'] })]));

/** One host; `hear()` gives it the report of another one. */
class Host {
  readonly desired = new Map<string, LoadBalancer>();
  readonly clock = new FakeClock();
  roles: Roles = BACKUP;
  isServing = false;
  /** keepalived has the VIPs. */
  isWritten = true;
  isRefused = false;
  isLike = false;
  isMoving = false;
  peer:
    | { readonly roles: Roles; readonly announced: readonly string[]; readonly unannounced: number }
    | undefined;
  readonly told: string[] = [];
  reports = 0;
  readonly announced = new Announced({
    desired: this.desired,
    served: (key) => (this.isServing ? this.desired.get(key) : 'pending'),
    vrrp: {
      roles: () => this.roles,
      holds: () => this.isWritten && Object.values(this.roles).includes('master'),
      isRefused: () => this.isRefused,
    },
    peer: () => this.peer,
    isMoving: () => this.isMoving,
    isServedAlike: () => this.isLike,
    hooks: { onReport: () => this.reports++, onAnnounced: (keys) => this.told.push(...keys) },
    clock: this.clock,
  });

  appear(loadBalancer = WEB): void {
    this.desired.set(loadBalancer.key, loadBalancer);
    this.announced.changed([loadBalancer.key]);
  }

  hear(other: Host): void {
    this.peer = { roles: other.roles, announced: other.announced.named, unannounced: other.announced.open };
    this.announced.look();
  }
}

test('A host that has the VIP publishes it, as soon as keepalived has it', async (t) => {
  const host = new Host();
  host.roles = MASTER;
  host.isWritten = false;
  host.appear();
  t.false(host.announced.mayPublish(KEY, false));
  host.isWritten = true;
  await host.clock.advance(100);
  t.deepEqual(host.told, [KEY]);
  t.true(host.announced.mayPublish(KEY, false));
});

test('A backup publishes when its peer serves the load balancer at the VIP, and not before', async (t) => {
  const [leader, active] = [new Host(), new Host()];
  active.roles = MASTER;
  leader.isServing = true;
  for (const host of [leader, active]) host.appear();
  leader.hear(active);
  t.false(leader.announced.mayPublish(KEY, false));
  await active.clock.advance(5_000);
  leader.hear(active);
  await leader.clock.advance(5_000);
  t.deepEqual([leader.told, active.reports], [[], 0]);
  active.isServing = true;
  await active.clock.advance(100);
  t.is(active.reports, 1);
  leader.hear(active);
  t.deepEqual(leader.told, [KEY]);
  t.true(leader.announced.mayPublish(KEY, false));
  // What is published stays, whatever becomes of the peer.
  leader.peer = undefined;
  t.true(leader.announced.mayPublish(KEY, false));
});

test('Another address of a published load balancer waits as a new one does', async (t) => {
  const host = new Host();
  host.appear();
  t.true(host.announced.mayPublish(KEY, true));
  const moved = { ...WEB, vips: WEB.vips.map((vip) => ({ ...vip, address: '192.0.2.99' })) };
  host.appear(moved);
  t.false(host.announced.mayPublish(KEY, false));
  host.roles = MASTER;
  await host.clock.advance(100);
  t.deepEqual(host.told, [KEY]);
});

test('What the peer has named before counts, also after many others; with another address it is another', async (t) => {
  const [leader, active] = [new Host(), new Host()];
  active.roles = MASTER;
  active.isServing = true;
  active.appear();
  leader.hear(active);
  for (let at = 0; at < 30; at++)
    active.appear({ ...WEB, key: `default/other-${at}`, listeners: [], name: `other-${at}` });
  t.is(active.announced.named.length, 24);
  leader.hear(active);
  leader.appear();
  t.true(leader.announced.mayPublish(KEY, false));
  const moved = {
    ...WEB,
    key: 'default/moved',
    vips: WEB.vips.map((vip) => ({ ...vip, address: '192.0.2.99' })),
  };
  leader.appear(moved);
  t.false(leader.announced.mayPublish('default/moved', false));
});

test('A backup that does not hear its peer waits, because another host has the VIP, but not forever', async (t) => {
  const host = new Host();
  host.isServing = true;
  host.appear();
  t.false(host.announced.mayPublish(KEY, false));
  await host.clock.advance(MOST_WAIT_MS - 1_000);
  t.deepEqual(host.told, []);
  await host.clock.advance(1_000);
  t.deepEqual(host.told, [KEY]);
});

test('A host that becomes master publishes, also without its peer', async (t) => {
  const host = new Host();
  host.isServing = true;
  host.appear();
  t.false(host.announced.mayPublish(KEY, false));
  host.roles = MASTER;
  host.announced.look();
  t.deepEqual(host.told, [KEY]);
});

test('A peer that is not master announces nothing, whatever it has named', async (t) => {
  const [leader, other] = [new Host(), new Host()];
  other.roles = MASTER;
  other.isServing = true;
  for (const host of [leader, other]) host.appear();
  other.roles = BACKUP;
  leader.hear(other);
  t.false(leader.announced.mayPublish(KEY, false));
});

test('Nothing waits without VRRP, if it is published, if the peer serves everything, or if VRRP cannot have the address', async (t) => {
  const cases: readonly ((host: Host) => boolean)[] = [
    (host) => {
      host.roles = {};
      return false;
    },
    () => true,
    (host) => {
      host.isLike = true;
      host.peer = { roles: MASTER, announced: [], unannounced: 0 };
      return false;
    },
    (host) => {
      host.isRefused = true;
      return false;
    },
  ];
  for (const [at, prepare] of cases.entries()) {
    const host = new Host();
    const isPublished = prepare(host);
    host.appear();
    t.true(host.announced.mayPublish(KEY, isPublished), `case ${at}`);
  }
});

test('A peer that serves the same, but does not have all of its VIPs yet, does not count', async (t) => {
  const [leader, active] = [new Host(), new Host()];
  active.roles = MASTER;
  active.isServing = true;
  active.isWritten = false;
  leader.isLike = true;
  for (const host of [leader, active]) host.appear();
  leader.hear(active);
  t.false(leader.announced.mayPublish(KEY, false));
  active.isWritten = true;
  await active.clock.advance(100);
  leader.hear(active);
  t.deepEqual(leader.told, [KEY]);
});

test('An address that appears while VIPs move is published when they have moved, by either host', async (t) => {
  for (const isLeaderActive of [true, false]) {
    const [leader, other] = [new Host(), new Host()];
    const [giver, taker] = isLeaderActive ? [leader, other] : [other, leader];
    giver.roles = MASTER;
    for (const host of [leader, other]) {
      host.isServing = true;
      host.isMoving = true;
      host.appear();
    }
    leader.hear(other);
    t.false(leader.announced.mayPublish(KEY, false));
    await leader.clock.advance(1_000);
    leader.hear(other);
    t.deepEqual([leader.told, giver.announced.named, taker.announced.named], [[], [], []]);
    [giver.roles, taker.roles] = [BACKUP, MASTER];
    for (const host of [leader, other]) {
      host.isMoving = false;
      await host.clock.advance(100);
    }
    leader.hear(other);
    t.deepEqual(leader.told, [KEY]);
  }
});

test('A load balancer that gets its address later waits then', (t) => {
  const host = new Host();
  host.appear({ ...WEB, vips: [] });
  t.true(host.announced.mayPublish(KEY, false), 'there is nothing to publish');
  host.appear();
  t.false(host.announced.mayPublish(KEY, false));
  host.announced.close();
});

test('A move that does not end keeps no address back forever', async (t) => {
  const host = new Host();
  host.roles = MASTER;
  host.isMoving = true;
  host.appear();
  t.false(host.announced.mayPublish(KEY, false));
  await host.clock.advance(MOST_WAIT_MS);
  t.deepEqual(host.told, [KEY]);
});

test('A load balancer that is removed and comes back waits again', async (t) => {
  const host = new Host();
  host.roles = MASTER;
  host.appear();
  t.true(host.announced.mayPublish(KEY, false));
  host.desired.delete(KEY);
  host.announced.changed([KEY]);
  host.roles = BACKUP;
  host.appear();
  t.false(host.announced.mayPublish(KEY, false));
  host.announced.close();
});

test('Nothing runs while nothing is waited for', async (t) => {
  const host = new Host();
  host.roles = MASTER;
  host.isServing = true;
  host.appear();
  t.true(host.announced.mayPublish(KEY, false));
  await host.clock.advance(MOST_WAIT_MS);
  t.false(host.clock.isWaiting);
});
