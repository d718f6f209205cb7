// The parts of the agent, put together: each is given what it works on, and whom it tells.

import { hostname } from 'node:os';
import { Metrics } from '../../health/metrics.ts';
import { AddressKeeper } from '../address-keeper/address-keeper.ts';
import { version } from '../base/version.ts';
import { Changes } from '../changes.ts';
import { HaproxyDataplane } from '../haproxy/dataplane.ts';
import { createLog, type Log } from '../host/log.ts';
import { Cluster } from '../kubernetes/cluster.ts';
import { hostIdentity } from '../kubernetes/writers/host-identity.ts';
import type { Pair } from '../pair/pair.ts';
import { agentState } from '../report/agent-state.ts';
import { Telling } from '../report/change-observers.ts';
import { Operating } from '../report/operating.ts';
import { Overview } from '../report/overview.ts';
import { ProblemLog } from '../report/problem-log.ts';
import { Reporter } from '../report/reporter.ts';
import type { StatusSources } from '../report/status.ts';
import { CurrentSettings } from '../settings/current-settings.ts';
import { apiClient, claimHome } from '../sources/cluster-api.ts';
import { Sources } from '../sources/sources.ts';
import { LastMembers } from '../state/kept-members.ts';
import { isOurLoadBalancer, whyNotOurs } from '../translate/service/service-vips.ts';
import { emptyModel, type Model } from '../translate/translate.ts';
import { KeepalivedDataplane } from '../vips/keepalived/dataplane.ts';
import { pairOf } from './pair-parts.ts';

export interface AgentParts {
  readonly settings: CurrentSettings;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly cluster: Cluster;
  readonly changes: Changes;
  /** The desired state; only the loop changes it. */
  readonly model: Model;
  readonly haproxy: HaproxyDataplane;
  /** undefined where this host has no VRRP. */
  readonly keepalived: KeepalivedDataplane | undefined;
  /** undefined where this host has no peer. */
  readonly pair: Pair | undefined;
  readonly addresses: AddressKeeper;
  readonly sources: Sources;
  /** undefined where there is no cluster. */
  readonly reporter: Reporter | undefined;
  /** All that may be asked for. */
  readonly known: StatusSources;
  readonly overview: Overview;
  readonly telling: Telling;
  readonly lastMembers: LastMembers;
}

/** Nothing runs yet. Errors: SETTINGS_INVALID. */
export async function agentParts(argv: readonly string[]): Promise<AgentParts> {
  const settings = new CurrentSettings(argv);
  const { vrrp, stateDir, leaseNamespace, finalizer, serviceSelector } = settings.now;
  const log = createLog({ level: settings.now.logLevel });
  const problemLog = new ProblemLog(log);
  const metrics: Metrics = new Metrics(version, () => agentState({ known, changes, sources, reporter }));

  // What is desired: the objects, what of them has changed, and the load balancers that follow from them.
  const cluster = new Cluster((service) => whyNotOurs(service, settings.translating) === undefined);
  const changes = new Changes();
  const model = emptyModel();
  const { loadBalancers } = model;
  const replan = (keys: Iterable<string>): void => changes.addReplan(keys);

  // What carries the traffic: HAProxy here, the VIPs by keepalived, and the other host of a pair.
  const haproxy = new HaproxyDataplane({
    settings: settings.now,
    wanted: loadBalancers,
    replan,
    onKnown: () => replan(cluster.serviceKeys()),
    onChecked: (keys) => telling.checked(keys),
    metrics: metrics.dataplane,
    log,
  });
  const keepalived =
    vrrp &&
    new KeepalivedDataplane({
      settings: { ...settings.now, vrrp },
      metrics: metrics.dataplane,
      log,
      onState: () => pair?.roleChanged(),
      onRefused: (keys) => telling.touched(keys),
    });
  const pair: Pair | undefined = pairOf({
    settings: () => settings.now,
    model,
    haproxy,
    keepalived,
    objects: () => sources.objects,
    metrics: metrics.pair,
    log,
  });

  // Where objects come from, and who gives Services their addresses.
  const client = apiClient(settings.now);
  const identity = client === undefined ? '' : await hostIdentity(hostname(), stateDir);
  const addresses: AddressKeeper = new AddressKeeper({
    cluster,
    settings: settings.now,
    translating: settings.translating,
    api: client,
    home: () => claimHome(sources.api),
    isLeader: () => reporter?.isLeader ?? false,
    isBarred: () => reporter?.isBarred ?? true,
    mayClaim: async (service, uid) => reporter?.claimed(service, uid) ?? false,
    onChanged: (keys) => changes.add(keys, performance.now()),
    onKept: (service) => reporter?.report([service]),
    onProblems: (problems) => problemLog.report('addresses', problems),
    metrics: metrics.addresses,
    log,
  });
  const onService = (key: string): void => reporter?.observed(key);
  const sources: Sources = new Sources({
    settings: settings.now,
    client,
    cluster,
    model,
    changes,
    addresses,
    onService,
    problemLog,
    metrics,
    log,
  });

  // Who tells what became of them: in the cluster, to the peer, in the log, on the status page.
  const operating: Operating = new Operating({
    loadBalancers,
    haproxy,
    onChanged: (keys) => telling.operatesOtherwise(keys),
  });
  const reporter =
    client &&
    new Reporter({
      api: client,
      currentService: (key) => sources.api?.currentService(key),
      identity,
      cluster,
      model,
      haproxy,
      keepalived,
      operating: operating.book,
      log,
      metrics: metrics.api,
      leaseNamespace,
      finalizer,
      selects: serviceSelector !== '',
      isOurs: (service) => isOurLoadBalancer(service, settings.translating),
      isKept: (key) => addresses.isKept(key),
      onLeader: () => addresses.take(),
    });
  const known: StatusSources = {
    version,
    startedAt: new Date(),
    cluster,
    model,
    haproxy,
    operating: operating.book,
    keepalived,
    pair,
    addresses,
    api: () => sources.api,
    writing: () => reporter?.status(),
    sourceProblems: () => sources.problems,
    zone: () => settings.now.zone,
  };
  const overview = new Overview(known);
  const lastMembers = new LastMembers({ stateDir, model, log });
  const telling = new Telling({
    model,
    haproxy,
    keepalived,
    operating,
    reporter,
    pair,
    overview,
    problemLog,
  });

  return {
    settings,
    log,
    metrics,
    cluster,
    changes,
    model,
    haproxy,
    keepalived,
    pair,
    addresses,
    sources,
    reporter,
    known,
    overview,
    telling,
    lastMembers,
  };
}
