// Creates what makes VIPs reachable, or finds out which are: the announcers, or without them the addresses of this host; and the
// machines outside the pair that have a VIP; and what lets pods open connections from VIPs.

import type { DataplaneFacts } from '../dataplane/forwarder.ts';
import type { LoadBalancer, OwnerKey, Problem } from '../model/load-balancer.ts';
import { EgressRules } from '../nftables/egress/egress-rules.ts';
import { tableOf } from '../nftables/paths.ts';
import { bgpSettings } from '../settings/announce.ts';
import { AddressAnswers } from '../vips/address-answers.ts';
import { Announcers } from '../vips/announcers.ts';
import { BirdAnnouncer } from '../vips/bird/bird-announcer.ts';
import { endFormerBird } from '../vips/bird/former-bird.ts';
import type { HostsByLink, PeerFacts } from '../vips/bird/options.ts';
import { ForeignHolders } from '../vips/foreign-holders.ts';
import { KeepalivedAnnouncer } from '../vips/keepalived/keepalived-announcer.ts';
import { LocalAddresses, localRoutes } from '../vips/local-addresses.ts';
import type { HostPeers } from './bgp-peers.ts';
import type { CommonParts } from './common-parts.ts';
import { VipPools } from './vip-pools.ts';

/** As of BirdOptions. */
export interface ReachFacts {
  readonly hosts: HostsByLink;
  readonly hasMembers: (owner: OwnerKey) => boolean;
  readonly peers: Omit<PeerFacts, 'problems'>;
}

export function reachParts(
  common: CommonParts,
  dataplane: Pick<DataplaneFacts, 'serves'>,
  { hosts, hasMembers, peers }: ReachFacts,
) {
  const { settings, group, desired, changed, metrics, log } = common;
  const { now } = settings;
  const { loadBalancers } = desired;
  const vipPools = new VipPools(common);
  const { isRouted, routeSpec } = vipPools;
  const vrrp =
    now.vrrp &&
    new KeepalivedAnnouncer({
      isOwn: (address) => !isRouted(address),
      settings: { ...now, vrrp: now.vrrp },
      metrics: metrics.dataplane,
      log,
      onRefused: changed,
    });
  const routes = bgpSettings(now);
  const passingTable = `${tableOf(now.stateDir)}_passing`;
  const bgp =
    routes &&
    new BirdAnnouncer({
      settings: { ...now, passingTable, bgp: { ...routes, aggregates: [] } },
      vips: {
        isRouted,
        routeSpec,
        hasMembers,
        serves: (listener, address) => dataplane.serves(listener, address),
      },
      peers: { ...peers, problems: () => refusedPeers(vipPools.hostPeers) },
      desired: loadBalancers,
      group,
      hosts,
      onChanged: changed,
      log,
    });
  const announcers = new Announcers({ vrrp, bgp });
  const local = announcers.isEmpty
    ? new LocalAddresses({
        desired: loadBalancers,
        serves: (listener, address) => dataplane.serves(listener, address),
        isExternal: () => settings.now.externalAnnouncer,
        onChanged: changed,
        read: localRoutes(now.netns),
        log,
      })
    : undefined;
  const foreign =
    now.vrrp &&
    new ForeignHolders({
      desired: loadBalancers,
      place: () => settings.now.vrrp ?? { interface: '', peers: [] },
      holds: (address) => announcers.withheld(address) === '',
      network: new AddressAnswers({
        netns: now.netns,
        nft: now.nft,
        // No other agent of this host has the same virtual router.
        table: `headgate_answers_${now.vrrp.instances[0]?.virtualRouterId}`,
        scratch: now.runtimeDir,
      }),
      onChanged: changed,
      log,
    });
  const egress = new EgressRules({ settings: now, onChanged: changed, metrics: metrics.dataplane, log });
  const reach = {
    problemsOf: (loadBalancer: LoadBalancer) =>
      [announcers, local, foreign, egress].flatMap((each) => each?.problemsOf(loadBalancer) ?? []),
  };
  /** Ends what announced for an agent before this one, with other settings. */
  const endFormer = async (): Promise<void> => {
    if (bgp === undefined) await endFormerBird({ ...now, passingTable }, log);
  };
  let pools = '';
  /** Pools, labels of hosts or the settings may have changed. */
  const poolsChanged = (): void => {
    vipPools.forget();
    const before = pools;
    pools = bgp === undefined ? '' : vipPools.signature;
    if (pools === before) return;
    vrrp?.follow(loadBalancers.keys(), loadBalancers);
    const { bgp: routes } = settings.now;
    if (routes !== undefined) bgp?.poolsChanged(vipPools.withObjects(routes));
  };
  const configureBgp = (): void => {
    const { bgp: routes } = settings.now;
    if (routes !== undefined) bgp?.configure(vipPools.withObjects(routes));
  };
  return {
    vrrp,
    bgp,
    vipPools,
    poolsChanged,
    configureBgp,
    endFormer,
    announcers,
    local,
    foreign,
    egress,
    reach,
  };
}

function refusedPeers({ refused }: HostPeers): readonly Problem[] {
  return [...refused].map(([name, why]) => ({
    object: `BGPPeer ${name}`,
    reason: 'InvalidObject',
    message: `BGPPeer ${name} is no peer of this host: ${why}`,
  }));
}
