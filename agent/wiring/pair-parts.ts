// Joins this host's pair with what the agent has: HAProxy, the desired state, VRRP. A host without a peer has none, and
// says so to whoever orders a failover.

import { messageOf } from '../base/errors.ts';
import { version } from '../base/version.ts';
import type { HaproxyDataplane } from '../haproxy/dataplane.ts';
import type { Log } from '../host/log.ts';
import { HandoverKernel } from '../pair/handover/kernel.ts';
import { Pair, type PairOptions } from '../pair/pair.ts';
import { pairSettings, tablesPlace } from '../pair/pair-settings.ts';
import type { Settings } from '../settings/settings.ts';
import type { Model } from '../translate/translate.ts';
import type { KeepalivedDataplane } from '../vips/keepalived/dataplane.ts';
import { prioritiesOf } from '../vips/keepalived/vrrp.ts';

export interface PairingOptions extends Pick<PairOptions, 'objects' | 'metrics'> {
  /** As they are now. */
  readonly settings: () => Settings;
  readonly model: Model;
  readonly haproxy: HaproxyDataplane;
  /** undefined where this host has no VRRP. */
  readonly keepalived: KeepalivedDataplane | undefined;
  readonly log: Log;
}

/** undefined where the settings name no peer. Errors: SETTINGS_INVALID where they name one in part. */
export function pairOf({
  settings,
  model,
  haproxy,
  keepalived,
  log,
  ...rest
}: PairingOptions): Pair | undefined {
  const atStart = pairSettings(settings());
  if (atStart === undefined) return undefined;
  const paired = () => pairSettings(settings()) ?? atStart;
  return new Pair({
    ...rest,
    settings: paired,
    version,
    wanted: model.loadBalancers,
    haproxy: {
      isServing: () => haproxy.status().serving,
      isReloading: () => haproxy.isReloading,
      ask: (timeoutMs) => haproxy.ask(timeoutMs),
      serves: (listener) => haproxy.serves(listener),
      workerPid: () => haproxy.status().workerPid,
      served: (key) => haproxy.served(key),
    },
    vrrp: {
      roles: () => keepalived?.roles() ?? {},
      holds: (address) => keepalived?.holds(address) ?? false,
      standing: (reasons) => keepalived?.standing(reasons),
      priorities: (reasons) => keepalived?.priorities(reasons) ?? {},
      advertInterval: () => settings().vrrp?.advertInterval ?? 0,
    },
    handover: keepalived && handoverOf(settings, keepalived),
    onProved: async (credentials) => {
      try {
        const place = tablesPlace(paired());
        if (place !== undefined) await haproxy.shareTables(place, credentials);
      } catch (error) {
        log.error('Session affinity is not shared', { error: messageOf(error) });
      }
    },
    log,
  });
}

/**
 * Gives VRRP other settings. Priorities with which VIPs change hosts wait until both are prepared for that, some seconds
 * at most.
 */
export async function configureVrrp(
  settings: () => Settings,
  keepalived: KeepalivedDataplane | undefined,
  pair: Pair | undefined,
): Promise<void> {
  await pair?.beforePriorities((reasons) => prioritiesOf(settings().vrrp?.instances ?? [], reasons));
  // There may be others by now.
  const { vrrp, auditInterval } = settings();
  if (vrrp !== undefined) keepalived?.configure({ vrrp, auditInterval });
}

function handoverOf(settings: () => Settings, keepalived: KeepalivedDataplane): PairOptions['handover'] {
  const { vrrp: atStart, netns, runtimeDir: scratch } = settings();
  if (atStart === undefined) return undefined;
  // Its number is this agent's alone on this network.
  const table = `headgate_handover_${atStart.instances[0]?.virtualRouterId}`;
  const place = () => settings().vrrp ?? atStart;
  return {
    kernel: new HandoverKernel({ netns, place, table, scratch }),
    vipsOf: (names) => names.flatMap((name) => keepalived.vipsOf(name)),
  };
}
