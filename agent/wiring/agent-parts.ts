// Puts the parts of the agent together, in the order in which data flows: each part is given what stands above it.

import { hostname } from 'node:os';
import { Metrics } from '../../health/metrics.ts';
import { AddressKeeper } from '../address-keeper/address-keeper.ts';
import { version } from '../base/version.ts';
import { Changes } from '../changes.ts';
import { Dataplanes } from '../dataplane/dataplanes.ts';
import { HaproxyDataplane } from '../haproxy/dataplane.ts';
import { createLog, type Log } from '../host/log.ts';
import { Cluster } from '../kubernetes/cluster.ts';
import { hostIdentity } from '../kubernetes/writers/host-identity.ts';
import { type DesiredState, emptyDesiredState } from '../model/desired-state.ts';
import type { Pair } from '../pair/pair.ts';
import { pairSettings } from '../pair/pair-settings.ts';
import { ChangeObservers } from '../report/change-observers.ts';
import { ClusterWriters } from '../report/cluster-writers.ts';
import { Overview } from '../report/overview.ts';
import { ProblemLog, ProblemObserver } from '../report/problem-log.ts';
import { Reporter } from '../report/reporter.ts';
import { agentState, type StatusSources } from '../report/status.ts';
import { HealthTracker } from '../report/status-book.ts';
import { CurrentSettings } from '../settings/current-settings.ts';
import type { Settings } from '../settings/settings.ts';
import { apiClient } from '../sources/cluster-api.ts';
import { Sources } from '../sources/sources.ts';
import { KeptMembers } from '../state/kept-members.ts';
import { ServiceTranslator } from '../translate/service/service-translator.ts';
import { isOurLoadBalancer, whyNotOurs } from '../translate/service/service-vips.ts';
import type { Translators } from '../translate/translate.ts';
import { KeepalivedAnnouncer } from '../vips/keepalived/keepalived-announcer.ts';
import { pairOf } from './pair-parts.ts';

export interface AgentParts {
  readonly settings: CurrentSettings;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly cluster: Cluster;
  readonly changes: Changes;
  /** Only the loop changes it. */
  readonly desired: DesiredState;
  readonly translators: Translators;
  readonly sources: Sources;
  readonly addresses: AddressKeeper;
  readonly dataplane: Dataplanes<Settings>;
  /** undefined if this host has no VRRP. */
  readonly announcer: KeepalivedAnnouncer | undefined;
  /** undefined if this host has no peer. */
  readonly pair: Pair | undefined;
  /** undefined without a cluster. */
  readonly writers: ClusterWriters | undefined;
  readonly reporter: Reporter | undefined;
  readonly observers: ChangeObservers;
  readonly keptMembers: KeptMembers;
  readonly overview: Overview;
  /** What `status`, `why` and the metrics read. */
  readonly statusSources: StatusSources;
}

/** Nothing runs yet. Errors: SETTINGS_INVALID. */
export async function agentParts(argv: readonly string[]): Promise<AgentParts> {
  const settings = new CurrentSettings(argv, pairSettings);
  const { now } = settings;
  const log = createLog({ level: now.logLevel });
  const problemLog = new ProblemLog(log);
  const metrics: Metrics = new Metrics(version, () =>
    agentState({ known: statusSources, changes, sources, writers }),
  );

  // The desired state: the objects, what of them has changed, and the load balancers that follow from them.
  const cluster = new Cluster((service) => whyNotOurs(service, settings.translating) === undefined);
  const desired = emptyDesiredState();
  const { loadBalancers } = desired;
  const changes = new Changes();
  const observers = new ChangeObservers();
  const replan = (keys: Iterable<string>): void => changes.addReplan(keys);
  const changed = (keys: Iterable<string>): void => observers.changed(keys);

  // What carries the traffic, and what makes its addresses reachable.
  const haproxy = new HaproxyDataplane({
    settings: now,
    desired: loadBalancers,
    replan,
    onKnown: () => replan(cluster.serviceKeys()),
    onChecked: changed,
    metrics: metrics.dataplane,
    log,
  });
  const dataplane = new Dataplanes<Settings>(loadBalancers, { engine: 'haproxy', dataplane: haproxy });
  const announcer =
    now.vrrp &&
    new KeepalivedAnnouncer({
      settings: { ...now, vrrp: now.vrrp },
      metrics: metrics.dataplane,
      log,
      onRefused: changed,
    });

  // Where objects come from, what is written to the cluster, and which addresses Services get.
  const api = apiClient(now);
  const sources = new Sources({
    settings: now,
    client: api,
    cluster,
    desired,
    changes,
    problemLog,
    metrics,
    log,
  });
  const writers =
    api &&
    new ClusterWriters({
      api,
      currentService: (key) => sources.api?.currentService(key),
      isFit: () => !dataplane.status().isAway,
      settings: { ...now, identity: await hostIdentity(hostname(), now.stateDir) },
      metrics: metrics.api,
      log,
    });
  const addresses = new AddressKeeper({
    cluster,
    settings: now,
    translating: settings.translating,
    api,
    writers,
    home: () => sources.claimHome(),
    onChanged: (keys) => changes.add(keys, performance.now()),
    onKept: (service) => changed([service]),
    onProblems: (problems) => problemLog.report('addresses', problems),
    metrics: metrics.addresses,
    log,
  });
  const translators = {
    Service: new ServiceTranslator({
      cluster,
      settings: () => settings.translating,
      ofPools: addresses.ofPools,
      desired,
    }),
  };

  // Who hears that load balancers changed: members kept on disk, the cluster, the peer, the log, the page.
  const keptMembers = new KeptMembers({ stateDir: now.stateDir, desired, log });
  const health = new HealthTracker({ loadBalancers, dataplane, onChanged: changed });
  const operating = health.book;
  const reporter =
    writers &&
    new Reporter({
      writers,
      cluster,
      desired,
      dataplane,
      announcer,
      operating,
      selects: now.serviceSelector !== '',
      isOurs: (service) => isOurLoadBalancer(service, settings.translating),
      isKept: (key) => addresses.isKept(key),
    });
  const pair = pairOf({
    settings: () => settings.now,
    desired: loadBalancers,
    dataplane,
    haproxy,
    announcer,
    objects: () => sources.objects,
    metrics: metrics.pair,
    log,
  });
  const statusSources: StatusSources = {
    version,
    startedAt: new Date(),
    cluster,
    desired,
    dataplane,
    operating,
    announcer,
    pair,
    addresses,
    api: () => sources.api,
    writing: () => writers?.status(),
    sourceProblems: () => sources.problems,
    zone: () => settings.now.zone,
  };
  const overview = new Overview(statusSources);
  const problems = new ProblemObserver({ desired, dataplane, announcer, health: operating, problemLog });
  observers.subscribe(reporter, pair, health, problems, overview, keptMembers);

  return {
    settings,
    log,
    metrics,
    cluster,
    changes,
    desired,
    translators,
    sources,
    addresses,
    dataplane,
    announcer,
    pair,
    writers,
    reporter,
    observers,
    keptMembers,
    overview,
    statusSources,
  };
}
