// Creates the parts of the agent in the order in which data flows: each part gets the parts that stand above it.
// A part that comes later is passed as a function (() => ...). Nothing runs yet; main.ts starts the parts.

import type { Certificates } from '../certificates/certificates.ts';
import { ConnectionSync } from '../nftables/conntrackd/connection-sync.ts';
import { syncLink } from '../nftables/conntrackd/sync-link.ts';
import type { BgpHost } from '../pair/bgp-host.ts';
import { pairSettings } from '../pair/pair-settings.ts';
import { agentState } from '../report/answers/status.ts';
import { checkAmphora } from '../settings/amphora-alone.ts';
import { bgpSettings } from '../settings/announce.ts';
import { checkLogTarget } from '../settings/connection-log.ts';
import { CurrentSettings } from '../settings/current-settings.ts';
import { hostGroup } from '../settings/host-group.ts';
import type { HostsByLink } from '../vips/bird/options.ts';
import { bgpHostOf } from './bgp-host-parts.ts';
import { type CommonParts, certificatesOf, commonParts } from './common-parts.ts';
import { dataplaneOf } from './dataplane-parts.ts';
import { hostReports } from './host-report-parts.ts';
import { objectParts } from './object-parts.ts';
import { pairOf } from './pair-parts.ts';
import { reachParts } from './reach-parts.ts';
import { releaseParts } from './release-parts.ts';
import { reportParts } from './report-parts.ts';

export type AgentParts = Awaited<ReturnType<typeof agentParts>>;

/** Errors: SETTINGS_INVALID. */
export function currentSettings(argv: readonly string[]): CurrentSettings {
  return new CurrentSettings(argv, (read) => [
    pairSettings(read),
    syncLink(read),
    checkLogTarget(read),
    checkAmphora(read),
    bgpSettings(read),
    hostGroup(read),
  ]);
}

export async function agentParts(settings: CurrentSettings) {
  // The store of objects, the queue of changes, the load balancers that are made from the objects, and the observers
  // of load balancers.
  const common: CommonParts = commonParts(settings, () =>
    agentState({ known: reports.statusSources, certificates, changes, ...objects }),
  );
  const { log, cluster, desired, changes, replan, changed, metrics } = common;

  const certificates: Certificates = certificatesOf(common, () => objects.sources);

  // HAProxy carries TCP, the kernel UDP and SCTP.
  const { dataplane, haproxy } = dataplaneOf({
    settings: () => settings.now,
    desired,
    ownerKeys: () => [...cluster.ownerKeys(), ...desired.loadBalancers.keys()],
    pems: certificates.pems,
    replan,
    changed,
    metrics: metrics.dataplane,
    log,
  });

  // keepalived, if this host uses VRRP, makes the VIPs reachable.
  const hosts: HostsByLink = {
    isAnnouncedElsewhere: () => bgpHost?.isAnnouncedElsewhere ?? false,
    blind: () => bgpHost?.blind ?? new Set(),
    onBlind: () => bgpHost?.send(),
    differing: () => bgpHost?.differing ?? new Set(),
  };
  const reached = reachParts(common, dataplane, {
    hosts,
    hasMembers: (owner) => reports.hasMembers(owner),
    peers: {
      areRead: () => objects.sources.areRead,
      secret: (field) => objects.sources.password(field),
    },
  });
  const connectionSync = new ConnectionSync({
    settings: settings.now,
    link: () => syncLink(settings.now),
    log,
  });

  // The sources of objects, the writers to the cluster, the addresses of Services, and the translators.
  const objects = await objectParts(common, certificates, dataplane, reached.egress);

  // The peer, the observers, and the answers to commands.
  const pair = pairOf({
    settings: () => settings.now,
    desired: desired.loadBalancers,
    dataplane,
    haproxy,
    announcers: reached.announcers,
    vrrp: reached.vrrp,
    objects: () => objects.sources.objects,
    onAnnounced: changed,
    released: () => common.releaseMark.scope,
    metrics: metrics.pair,
    log,
  });
  const bgpHost: BgpHost | undefined = bgpHostOf({
    settings: () => settings.now,
    desired: desired.loadBalancers,
    dataplane,
    haproxy,
    // The pair lowers all announcers of its hosts.
    bgp: pair === undefined ? reached.bgp : undefined,
    vrrp: reached.vrrp,
    group: common.group,
    released: () => common.releaseMark.scope,
    metrics: metrics.pair,
    objects: () => objects.sources.objects,
    log,
  });
  const known = { common, dataplane, reached, objects, pair, bgpHost };
  const releasing = releaseParts(known);
  const reports = reportParts({ ...known, certificates, connectionSync });
  const { client, writers, sources } = objects;
  const ofHosts =
    client &&
    writers &&
    hostReports({
      ...{ common, api: client, writers },
      current: (kind, name) => sources.api?.currentReports(kind, name),
      ...{ bgp: reached.bgp, vipPools: reached.vipPools },
    });

  return {
    ...common,
    certificates,
    dataplane,
    ...reached,
    connectionSync,
    ...objects,
    pair,
    bgpHost,
    ...releasing,
    ordered: { bgpHost, vrrp: reached.vrrp, ...releasing },
    ...reports,
    hostReports: ofHosts,
    poolsChanged: (): void => {
      reached.poolsChanged();
      const { peers } = reached.vipPools.hostPeers;
      sources.keepPasswords(new Set(peers.flatMap(({ object }) => object?.secret?.name ?? [])));
    },
  };
}
