// Creates what lowers a host that announces by BGP, and connects it with the dataplane and the announcer.

import { hash } from 'node:crypto';
import { messageOf } from '../base/errors.ts';
import { version } from '../base/version.ts';
import type { HaproxyDataplane } from '../haproxy/dataplane.ts';
import type { Log } from '../host/log.ts';
import { inNamespace } from '../host/namespace.ts';
import { runCommand } from '../host/run-command.ts';
import type { HostGroup } from '../model/host-group.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';
import { BgpHost, type BgpHostOptions } from '../pair/bgp-host.ts';
import { connectionsIn, SS_ARGUMENTS } from '../pair/handover/connections.ts';
import { HostLinks, type HostLinksOptions } from '../pair/host-links.ts';
import { ArrivalCounter } from '../pair/orders/arrival-counter.ts';
import { tablesOfGroup } from '../pair/pair-settings.ts';
import type { Settings } from '../settings/settings.ts';
import type { BirdAnnouncer } from '../vips/bird/bird-announcer.ts';
import type { KeepalivedAnnouncer } from '../vips/keepalived/keepalived-announcer.ts';

export interface BgpHostPartsOptions
  extends Pick<BgpHostOptions, 'dataplane'>,
    Omit<BgpHostOptions['host'], 'version'> {
  /** The settings in force. */
  readonly settings: () => Settings;
  /** undefined if this host does not announce by BGP. */
  readonly bgp: BirdAnnouncer | undefined;
  /** Lowered by the same reasons; undefined if this host has no VRRP. */
  readonly vrrp: Pick<KeepalivedAnnouncer, 'standing'> | undefined;
  readonly group: () => HostGroup | undefined;
  /** Shares its stick-tables with the HAProxies of the other hosts. */
  readonly haproxy: Pick<HaproxyDataplane, 'shareTables'>;
  readonly metrics: { readonly pairRefused: HostLinksOptions['hooks']['onRefused'] };
  readonly log: Log;
}

/** undefined if this host does not announce by BGP. */
export function bgpHostOf(given: BgpHostPartsOptions): BgpHost | undefined {
  const { settings, dataplane, desired, objects, released, bgp, vrrp, log } = given;
  if (bgp === undefined) return undefined;
  const { netns, nft, runtimeDir } = settings();
  return new BgpHost({
    settings,
    host: { version, desired, objects, released },
    dataplane,
    announcer: {
      standing: (reasons) => {
        vrrp?.standing(reasons);
        return bgp.standing(reasons);
      },
      get isActive() {
        return bgp.isActive;
      },
      fault: () => bgp.status().fault,
      announcesAll: () => bgp.announcesAll,
      isBlind: () => bgp.living.isBlind,
      told: () => bgp.told(),
    },
    links: linksOf(given, bgp),
    clients: {
      connections: () => openConnections(netns, desired),
      counter: new ArrivalCounter({
        ...{ netns, nft, scratch: runtimeDir },
        // No other agent has the same folder.
        table: `headgate_arrivals_${hash('sha256', runtimeDir).slice(0, 8)}`,
      }),
    },
    log,
  });
}

/** undefined without the setting `hosts`, or with this host alone in it. */
function linksOf(
  { settings, group, haproxy, metrics, log }: BgpHostPartsOptions,
  bgp: BirdAnnouncer,
): BgpHostOptions['links'] {
  const atStart = group();
  const { pairPort: port, pairCredentials: credentials } = settings();
  if (atStart === undefined || credentials === '') return undefined;
  const hosts = () => group() ?? atStart;
  const place = () => tablesOfGroup(settings(), hosts());
  return ({ own, onReport }) =>
    new HostLinks({
      group: hosts,
      link: { port, credentials, tables: () => JSON.stringify(place() ?? '') },
      own,
      living: bgp.living,
      announcement: (address) => bgp.seen(address),
      hooks: {
        onReport,
        onProved: async (proved) => {
          try {
            const now = place();
            if (now !== undefined) await haproxy.shareTables(now, proved);
          } catch (error) {
            log.error('Cannot share session affinity with the other hosts', { error: messageOf(error) });
          }
        },
        onRefused: (why) => metrics.pairRefused(why),
      },
      log,
    });
}

/** Connections to HAProxy: the kernel's flows are no sockets. undefined if `ss` does not answer. */
async function openConnections(
  netns: string,
  desired: ReadonlyMap<string, LoadBalancer>,
): Promise<number | undefined> {
  const vips = new Set([...desired.values()].flatMap((each) => each.vips.map(({ address }) => address)));
  const [program, args] = inNamespace(netns, 'ss', SS_ARGUMENTS);
  const shown = await runCommand(program, args, { timeout: 10_000 }).catch(() => undefined);
  return shown?.exitCode === 0 ? connectionsIn(shown.stdout, vips).length : undefined;
}
