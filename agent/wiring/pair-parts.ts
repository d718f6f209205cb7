// Puts this host's part of a pair together with the dataplane, the desired state and VRRP; a host without a peer has
// none.

import { messageOf } from '../base/errors.ts';
import { version } from '../base/version.ts';
import type { HaproxyDataplane } from '../haproxy/dataplane.ts';
import type { Log } from '../host/log.ts';
import { HandoverKernel } from '../pair/handover/kernel.ts';
import { Pair, type PairOptions } from '../pair/pair.ts';
import { pairSettings, tablesPlace } from '../pair/pair-settings.ts';
import type { Settings } from '../settings/settings.ts';
import type { KeepalivedAnnouncer } from '../vips/keepalived/keepalived-announcer.ts';
import { prioritiesOf } from '../vips/vrrp.ts';

export interface PairPartsOptions extends Pick<PairOptions, 'desired' | 'objects' | 'metrics'> {
  /** As they are now. */
  readonly settings: () => Settings;
  readonly dataplane: PairOptions['dataplane'];
  /** Shares its stick-tables with the peer's. */
  readonly haproxy: Pick<HaproxyDataplane, 'shareTables'>;
  /** undefined if this host has no VRRP. */
  readonly announcer: KeepalivedAnnouncer | undefined;
  readonly log: Log;
}

/** undefined where the settings name no peer. Errors: SETTINGS_INVALID where they name one in part. */
export function pairOf({ settings, haproxy, announcer, log, ...rest }: PairPartsOptions): Pair | undefined {
  const atStart = pairSettings(settings());
  if (atStart === undefined) return undefined;
  const paired = () => pairSettings(settings()) ?? atStart;
  const pair = new Pair({
    ...rest,
    settings: paired,
    version,
    vrrp: {
      roles: () => announcer?.roles() ?? {},
      holds: (address) => announcer?.holds(address) ?? false,
      standing: (reasons) => announcer?.standing(reasons),
      priorities: (reasons) => announcer?.priorities(reasons) ?? {},
      advertInterval: () => settings().vrrp?.advertInterval ?? 0,
    },
    handover: announcer && handoverOf(settings, announcer),
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
  announcer?.onState(() => pair.roleChanged());
  return pair;
}

/**
 * Gives VRRP other settings. Priorities with which VIPs change hosts wait until both are prepared for that, some seconds
 * at most.
 */
export async function configureVrrp(
  settings: () => Settings,
  announcer: KeepalivedAnnouncer | undefined,
  pair: Pair | undefined,
): Promise<void> {
  await pair?.beforePriorities((reasons) => prioritiesOf(settings().vrrp?.instances ?? [], reasons));
  // There may be others by now.
  const { vrrp, auditInterval } = settings();
  if (vrrp !== undefined) announcer?.configure({ vrrp, auditInterval });
}

function handoverOf(settings: () => Settings, announcer: KeepalivedAnnouncer): PairOptions['handover'] {
  const { vrrp: atStart, netns, runtimeDir: scratch } = settings();
  if (atStart === undefined) return undefined;
  // Its number is this agent's alone on this network.
  const table = `headgate_handover_${atStart.instances[0]?.virtualRouterId}`;
  const place = () => settings().vrrp ?? atStart;
  return {
    kernel: new HandoverKernel({ netns, place, table, scratch }),
    vipsOf: (names) => names.flatMap((name) => announcer.vipsOf(name)),
  };
}
