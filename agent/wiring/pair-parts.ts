// Creates this host's half of a pair and connects it with the dataplane, the desired state and VRRP.

import { messageOf } from '../base/errors.ts';
import { version } from '../base/version.ts';
import type { HaproxyDataplane } from '../haproxy/dataplane.ts';
import type { Log } from '../host/log.ts';
import { HandoverKernel } from '../pair/handover/kernel.ts';
import { Pair, type PairOptions } from '../pair/pair.ts';
import { pairSettings, tablesAddresses } from '../pair/pair-settings.ts';
import type { Settings } from '../settings/settings.ts';
import type { Announcers } from '../vips/announcers.ts';
import type { KeepalivedAnnouncer } from '../vips/keepalived/keepalived-announcer.ts';
import { prioritiesOf } from '../vips/vrrp.ts';

export interface PairPartsOptions extends Pick<PairOptions, 'metrics'>, Omit<PairOptions['host'], 'version'> {
  /** The settings in force. */
  readonly settings: () => Settings;
  readonly dataplane: PairOptions['dataplane'];
  readonly onAnnounced: PairOptions['hooks']['onAnnounced'];
  /** Shares its stick-tables with the HAProxy of the peer. */
  readonly haproxy: Pick<HaproxyDataplane, 'shareTables'>;
  readonly announcers: Announcers;
  /** undefined if this host has no VRRP. */
  readonly vrrp: KeepalivedAnnouncer | undefined;
  readonly log: Log;
}

/** undefined if the settings name no peer. Errors: SETTINGS_INVALID if they are incomplete. */
export function pairOf({
  settings,
  haproxy,
  announcers,
  vrrp,
  desired,
  objects,
  released,
  onAnnounced,
  log,
  ...rest
}: PairPartsOptions): Pair | undefined {
  const atStart = pairSettings(settings());
  if (atStart === undefined) return undefined;
  const paired = () => pairSettings(settings()) ?? atStart;
  const pair = new Pair({
    ...rest,
    settings: paired,
    host: { version, desired, objects, released },
    vrrp: {
      roles: () => vrrp?.roles() ?? {},
      holds: (address) => announcers.withheld(address) === '',
      standing: (reasons) => announcers.standing(reasons),
      auth: () => vrrp?.auth.report,
      hearAuth: (peer) => vrrp?.hearAuth(peer),
      priorities: (reasons) => vrrp?.priorities(reasons) ?? {},
      advertInterval: () => settings().vrrp?.advertInterval ?? 0,
      isRefused: (loadBalancer) => announcers.problemsOf(loadBalancer).length > 0,
    },
    handover: vrrp && handoverOf(settings, vrrp, desired),
    hooks: {
      onAnnounced,
      onProved: async (credentials) => {
        try {
          const place = tablesAddresses(paired());
          if (place !== undefined) await haproxy.shareTables(place, credentials);
        } catch (error) {
          log.error('Cannot share session affinity with the peer', { error: messageOf(error) });
        }
      },
    },
    log,
  });
  vrrp?.onState(() => pair.roleChanged());
  vrrp?.auth.onChanged(() => pair.authChanged());
  return pair;
}

/**
 * Gives VRRP the settings in force. If the new priorities move VIPs to the other host, it first waits, a few seconds at
 * most, until both hosts are prepared for the move.
 */
export async function configureVrrp(
  settings: () => Settings,
  announcer: KeepalivedAnnouncer | undefined,
  pair: Pair | undefined,
): Promise<void> {
  await pair?.beforePriorities((reasons) => prioritiesOf(settings().vrrp?.instances ?? [], reasons));
  // Read after the wait, because the settings may have changed again.
  const { vrrp, vrrpKey, auditInterval } = settings();
  if (vrrp !== undefined) announcer?.configure({ vrrp, vrrpKey, auditInterval });
}

function handoverOf(
  settings: () => Settings,
  announcer: KeepalivedAnnouncer,
  desired: PairOptions['host']['desired'],
): PairOptions['handover'] {
  const { vrrp: atStart, netns, nft, runtimeDir: scratch } = settings();
  if (atStart === undefined) return undefined;
  // No other pair on this network has the same virtualRouterId.
  const table = `headgate_handover_${atStart.instances[0]?.virtualRouterId}`;
  const place = () => settings().vrrp ?? atStart;
  return {
    kernel: new HandoverKernel({ netns, nft, place, table, scratch }),
    vipsOf: (names) => names.flatMap((name) => announcer.vipsOf(name)),
    forwarded: () =>
      [...desired.values()].flatMap(({ listeners }) =>
        listeners
          .filter(({ engine, protocol }) => engine === 'kernel' && protocol === 'TCP')
          .flatMap(({ addresses, port }) => addresses.map((address) => ({ address, port }))),
      ),
  };
}
