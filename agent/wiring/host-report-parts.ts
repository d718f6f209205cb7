// Creates what reports of BGPPeers and of pools that are announced by BGP: what this host has to say of each, and what the cluster
// shows of them.

import { systemClock } from '../base/clock.ts';
import type { CurrentReports, ReportedKind } from '../kubernetes/host-report.ts';
import type { Problem } from '../model/load-balancer.ts';
import type { ClusterWriters } from '../report/cluster/cluster-writers.ts';
import { HostReports, type HostReportsOptions, type OwnReport } from '../report/cluster/host-reports.ts';
import { peerWords, poolWords } from '../report/cluster/report-words.ts';
import type { BirdAnnouncer } from '../vips/bird/bird-announcer.ts';
import type { CommonParts } from './common-parts.ts';
import type { VipPools } from './vip-pools.ts';

export interface HostReportParts {
  readonly common: Pick<CommonParts, 'cluster' | 'log'>;
  readonly api: HostReportsOptions['cluster']['api'];
  readonly current: (kind: ReportedKind, name: string) => CurrentReports | undefined;
  readonly writers: Pick<ClusterWriters, 'isLeader' | 'events' | 'onLeader'>;
  /** undefined if this host does not announce by BGP. */
  readonly bgp: BirdAnnouncer | undefined;
  readonly vipPools: VipPools;
}

export type ReportsOfHosts = ReturnType<typeof hostReports>;

const PEER = 'BGPPeer ';

export function hostReports(given: HostReportParts) {
  const { common, bgp, vipPools, writers } = given;
  /** Name of a BGPPeer that cannot be read → why. */
  let unreadable: ReadonlyMap<string, string> = new Map();
  const of = (
    kind: ReportedKind,
    more: Pick<HostReportsOptions, 'own' | 'words'>,
    names: () => Iterable<string>,
  ): HostReports =>
    new HostReports({
      kind,
      cluster: {
        api: given.api,
        isLeader: () => writers.isLeader,
        events: writers.events,
        current: (name) => given.current(kind, name),
        names,
      },
      host: () => vipPools.hostName,
      clock: systemClock,
      log: common.log,
      ...more,
    });
  const peers = of(
    'BGPPeer',
    { own: () => ownPeers(bgp, vipPools), words: peerWords((name) => unreadable.get(name) ?? '') },
    () => new Set([...[...common.cluster.peers()].map(({ name }) => name), ...unreadable.keys()]),
  );
  let round = 0;
  let pools: ReadonlyMap<string, OwnReport> = new Map();
  const announced = of(
    'AddressPool',
    {
      // It looks at every VIP.
      own: () => {
        if (round++ % SECONDS_BETWEEN_POOLS === 0)
          pools = bgp === undefined ? new Map() : ownPools(bgp, vipPools);
        return pools;
      },
      words: poolWords,
    },
    () => [...common.cluster.pools()].map(({ name }) => name),
  );
  writers.onLeader((isLeader) => {
    peers.lead(isLeader);
    announced.lead(isLeader);
  });
  return {
    start(): void {
      peers.start();
      announced.start();
    },
    shown(kind: ReportedKind, name: string): void {
      (kind === 'BGPPeer' ? peers : announced).shown(name);
    },
    /** All present problems with objects of the API. */
    cannotRead(problems: readonly Problem[]): void {
      const before = unreadable;
      const own = problems.filter(({ object }) => object.startsWith(PEER));
      unreadable = new Map(own.map(({ object, message }) => [object.slice(PEER.length), message]));
      for (const name of new Set([...before.keys(), ...unreadable.keys()])) peers.shown(name);
    },
    async close(): Promise<void> {
      await Promise.all([peers.close(), announced.close()]);
    },
  };
}

const SECONDS_BETWEEN_POOLS = 5;

function ownPeers(
  bgp: BirdAnnouncer | undefined,
  { hostPeers: { refused, peers } }: VipPools,
): ReadonlyMap<string, OwnReport | undefined> {
  if (bgp === undefined) return new Map();
  const ofObjects = peers.filter(({ object }) => object !== undefined);
  return new Map<string, OwnReport | undefined>([
    ...[...refused].map(([name, message]) => [name, { state: 'Refused', message }] as const),
    ...ofObjects.map((peer) => [peer.name, bgp.sessionOf(peer)] as const),
  ]);
}

/** Pools with a VIP of this host that it may announce. */
function ownPools(bgp: BirdAnnouncer, vipPools: VipPools): ReadonlyMap<string, OwnReport> {
  const found = new Map<string, { readonly routers: Set<string>; readonly whys: string[] }>();
  for (const { address, peers, why } of bgp.announcements()) {
    const pool = vipPools.poolOf(address);
    if (pool === undefined || vipPools.routeSpec(address)?.whyNot) continue;
    const { routers, whys } = found.get(pool) ?? { routers: new Set<string>(), whys: [] };
    found.set(pool, { routers, whys });
    for (const each of peers) routers.add(each);
    if (why !== '') whys.push(`${address}: ${why}`);
  }
  return new Map(
    [...found].map(([pool, { routers, whys }]): [string, OwnReport] => {
      const [first = '', ...others] = whys;
      const more = others.length === 0 ? '' : `; and ${others.length} more addresses`;
      if (first !== '') return [pool, { state: 'Down', message: `${first}${more}` }];
      return [pool, { state: 'Up', message: `to ${[...routers].sort().join(', ')}` }];
    }),
  );
}
