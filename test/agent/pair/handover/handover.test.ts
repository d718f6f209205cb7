import test, { type ExecutionContext } from 'ava';
import { Handover } from '../../../../agent/pair/handover/handover.ts';
import type { OwnDiversion } from '../../../../agent/pair/handover/kernel.ts';
import type { PairReport } from '../../../../agent/pair/peers/report.ts';
import { noArrivals, noAuthReport, noLink, noVips } from '../../../../agent/pair/peers/report.ts';
import type { Roles } from '../../../../agent/pair/roles.ts';
import { nothingReleased } from '../../../../agent/state/release-mark.ts';
import { FakeClock, settled } from '../../../support/basics/fake-clock.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const VIP = '192.0.2.1';
/** The VIP of the instance `vrrp-52`. */
const OTHER = '192.0.2.2';
const CONNECTION = { client: '198.51.100.7', clientPort: 40_000, vip: VIP, port: 443 };
const MASTER: Roles = { 'vrrp-51': 'master' };
const BACKUP: Roles = { 'vrrp-51': 'backup' };

/** A host with a kernel that only writes down what is done to it. */
class Host {
  readonly clock: FakeClock;
  readonly done: string[] = [];
  readonly handedOver: string[] = [];
  readonly handover: Handover;
  readonly link;
  roles: Roles = BACKUP;
  connections = 0;
  /** The VIPs to which connections were counted last. */
  counted: readonly string[] = [];
  whyNotDivert = '';
  whyNotLend = '';
  /** What the first look at this host waits for. */
  looking: Promise<void> = Promise.resolve();
  /** What an order to lend itself VIPs waits for. */
  lending: Promise<void> = Promise.resolve();
  /** What an order to pass connections on waits for. */
  diverting: Promise<void> = Promise.resolve();
  diversion: OwnDiversion | undefined;
  other: Host | undefined;
  /** Whether it hears the other one. */
  hears = true;

  constructor(clock: FakeClock, number: number, drainTimeout = 60_000) {
    this.clock = clock;
    this.link = { ether: `02:00:00:00:00:0${number}`, v4: `192.0.2.1${number}`, v6: '' };
    this.handover = new Handover({
      kernel: {
        whyNotLend: async () => {
          await this.looking;
          return this.whyNotLend;
        },
        whyNotDivert: async () => this.whyNotDivert,
        link: async () => this.link,
        lend: async (vips, seconds) => {
          await this.lending;
          this.#note(`lend ${vips} ${seconds}`);
        },
        takeBack: async (vips) => this.#note(`take back ${vips}`),
        divert: async (diversion) => {
          await this.diverting;
          this.diversion = diversion;
          this.#note(`divert ${diversion.vips} ${diversion.seconds}`);
        },
        endDiversion: async () => this.#note('end diversion'),
        connections: async (vips) => {
          this.counted = vips;
          return Array.from({ length: this.connections }, () => CONNECTION);
        },
      },
      vipsOf: (instances) => [...new Set(instances.map((name) => (name === 'vrrp-52' ? OTHER : VIP)))],
      forwarded: () => [],
      roles: () => this.roles,
      peer: () => (this.hears ? this.other?.report : undefined),
      send: () => setImmediate(() => this.other?.handover.peerChanged()),
      drainTimeout,
      metrics: { handedOver: (connections) => this.handedOver.push(connections) },
      log: silentLog(),
      clock,
    });
  }

  get report(): PairReport {
    const { roles } = this;
    const rest = { version: '1', instance: '0'.repeat(16), lowered: [], synced: true, loadBalancers: 1 };
    return {
      ...rest,
      roles,
      priorities: {},
      pending: 0,
      model: '',
      running: '',
      handover: this.handover.report,
      announced: [],
      unannounced: 0,
      vips: noVips,
      arrivals: noArrivals,
      announcesAll: false,
      hosts: '',
      isBlind: false,
      released: nothingReleased,
      vrrpAuth: noAuthReport,
    };
  }

  /** What has been done since this was asked last. */
  get deeds(): string {
    return this.done.splice(0).join('; ');
  }

  #note(deed: string): void {
    this.done.push(deed);
  }
}

async function pair(t: ExecutionContext, drainTimeout?: number): Promise<readonly [Host, Host, FakeClock]> {
  const clock = new FakeClock();
  const hosts = [new Host(clock, 1, drainTimeout), new Host(clock, 2, drainTimeout)] as const;
  const [a, b] = hosts;
  [a.other, b.other, a.roles] = [b, a, MASTER];
  t.teardown(() => {
    for (const { handover } of hosts) handover.close();
  });
  for (const { handover } of hosts) await handover.start();
  await settled();
  return [a, b, clock];
}

/** As an order does it, with a VRRP that moves the VIPs at once. */
async function move(from: Host, to: Host): Promise<void> {
  await from.handover.prepare();
  [from.roles, to.roles] = [BACKUP, MASTER];
  from.handover.done();
  await settled();
}

test('Both hosts are prepared before the VIPs move', async (t) => {
  const [a, b] = await pair(t);
  a.connections = 1;
  await a.handover.prepare();
  t.is(a.deeds, `lend ${VIP} 61`);
  t.is(b.deeds, `divert ${VIP} 61`);
  t.deepEqual(b.diversion?.peer, a.link);
  t.deepEqual(b.diversion?.own, []);
  t.deepEqual(a.handedOver, ['kept']);
});

test('VIPs are moving from the beginning of the preparation until they have moved', async (t) => {
  const [a, b] = await pair(t);
  const lent = Promise.withResolvers<void>();
  a.lending = lent.promise;
  t.false(a.handover.isMoving);
  const prepared = a.handover.prepare();
  t.true(a.handover.isMoving, 'before the peer is asked');
  lent.resolve();
  await prepared;
  await settled();
  t.true(a.handover.isMoving, 'both are prepared');
  t.false(b.handover.isMoving, 'it is told by the report of the other one');
  a.handover.done();
  t.false(a.handover.isMoving);
});

test('A handover ends on both hosts when no connection is left', async (t) => {
  const [a, b, clock] = await pair(t);
  a.connections = 1;
  await move(a, b);
  t.is([a.deeds, b.deeds].join(), `lend ${VIP} 61,divert ${VIP} 61`);
  await clock.advance(30_000);
  t.is(a.handover.status.left, 1);
  t.not(b.handover.status.until, '');
  t.is([a.deeds, b.deeds].join(), ',');
  a.connections = 0;
  await clock.advance(2_000);
  t.is(a.deeds, `end diversion; take back ${VIP}`);
  t.is(b.deeds, 'end diversion; take back ');
  for (const { handover } of [a, b]) t.like(handover.status, { until: '', left: 0 });
});

test('A handover ends at the deadline with connections left', async (t) => {
  const [a, b, clock] = await pair(t);
  a.connections = 1;
  await move(a, b);
  await clock.advance(59_000);
  t.is([a.deeds, b.deeds].join(), `lend ${VIP} 61,divert ${VIP} 61`);
  await clock.advance(2_000);
  t.is(a.deeds, `end diversion; take back ${VIP}`);
  t.is(b.deeds, 'end diversion; take back ');
});

test('A host that gets its VIPs back keeps the connections that it has served in the meantime', async (t) => {
  const [a, b, clock] = await pair(t);
  a.connections = 1;
  await move(a, b);
  await clock.advance(5_000);
  b.connections = 2;
  await move(b, a);
  t.deepEqual(a.diversion?.own, [CONNECTION]);
  t.deepEqual(a.diversion?.peer, b.link);
  t.is(a.deeds, `lend ${VIP} 61; divert ${VIP} 61`);
  t.is(b.deeds, `divert ${VIP} 61; lend ${VIP} 61`);
  await clock.advance(30_000);
  t.is(b.handover.status.left, 2);
  b.connections = 0;
  await clock.advance(2_000);
  t.is(a.deeds, `end diversion; take back ${VIP}`);
  t.is(b.deeds, `end diversion; take back ${VIP}`);
});

test('A handover waits for a peer that has just started and does not know yet whether it can', async (t) => {
  const clock = new FakeClock();
  const [a, b] = [new Host(clock, 1), new Host(clock, 2)];
  [a.other, b.other, a.roles] = [b, a, MASTER];
  const looked = Promise.withResolvers<void>();
  b.looking = looked.promise;
  await a.handover.start();
  const starting = b.handover.start();
  const prepared = a.handover.prepare();
  await settled();
  t.deepEqual(a.handedOver, []);
  looked.resolve();
  await starting;
  await settled();
  await prepared;
  t.deepEqual(a.handedOver, ['kept']);
  t.is(b.deeds, `divert ${VIP} 61`);
  for (const { handover } of [a, b]) handover.close();
});

test('A handover does not wait for a peer that cannot pass connections on', async (t) => {
  const [a, b] = await pair(t);
  b.whyNotDivert = 'nft is missing';
  await b.handover.start();
  t.is(a.handover.status.whyNot, 'The peer cannot pass connections on');
  await a.handover.prepare();
  t.deepEqual(a.handedOver, ['cut']);
  t.is(b.deeds, '');
});

test('A peer that is not prepared in time does not divert connections later', async (t) => {
  const [a, b, clock] = await pair(t);
  const slow = Promise.withResolvers<void>();
  b.diverting = slow.promise;
  const preparing = a.handover.prepare();
  await clock.advance(5_000);
  await preparing;
  t.deepEqual(a.handedOver, ['cut']);
  slow.resolve();
  await settled();
  t.is(b.deeds, `divert ${VIP} 61; end diversion`);
  t.is(b.handover.report.ready, '');
});

test('A peer that became master before it was prepared passes no connections on', async (t) => {
  const [a, b, clock] = await pair(t);
  const slow = Promise.withResolvers<void>();
  b.diverting = slow.promise;
  const preparing = a.handover.prepare();
  await clock.advance(100);
  b.roles = MASTER;
  slow.resolve();
  await settled();
  t.is(b.deeds, `divert ${VIP} 61; end diversion`);
  await clock.advance(5_000);
  await preparing;
});

test('VIPs that have not moved end a handover on both hosts', async (t) => {
  const [a, b, clock] = await pair(t);
  a.connections = 1;
  await a.handover.prepare();
  a.handover.done();
  await clock.advance(2_000);
  t.is([a.deeds, b.deeds].join(), `lend ${VIP} 61,divert ${VIP} 61`);
  await clock.advance(3_000);
  t.is(a.deeds, `end diversion; take back ${VIP}`);
  t.is(b.deeds, 'end diversion; take back ');
});

test('A handover ends before the deadline when the peer is dead', async (t) => {
  const [a, b, clock] = await pair(t);
  a.connections = 1;
  await move(a, b);
  b.hears = false;
  await clock.advance(9_000);
  t.is(b.deeds, `divert ${VIP} 61`);
  await clock.advance(2_000);
  t.is(b.deeds, 'end diversion; take back ');
});

test('A host that was stalled does not treat its peer as dead', async (t) => {
  const [a, b, clock] = await pair(t);
  a.connections = 1;
  await move(a, b);
  await clock.advance(5_000);
  t.is([a.deeds, b.deeds].join(), `lend ${VIP} 61,divert ${VIP} 61`);
  // What the peer has said meanwhile is read after the first look.
  b.hears = false;
  clock.hang(30_000);
  await clock.advance(0);
  b.hears = true;
  await clock.advance(2_000);
  t.is([a.deeds, b.deeds].join(), ',');
  t.is(a.handover.status.left, 1);
});

test('A handover counts connections only some time after the VIPs have moved', async (t) => {
  const [a, b, clock] = await pair(t);
  await a.handover.prepare();
  await clock.advance(5_000);
  [a.roles, b.roles] = [BACKUP, MASTER];
  // The order has not noticed yet.
  await clock.advance(1_000);
  t.is(a.handover.report.left, -1);
  t.is(a.handover.status.left, undefined);
  a.handover.done();
  await clock.advance(2_500);
  t.is(a.handover.report.left, -1);
  t.is([a.deeds, b.deeds].join(), `lend ${VIP} 61,divert ${VIP} 61`);
  await clock.advance(1_000);
  t.is([a.deeds, b.deeds].join(), `end diversion; take back ${VIP},end diversion; take back `);

  // Without an order of the host that gives them, too.
  await a.handover.request();
  await clock.advance(5_000);
  [a.roles, b.roles] = [MASTER, BACKUP];
  await clock.advance(2_500);
  t.is(b.handover.report.left, -1);
  t.is([a.deeds, b.deeds].join(), `divert ${VIP} 61,lend ${VIP} 61`);
});

test('A host that requests VIPs prepares both hosts before it rises', async (t) => {
  const [a, b, clock] = await pair(t);
  a.connections = 1;
  await b.handover.request();
  await settled();
  t.is(a.deeds, `lend ${VIP} 61`);
  t.is(b.deeds, `divert ${VIP} 61`);
  t.deepEqual(a.handedOver, ['kept']);
  t.is(b.handover.report.wants, '');
  // VRRP takes its time.
  await clock.advance(10_000);
  t.not(a.handover.report.asks, '');
  [a.roles, b.roles] = [BACKUP, MASTER];
  await clock.advance(10_000);
  t.is(a.handover.report.asks, '');
  t.is(a.handover.status.left, 1);
  t.is([a.deeds, b.deeds].join(), ',');
  a.connections = 0;
  await clock.advance(2_000);
  t.is(a.deeds, `end diversion; take back ${VIP}`);
  t.is(b.deeds, 'end diversion; take back ');
});

test('A host that has just started prepares both hosts after its checks', async (t) => {
  const [a, , clock] = await pair(t);
  const late = new Host(clock, 3);
  t.teardown(() => late.handover.close());
  [a.other, late.other] = [late, a];
  const looked = Promise.withResolvers<void>();
  late.looking = looked.promise;
  const starting = late.handover.start();
  const wishing = late.handover.request();
  await settled();
  t.is([a.deeds, late.deeds].join(), ',');
  looked.resolve();
  await Promise.all([starting, wishing]);
  t.is([a.deeds, late.deeds].join(), `lend ${VIP} 61,divert ${VIP} 61`);
});

test('A request for VIPs that do not come leaves nothing behind', async (t) => {
  const [a, b, clock] = await pair(t);
  await b.handover.request();
  t.is([a.deeds, b.deeds].join(), `lend ${VIP} 61,divert ${VIP} 61`);
  await clock.advance(62_000);
  t.is(a.deeds, `end diversion; take back ${VIP}`);
  t.is(b.deeds, 'end diversion; take back ');
  t.is(a.handover.report.asks, '');
});

test('A host that keeps other VIPs counts the connections to those that have gone', async (t) => {
  const [a, b, clock] = await pair(t);
  a.roles = { 'vrrp-51': 'master', 'vrrp-52': 'master' };
  a.connections = 1;
  await b.handover.request();
  t.is(a.deeds, `lend ${VIP},${OTHER} 61`);
  a.roles = { 'vrrp-51': 'backup', 'vrrp-52': 'master' };
  b.roles = MASTER;
  await clock.advance(10_000);
  t.deepEqual(a.counted, [VIP]);
  t.is(a.handover.status.left, 1);
  t.is(a.deeds, '');
});

test('A request does not wait for a peer that cannot grant it, and some seconds for any other', async (t) => {
  const [a, b, clock] = await pair(t);
  a.whyNotLend = 'arp_ignore is 0';
  await a.handover.start();
  await b.handover.request();
  t.is([a.deeds, b.deeds].join(), ',');
  a.whyNotLend = '';
  await a.handover.start();
  const slow = Promise.withResolvers<void>();
  b.diverting = slow.promise;
  const wishing = b.handover.request();
  await clock.advance(7_000);
  await wishing;
  t.deepEqual(a.handedOver, ['cut']);
  slow.resolve();
});

test('A request for VIPs joins an order that the peer carries out already', async (t) => {
  const [a, b] = await pair(t);
  await a.handover.prepare();
  t.is([a.deeds, b.deeds].join(), `lend ${VIP} 61,divert ${VIP} 61`);
  await b.handover.request();
  t.is(b.handover.report.wants, '');
  t.is([a.deeds, b.deeds].join(), ',');
});

test('An order right after a granted request is prepared as any other', async (t) => {
  const [a, b, clock] = await pair(t);
  [a.roles, b.roles] = [
    { 'vrrp-51': 'master', 'vrrp-52': 'master' },
    { 'vrrp-51': 'backup', 'vrrp-52': 'backup' },
  ];
  await b.handover.request();
  await settled();
  [a.roles, b.roles] = [
    { 'vrrp-51': 'backup', 'vrrp-52': 'master' },
    { 'vrrp-51': 'master', 'vrrp-52': 'backup' },
  ];
  const lending = Promise.withResolvers<void>();
  a.lending = lending.promise;
  const prepared = a.handover.prepare();
  // The look that would find that the VIPs of the wish have gone comes now.
  await clock.advance(500);
  lending.resolve();
  await clock.advance(5_000);
  await prepared;
  t.deepEqual(a.handedOver, ['kept', 'kept']);
  // Connections to the VIPs that moved first continue.
  t.deepEqual(b.diversion?.vips, [VIP, OTHER]);
  a.connections = 1;
  [a.roles, b.roles] = [
    { 'vrrp-51': 'backup', 'vrrp-52': 'backup' },
    { 'vrrp-51': 'master', 'vrrp-52': 'master' },
  ];
  a.handover.done();
  await clock.advance(4_000);
  t.deepEqual(a.counted, [VIP, OTHER]);
  a.connections = 0;
  await clock.advance(1_000);
  t.true(a.deeds.includes(`take back ${VIP},${OTHER}`));
});

test('What a handover needs of its host is checked again each minute', async (t) => {
  const [a, b, clock] = await pair(t);
  t.is(a.handover.status.whyNot, '');
  [a.whyNotLend, b.whyNotDivert] = ['arp_ignore is 0', 'no nft'];
  await clock.advance(60_000);
  t.is(a.handover.status.whyNot, 'arp_ignore is 0');
  t.false(b.handover.report.can);
  [a.whyNotLend, b.whyNotDivert] = ['', ''];
  await clock.advance(60_000);
  t.is(a.handover.status.whyNot, '');
  t.true(b.handover.report.can);
});

test('A handover that is switched off prepares nothing', async (t) => {
  const [a, b] = await pair(t, 0);
  t.regex(a.handover.status.whyNot, /switched off/);
  t.false(a.handover.report.can);
  await a.handover.prepare();
  await b.handover.request();
  t.is([a.deeds, b.deeds].join(), ',');
  t.deepEqual(a.handover.report.link, noLink);
});

test('The rules of an agent before this one are removed when they must be over', async (t) => {
  const [a, , clock] = await pair(t);
  await clock.advance(59_000);
  t.is(a.deeds, '');
  await clock.advance(2_000);
  t.is(a.deeds, 'end diversion');
});
