// Creates what lowers a host that announces by BGP, and connects it with the dataplane and the announcer.

import type { Log } from '../host/log.ts';
import { inNamespace } from '../host/namespace.ts';
import { runCommand } from '../host/run-command.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';
import { connectionsIn, SS_ARGUMENTS } from '../pair/handover/connections.ts';
import { HostAlone, type HostAloneOptions } from '../pair/host-alone.ts';
import type { Settings } from '../settings/settings.ts';
import type { BirdAnnouncer } from '../vips/bird/bird-announcer.ts';

export interface AlonePartsOptions extends Pick<HostAloneOptions, 'desired' | 'dataplane' | 'objects'> {
  /** The settings in force. */
  readonly settings: () => Settings;
  /** undefined if this host does not announce by BGP. */
  readonly bgp: BirdAnnouncer | undefined;
  readonly log: Log;
}

/** undefined if this host does not announce by BGP. */
export function hostAlone({ settings, bgp, ...rest }: AlonePartsOptions): HostAlone | undefined {
  if (bgp === undefined) return undefined;
  const { netns } = settings();
  return new HostAlone({
    ...rest,
    settings,
    announcer: {
      standing: (reasons) => bgp.standing(reasons),
      get isActive() {
        return bgp.isActive;
      },
      fault: () => bgp.status().fault,
    },
    connections: () => openConnections(netns, rest.desired),
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
