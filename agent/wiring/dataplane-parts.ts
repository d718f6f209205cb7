// Creates the dataplanes: the main HAProxy and the landing, which are one to the loop, and the kernel beside them.

import type { Metrics } from '../../health/metrics.ts';
import { Dataplanes } from '../dataplane/dataplanes.ts';
import { EngineChanges } from '../dataplane/engine-changes.ts';
import { Landing } from '../dataplane/landing.ts';
import { Placements } from '../dataplane/placements.ts';
import { HaproxyDataplane } from '../haproxy/dataplane.ts';
import type { HaproxyOptions } from '../haproxy/options.ts';
import { type Log, withFields } from '../host/log.ts';
import type { DesiredState } from '../model/desired-state.ts';
import { NftablesDataplane } from '../nftables/dataplane.ts';
import { currentGroup } from '../settings/host-group.ts';
import type { Settings } from '../settings/settings.ts';
import { movingSources } from '../vips/announcers.ts';

export interface DataplanePartsOptions {
  /** The settings in force. */
  readonly settings: () => Settings;
  readonly desired: Pick<DesiredState, 'loadBalancers' | 'poolUses'>;
  /** Keys of all owners, also those that are not served. */
  readonly ownerKeys: () => Iterable<string>;
  readonly pems: NonNullable<HaproxyOptions['pems']>;
  /** Makes the loop plan these load balancers again. */
  readonly replan: (keys: Iterable<string>) => void;
  /** The traffic of these load balancers has changed. */
  readonly changed: (keys: Iterable<string>) => void;
  readonly metrics: Metrics['dataplane'];
  readonly log: Log;
}

export function dataplaneOf(options: DataplanePartsOptions) {
  const { settings, ownerKeys, pems, replan, changed, metrics, log } = options;
  const { loadBalancers: desired, poolUses } = options.desired;
  const now = settings();
  const group = currentGroup(settings);
  const changes = new EngineChanges(desired);
  const ofHaproxy = changes.viewOf('haproxy');
  const placements = new Placements(ofHaproxy, poolUses);
  const onChecked = (keys: readonly string[]): void => {
    kernel.checked(keys);
    changed(keys);
  };
  const common = { settings: now, replan, pems };
  const haproxy: HaproxyDataplane = new HaproxyDataplane({
    ...common,
    desired: placements.main,
    other: {
      isMain: false,
      hasAlone: (key) => desired.has(key) && !placements.main.has(key),
      worker: () => landing.worker,
      counted: ofHaproxy,
    },
    hooks: { onKnown: () => replan(ownerKeys()), onChecked },
    metrics,
    log,
  });
  const landing: HaproxyDataplane = new HaproxyDataplane({
    ...common,
    desired: placements.landing,
    other: {
      isMain: true,
      hasAlone: (key) => desired.has(key) && !placements.landing.has(key),
      worker: () => haproxy.worker,
      statistics: haproxy.statistics,
    },
    hooks: { onChecked },
    metrics: { ...metrics, reloaded: (_, result) => metrics.landingReloaded(result) },
    log: withFields(log, { haproxy: 'landing' }),
  });
  haproxy.statistics.include({
    isUsed: () => placements.landed().length > 0,
    worker: () => landing.worker?.runtime,
  });
  const both = new Landing<Settings>({
    engine: 'haproxy',
    desired: ofHaproxy,
    placements,
    main: haproxy,
    landing,
    settings: now,
    replan,
    onAway: (landed, error) =>
      log.warn('The landing does not serve: its Services go to the main HAProxy', { landed, error }),
  });
  const kernel: NftablesDataplane = new NftablesDataplane({
    settings: now,
    desired: changes.viewOf('kernel'),
    replan,
    onChanged: changed,
    sources: () => movingSources(settings(), group()),
    checkedMembers: (listener) => both.members(listener),
    metrics,
    log,
  });
  const dataplane = new Dataplanes<Settings>(
    desired,
    changes,
    { engine: 'haproxy', dataplane: both },
    { engine: 'kernel', dataplane: kernel },
  );
  return { dataplane, haproxy };
}
