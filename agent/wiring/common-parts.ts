// Creates what all parts of the agent share: the log and metrics, the store of objects, the queue of changes, the load balancers
// that are made from the objects, and the observers of load balancers.

import { join } from 'node:path';
import { type AgentState, Metrics } from '../../health/metrics.ts';
import { version } from '../base/version.ts';
import { Certificates, type SourceName } from '../certificates/certificates.ts';
import { readJwks } from '../certificates/token-keys/jwks-reader.ts';
import { KeyUrls } from '../certificates/token-keys/key-urls.ts';
import { Changes } from '../changes.ts';
import { haproxyPaths } from '../haproxy/paths.ts';
import { createLog } from '../host/log.ts';
import { Cluster, type ObjectRef } from '../kubernetes/cluster.ts';
import { KINDS, type Kind } from '../kubernetes/kinds.ts';
import { STATUS_KINDS } from '../kubernetes/status-kinds.ts';
import { emptyDesiredState } from '../model/desired-state.ts';
import { ChangeObservers } from '../report/change-observers.ts';
import { ProblemLog } from '../report/problem-log.ts';
import type { CurrentSettings } from '../settings/current-settings.ts';
import { currentGroup } from '../settings/host-group.ts';
import type { Sources } from '../sources/sources.ts';
import { ReleaseMark } from '../state/release-mark.ts';
import { reasonToIgnore } from '../translate/service/service-vips.ts';

const LEFT_OUT: ReadonlySet<Kind> = new Set(
  [...STATUS_KINDS, 'IngressClass' as const].filter((kind) => kind !== 'BackendTLSPolicy'),
);

export type CommonParts = ReturnType<typeof commonParts>;

/** `state`: the values of the gauges, read at each scrape. */
export function commonParts(settings: CurrentSettings, state: () => AgentState) {
  const log = createLog({ level: settings.now.logLevel });
  const releaseMark = new ReleaseMark(join(settings.now.stateDir, 'released.json'));
  settings.leaveOut(releaseMark.isReleased);
  /** Services stay, because routes of other namespaces may send to them. */
  const isLeftOut = ({ kind, key }: ObjectRef): boolean =>
    LEFT_OUT.has(kind) && releaseMark.isReleased(KINDS[kind].isOfCluster ? '' : (key.split('/')[0] ?? ''));
  const desired = emptyDesiredState(() => settings.now);
  const changes = new Changes();
  const observers = new ChangeObservers();
  return {
    settings,
    /** The hosts that serve the same VIPs. */
    group: currentGroup(() => settings.now),
    log,
    problemLog: new ProblemLog(log),
    metrics: new Metrics(version, state),
    releaseMark,
    cluster: new Cluster(
      (service) => reasonToIgnore(service, settings.translating, true) === undefined,
      isLeftOut,
    ),
    desired,
    changes,
    observers,
    /** Makes the loop plan these load balancers again. */
    replan: (keys: Iterable<string>): void => changes.addReplan(keys),
    /** The traffic of these load balancers, or what is known of it, has changed. */
    changed: (keys: Iterable<string>): void => observers.changed(keys),
  };
}

/** The certificates of listeners: those of an earlier agent first, so that its listeners keep them until they are read. */
export function certificatesOf(
  { settings, cluster, desired, changes }: CommonParts,
  sources: () => Sources,
): Certificates {
  const isRead = (source: SourceName) => desired.dependents.of([source]).size > 0;
  const onChanged = (sources: readonly SourceName[]) =>
    changes.add(desired.dependents.of(sources), performance.now());
  const keyUrls = new KeyUrls({ allowed: () => settings.now.jwksUrls, read: readJwks, isRead, onChanged });
  const certificates = new Certificates({
    secret: (key) => cluster.secret(key),
    configMap: (key) => cluster.configMap(key),
    maxRsaBits: settings.now.maxRsaBits,
    accessToPair: (object) => sources().accessToPair(object),
    accessToAuthority: (object) => sources().accessToAuthority(object),
    keyUrls,
    isRead,
    onChanged,
  });
  const { now } = settings;
  for (const folder of ['haproxy', 'haproxy-landing'] as const) {
    const kept = haproxyPaths(now.stateDir, now.runtimeDir, now.haproxyAccess, folder);
    certificates.restore(kept.certificates);
    certificates.restorePages(kept.pages);
    certificates.restoreTokenKeys(kept.keys);
  }
  return certificates;
}
