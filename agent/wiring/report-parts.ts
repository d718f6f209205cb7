// Creates the observers of load balancers: members and ports recorded on disk, health, the cluster's status and Events, the peer,
// the log, the status page; and what answers the commands.

import { publishedBy } from '../address-keeper/owner-objects.ts';
import { systemClock } from '../base/clock.ts';
import { version } from '../base/version.ts';
import type { Certificates } from '../certificates/certificates.ts';
import type { DataplaneFacts } from '../dataplane/forwarder.ts';
import type { Meter } from '../dataplane/meter.ts';
import { memberOfCookie } from '../haproxy/member-cookie.ts';
import { isItsOwn } from '../kubernetes/writers/service-status.ts';
import { shownAddress } from '../model/load-balancer.ts';
import type { ConnectionSync } from '../nftables/conntrackd/connection-sync.ts';
import type { BgpHost } from '../pair/bgp-host.ts';
import type { Pair } from '../pair/pair.ts';
import { LoadBalancerSummaries } from '../report/answers/load-balancer-summaries.ts';
import { lostSince } from '../report/answers/lost-cluster.ts';
import type { StatusSources } from '../report/answers/status.ts';
import { ChangeLog } from '../report/change-log.ts';
import { ObjectReporter } from '../report/cluster/object-reporter.ts';
import { Reporter } from '../report/cluster/reporter.ts';
import { HealthTracker } from '../report/operating/status-book.ts';
import { Overview } from '../report/page/overview.ts';
import { TrafficBook } from '../report/page/traffic-book.ts';
import { problemObserver } from '../report/problem-log.ts';
import { ProgrammingLatency } from '../report/programming-latency.ts';
import { RecordedMembers } from '../state/recorded-members.ts';
import { RecordedPorts } from '../state/recorded-ports.ts';
import { getsAddresses } from '../translate/service/service-vips.ts';
import type { CommonParts } from './common-parts.ts';
import type { ObjectParts } from './object-parts.ts';
import { proofsOf } from './proofs.ts';
import type { reachParts } from './reach-parts.ts';

/** What the reports are about. */
export interface ReportedParts {
  readonly common: CommonParts;
  readonly certificates: Certificates;
  readonly dataplane: DataplaneFacts & Meter;
  readonly reached: ReturnType<typeof reachParts>;
  readonly objects: ObjectParts;
  readonly pair: Pair | undefined;
  readonly bgpHost: BgpHost | undefined;
  readonly connectionSync: ConnectionSync;
}

export function reportParts(reported: ReportedParts) {
  const { common, dataplane, reached, pair, bgpHost } = reported;
  const { settings, desired, observers, changed, problemLog, metrics, log } = common;
  const { loadBalancers } = desired;
  const { stateDir } = settings.now;
  const { reach } = reached;
  const recordedMembers = new RecordedMembers({ stateDir, desired, log });
  const recordedPorts = new RecordedPorts({ stateDir, desired, log });
  const health = new HealthTracker({ loadBalancers, dataplane, reach, onChanged: changed });
  const operating = health.book;
  const { reporter, objectReporter } = clusterReporters(reported, operating);
  const statusSources = statusSourcesOf(reported, operating, { recordedMembers, recordedPorts });
  const rows = new LoadBalancerSummaries(statusSources);
  const traffic = new TrafficBook(dataplane);
  const overview = new Overview(statusSources, rows, traffic);
  const programming = new ProgrammingLatency({
    now: Date.now,
    isServed: (key) => loadBalancers.get(key)?.listeners.some(({ name }) => dataplane.serves(name)) === true,
    observe: (path, seconds) => metrics.loop.programmed(seconds, path),
  });
  const problems = problemObserver({ desired, dataplane, reach, health: operating, problemLog });
  const changeLog = new ChangeLog({ desired, log });
  observers.subscribe(
    reached.bgp,
    reached.local,
    reporter,
    objectReporter,
    pair,
    bgpHost,
    health,
    changeLog,
    problems,
    rows,
    recordedMembers,
    recordedPorts,
  );
  /** Unknown is not none. */
  const hasMembers = (owner: string): boolean =>
    operating
      .of(owner)
      ?.listeners.some(({ pool, ready }) => pool !== 'ERROR' && (pool !== 'OFFLINE' || ready > 0)) ?? true;
  return {
    hasMembers,
    recordedMembers,
    recordedPorts,
    reporter,
    objectReporter,
    statusSources,
    page: { overview, rows, traffic },
    programming,
  };
}

/** Reporters of Services, and of all other objects; undefined without a cluster. */
function clusterReporters(
  { common, dataplane, reached, objects, pair }: ReportedParts,
  operating: HealthTracker['book'],
) {
  const { settings, cluster, desired } = common;
  const { writers, sources, addresses } = objects;
  if (writers === undefined) return { reporter: undefined, objectReporter: undefined };
  const { isReleased } = common.releaseMark;
  const isPublished = (key: string): boolean => {
    const shown = publishedBy(cluster, key);
    const vips = desired.loadBalancers.get(key)?.vips ?? [];
    return vips.every((vip) => isItsOwn(vip) || shown.includes(shownAddress(vip)));
  };
  const unready = (): boolean => settings.now.publishUnready;
  const publishing = {
    /** Its claim is stored, and the host of a pair that has its VIPs serves it. */
    isKept: (key: string): boolean =>
      addresses.isKept(key) && (unready() || pair?.mayPublish(key, isPublished(key)) !== false),
    unready,
  };
  const facts = {
    writers,
    cluster,
    desired,
    dataplane,
    reach: reached.reach,
    operating,
    publishing,
    isReleased,
  };
  const reporter = new Reporter({
    ...facts,
    selects: settings.now.serviceSelector !== '',
    isOurs: (service) =>
      getsAddresses(service, settings.translating, addresses.ofPools(service.key) !== undefined),
  });
  const objectReporter = new ObjectReporter({
    ...facts,
    clock: systemClock,
    currentObject: (name) => sources.api?.currentObject(name),
    withOwnEntries: () => sources.api?.withOwnEntries() ?? [],
  });
  return { reporter, objectReporter };
}

function statusSourcesOf(
  { common, certificates, dataplane, reached, objects, pair, bgpHost, connectionSync }: ReportedParts,
  operating: HealthTracker['book'],
  recorded: { readonly recordedMembers: RecordedMembers; readonly recordedPorts: RecordedPorts },
): StatusSources {
  const { settings, cluster, desired } = common;
  const { sources, writers, addresses } = objects;
  const { announcers, egress, reach } = reached;
  const { recordedMembers, recordedPorts } = recorded;
  const startedAt = new Date();
  return {
    version,
    startedAt,
    cluster,
    desired,
    dataplane,
    operating,
    announcers,
    reach,
    pair,
    bgpHost,
    connectionSync,
    egress,
    addresses,
    api: () => sources.api,
    clusterLostSince: () =>
      common.releaseMark.scope.all
        ? 0
        : lostSince(sources.api, { startedAt, afterMs: settings.now.clusterLostAfter, now: Date.now() }),
    released: () => common.releaseMark.scope,
    writing: () => writers?.status(),
    sourceProblems: () => sources.problems,
    pathsOf: (identity) => sources.pathsOf(identity),
    disk: () => ({
      folder: settings.now.stateDir,
      files: [
        ...dataplane.status().files,
        ...egress.files,
        ...sources.files,
        ...addresses.files,
        recordedMembers.file,
        recordedPorts.file,
      ],
    }),
    zone: () => settings.now.zone,
    dotSegments: () => settings.now.dotSegments,
    ambiguousPaths: () => settings.now.ambiguousPaths,
    proofs: proofsOf(certificates),
    stickyMember: memberOfCookie,
    dashboardUrl: () => settings.now.dashboardUrl,
  };
}
