// Headgate: `headgate run` is the agent, which this file puts together; the other commands are in cli/.
// Objects come from the sources, the loop makes traffic of them, and what became of them is told and asked for.

import { hostname } from 'node:os';
import { Metrics } from '../health/metrics.ts';
import { AddressKeeper } from './address-keeper.ts';
import { startAnswering } from './answering.ts';
import { apiClient, claimHome } from './api.ts';
import { Changes } from './changes.ts';
import { cli } from './cli/cli.ts';
import { HeapCompaction } from './compact-heap.ts';
import { CurrentSettings } from './current-settings.ts';
import { translateFirst } from './first-state.ts';
import { HaproxyDataplane } from './haproxy/dataplane.ts';
import { KeepalivedDataplane } from './keepalived/dataplane.ts';
import { Cluster } from './kubernetes/cluster.ts';
import { hostIdentity } from './kubernetes/writers/host-identity.ts';
import { createLog } from './log.ts';
import { loop } from './loop.ts';
import type { Pair } from './pair/pair.ts';
import { pairOf } from './pairing.ts';
import { agentState } from './report/agent-state.ts';
import { Operating } from './report/operating.ts';
import { Overview } from './report/overview.ts';
import { ProblemLog } from './report/problem-log.ts';
import { ProgrammingLatency } from './report/programming-latency.ts';
import { Reporter } from './report/reporter.ts';
import { isServed, type StatusSources } from './report/status.ts';
import { Telling } from './report/telling.ts';
import { Sources } from './sources.ts';
import { standAlone } from './stand-alone.ts';
import { emptyModel } from './translate.ts';
import { version } from './version.ts';

/** Runs until SIGTERM or SIGINT; unless told otherwise traffic goes on without it. */
async function run(argv: readonly string[]): Promise<number> {
  // bin/headgate sets it for the agent alone: HAProxy's threads shall not wait for one another.
  delete process.env.MALLOC_ARENA_MAX;
  const settings = new CurrentSettings(argv);
  const { vrrp, stateDir, leaseNamespace, finalizer } = settings.now;
  const log = createLog({ level: settings.now.logLevel });
  const problemLog = new ProblemLog(log);
  const metrics: Metrics = new Metrics(version, () => agentState({ parts, changes, sources, reporter }));

  // What is desired: the objects, what of them has changed, and the load balancers that follow from them.
  const cluster = new Cluster();
  const changes = new Changes();
  const model = emptyModel();
  const { loadBalancers } = model;
  const allServices = (): string[] => [...cluster.services()].map(({ key }) => key);
  const replan = (keys: Iterable<string>): void => changes.addReplan(keys);

  // What carries the traffic: HAProxy here, the VIPs by keepalived, and the other host of a pair.
  const compaction = new HeapCompaction();
  const haproxy = new HaproxyDataplane({
    settings: settings.now,
    wanted: loadBalancers,
    replan,
    onKnown: () => replan(allServices()),
    onChecked: (keys) => telling.checked(keys),
    onBoot: () => compaction.once(),
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
      operating: operating.book,
      log,
      metrics: metrics.api,
      leaseNamespace,
      finalizer,
      isKept: (key) => addresses.isKept(key),
      onLeader: () => addresses.take(),
    });
  const parts: StatusSources = {
    version,
    startedAt: new Date(),
    cluster,
    model,
    haproxy,
    operating: operating.book,
    keepalived,
    pair,
    addresses,
    sourceProblems: () => sources.problems,
    zone: () => settings.now.zone,
  };
  const overview = new Overview(parts);
  const telling = new Telling({ model, haproxy, operating, reporter, pair, overview, problemLog });

  // Who asks, and what an operator says to the running agent.
  const answering = await startAnswering({ settings: settings.now, parts, sources, overview, metrics, log });
  log.info('Headgate runs', { version, listen: answering.address, stateDir });
  const reread = (): void => {
    if (!settings.reread(log)) return;
    const { now } = settings;
    log.setLevel(now.logLevel);
    haproxy.configure(now);
    if (now.vrrp !== undefined) keepalived?.configure({ ...now, vrrp: now.vrrp });
    void pair?.renew();
    addresses.configure(now, settings.translating);
    changes.add(allServices(), performance.now());
  };
  const stopping = Promise.withResolvers<void>();
  const stop = (signal: NodeJS.Signals): void => {
    log.info('Stopping', { signal });
    changes.close();
    stopping.resolve();
  };
  process.on('SIGHUP', reread).once('SIGTERM', stop).once('SIGINT', stop);

  // The start: what is desired is known before HAProxy is started or told anything.
  const translating = () => settings.translating;
  const reading = sources.start();
  reporter?.start();
  const readBy = await reading;
  await addresses.start();
  await translateFirst({
    changes,
    cluster,
    model,
    settings: translating,
    addresses,
    sources,
    readBy,
    haproxy,
    stopping: stopping.promise,
    log,
  });
  await pair?.start();
  telling.first();
  await Promise.race([haproxy.start(), stopping.promise]);
  compaction.once(); // where HAProxy ran already
  keepalived?.follow(loadBalancers.keys(), loadBalancers);
  void keepalived?.start();
  const standing = pair === undefined && keepalived && standAlone(haproxy, keepalived);

  await loop({
    changes,
    cluster,
    model,
    settings: translating,
    addresses,
    haproxy,
    keepalived,
    metrics: metrics.loop,
    programming: new ProgrammingLatency({
      now: Date.now,
      isServed: (key) => isServed(key, parts),
      observe: (path, seconds) => metrics.loop.programmed(path, seconds),
    }),
    report: (keys) => telling.touched(keys),
  });

  await answering.stopping();
  await sources.close();
  await addresses.close();
  await reporter?.close();
  if (standing) standing.close();
  await keepalived?.close();
  pair?.close();
  await haproxy.close();
  const { stopDataplaneOnExit } = settings.now;
  if (stopDataplaneOnExit) await keepalived?.stopKeepalived();
  if (stopDataplaneOnExit) await haproxy.stopHaproxy(1_000);
  answering.close();
  return 0;
}

const [command = 'help', ...rest] = process.argv.slice(2);
process.exitCode = await (command === 'run' ? cli.guarded(() => run(rest)) : cli.command(command, rest));
if (command === 'run') process.exit();
