// Creates the parts of the agent in the order in which data flows: each part gets the parts that stand above it.
// A part that comes later is passed as a function (() => ...). Nothing runs yet; main.ts starts the parts.

import { hostname } from 'node:os';
import { Metrics } from '../../health/metrics.ts';
import { AddressKeeper } from '../address-keeper/address-keeper.ts';
import { systemClock } from '../base/clock.ts';
import { version } from '../base/version.ts';
import { Certificates } from '../certificates/certificates.ts';
import { Changes } from '../changes.ts';
import { haproxyPaths } from '../haproxy/paths.ts';
import { createLog } from '../host/log.ts';
import { Cluster } from '../kubernetes/cluster.ts';
import { hostIdentity } from '../kubernetes/writers/host-identity.ts';
import { emptyDesiredState } from '../model/desired-state.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';
import { ConnectionSync } from '../nftables/conntrackd/connection-sync.ts';
import { syncLink } from '../nftables/conntrackd/sync-link.ts';
import type { Pair } from '../pair/pair.ts';
import { pairSettings } from '../pair/pair-settings.ts';
import { LoadBalancerSummaries } from '../report/answers/load-balancer-summaries.ts';
import { agentState, type StatusSources } from '../report/answers/status.ts';
import { ChangeLog } from '../report/change-log.ts';
import { ChangeObservers } from '../report/change-observers.ts';
import { ClusterWriters } from '../report/cluster/cluster-writers.ts';
import { ObjectReporter } from '../report/cluster/object-reporter.ts';
import { Reporter } from '../report/cluster/reporter.ts';
import { HealthTracker } from '../report/operating/status-book.ts';
import { Overview } from '../report/page/overview.ts';
import { TrafficBook } from '../report/page/traffic-book.ts';
import { ProblemLog, problemObserver } from '../report/problem-log.ts';
import { ProgrammingLatency } from '../report/programming-latency.ts';
import { checkLogTarget } from '../settings/connection-log.ts';
import { CurrentSettings } from '../settings/current-settings.ts';
import { apiClient } from '../sources/cluster-api.ts';
import { Sources } from '../sources/sources.ts';
import { RecordedMembers } from '../state/recorded-members.ts';
import { RecordedPorts } from '../state/recorded-ports.ts';
import { GatewayClassTranslator } from '../translate/gateway/gateway-class-translator.ts';
import { GatewayTranslator } from '../translate/gateway/gateway-translator.ts';
import { IngressTranslator } from '../translate/ingress/ingress-translator.ts';
import { PoolTranslator } from '../translate/pool/pool-translator.ts';
import { ServiceTranslator } from '../translate/service/service-translator.ts';
import { getsAddresses, reasonToIgnore } from '../translate/service/service-vips.ts';
import { AddressAnswers } from '../vips/address-answers.ts';
import { Announcers } from '../vips/announcers.ts';
import { ForeignHolders } from '../vips/foreign-holders.ts';
import { KeepalivedAnnouncer } from '../vips/keepalived/keepalived-announcer.ts';
import { LocalAddresses, localRoutes } from '../vips/local-addresses.ts';
import { dataplaneOf } from './dataplane-parts.ts';
import { pairOf } from './pair-parts.ts';

export type AgentParts = Awaited<ReturnType<typeof agentParts>>;

/** Errors: SETTINGS_INVALID. */
export function currentSettings(argv: readonly string[]): CurrentSettings {
  return new CurrentSettings(argv, (read) => [pairSettings(read), syncLink(read), checkLogTarget(read)]);
}

export async function agentParts(settings: CurrentSettings) {
  const { now } = settings;
  const log = createLog({ level: now.logLevel });
  const problemLog = new ProblemLog(log);
  const metrics: Metrics = new Metrics(version, () =>
    agentState({ known: statusSources, certificates, changes, sources, writers }),
  );

  // The store of objects, the queue of changes, the load balancers that are made from the objects, and the observers
  // of load balancers.
  const cluster = new Cluster((service) => reasonToIgnore(service, settings.translating, true) === undefined);
  const desired = emptyDesiredState(() => settings.now);
  const { loadBalancers } = desired;
  const changes = new Changes();
  const observers = new ChangeObservers();
  const replan = (keys: Iterable<string>): void => changes.addReplan(keys);
  const changed = (keys: Iterable<string>): void => observers.changed(keys);

  // The certificates of listeners: those of an earlier agent first, so that its listeners keep them until they are read.
  const certificates: Certificates = new Certificates({
    secret: (key) => cluster.secret(key),
    configMap: (key) => cluster.configMap(key),
    maxRsaBits: now.maxRsaBits,
    accessToPair: (object) => sources.accessToPair(object),
    accessToAuthority: (object) => sources.accessToAuthority(object),
    isRead: (object) => desired.dependents.of([object]).size > 0,
    onChanged: (objects) => changes.add(desired.dependents.of(objects), performance.now()),
  });
  for (const folder of ['haproxy', 'haproxy-landing'] as const) {
    const kept = haproxyPaths(now.stateDir, now.runtimeDir, now.haproxyAccess, folder);
    certificates.restore(kept.certificates);
    certificates.restorePages(kept.pages);
  }

  // HAProxy carries TCP, the kernel UDP and SCTP; keepalived, if this host uses VRRP, makes the VIPs reachable.
  const { dataplane, haproxy } = dataplaneOf({
    settings: () => settings.now,
    desired,
    ownerKeys: () => [...cluster.ownerKeys(), ...loadBalancers.keys()],
    pems: certificates.pems,
    replan,
    changed,
    metrics: metrics.dataplane,
    log,
  });
  const vrrp =
    now.vrrp &&
    new KeepalivedAnnouncer({
      settings: { ...now, vrrp: now.vrrp },
      metrics: metrics.dataplane,
      log,
      onRefused: changed,
    });
  const announcers = new Announcers({ vrrp });

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
  const reach = {
    problemsOf: (loadBalancer: LoadBalancer) =>
      [announcers, local, foreign].flatMap((each) => each?.problemsOf(loadBalancer) ?? []),
  };

  const connectionSync = new ConnectionSync({ settings: now, link: () => syncLink(settings.now), log });

  // The sources of objects, the writers to the cluster, and the addresses of Services.
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
      currentObject: (name) => sources.api?.currentObject(name),
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
  const translating = {
    cluster,
    settings: () => settings.translating,
    ofPools: addresses.ofPools,
    certificates,
    desired,
  };
  const translators = {
    Service: new ServiceTranslator({ ...translating, isUndecided: addresses.isUndecided }),
    Gateway: new GatewayTranslator(translating),
    GatewayClass: new GatewayClassTranslator(cluster, () => sources.definitionVersions()),
    Ingress: new IngressTranslator(translating),
    Pool: new PoolTranslator(translating),
  };

  // The observers: members and ports kept on disk, health, the cluster's status and Events, the peer, the log, the status page.
  const recordedMembers = new RecordedMembers({ stateDir: now.stateDir, desired, log });
  const recordedPorts = new RecordedPorts({ stateDir: now.stateDir, desired, log });
  const health = new HealthTracker({ loadBalancers, dataplane, reach, onChanged: changed });
  const operating = health.book;
  /** Its claim is stored, and the host of a pair that has its VIPs serves it. */
  const mayPublish = (key: string): boolean =>
    addresses.isKept(key) && pair?.mayPublish(key, cluster.service(key)?.statusIPs.length !== 0) !== false;
  const reporter =
    writers &&
    new Reporter({
      writers,
      cluster,
      desired,
      dataplane,
      reach,
      operating,
      selects: now.serviceSelector !== '',
      isOurs: (service) =>
        getsAddresses(service, settings.translating, addresses.ofPools(service.key) !== undefined),
      isKept: mayPublish,
    });
  const objectReporter =
    writers &&
    new ObjectReporter({
      writers,
      clock: systemClock,
      cluster,
      desired,
      dataplane,
      reach,
      operating,
      isKept: mayPublish,
      currentObject: (name) => sources.api?.currentObject(name),
      withOwnEntries: () => sources.api?.withOwnEntries() ?? [],
    });
  const pair: Pair | undefined = pairOf({
    settings: () => settings.now,
    desired: loadBalancers,
    dataplane,
    haproxy,
    announcers,
    vrrp,
    objects: () => sources.objects,
    onAnnounced: changed,
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
    announcers,
    reach,
    pair,
    connectionSync,
    addresses,
    api: () => sources.api,
    writing: () => writers?.status(),
    sourceProblems: () => sources.problems,
    pathsOf: (identity) => sources.pathsOf(identity),
    disk: () => ({
      folder: now.stateDir,
      files: [
        ...dataplane.status().files,
        ...sources.files,
        ...addresses.files,
        recordedMembers.file,
        recordedPorts.file,
      ],
    }),
    zone: () => settings.now.zone,
    dotSegments: () => settings.now.dotSegments,
    ambiguousPaths: () => settings.now.ambiguousPaths,
    knowsUser: ({ name, fingerprint }, user) =>
      certificates.pems
        .users(name, fingerprint)
        ?.split('\n')
        .some((line) => line.startsWith(`${user}:`)) === true,
    dashboardUrl: () => settings.now.dashboardUrl,
  };
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
    local,
    reporter,
    objectReporter,
    pair,
    health,
    changeLog,
    problems,
    rows,
    recordedMembers,
    recordedPorts,
  );

  return {
    settings,
    log,
    metrics,
    cluster,
    changes,
    desired,
    certificates,
    translators,
    sources,
    addresses,
    dataplane,
    announcers,
    vrrp,
    local,
    foreign,
    pair,
    connectionSync,
    writers,
    reporter,
    objectReporter,
    observers,
    recordedMembers,
    recordedPorts,
    overview,
    rows,
    traffic,
    programming,
    statusSources,
  };
}
