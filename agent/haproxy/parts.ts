// Constructs the parts of the HAProxy dataplane and connects them.

import { socketOf } from '../base/log-target.ts';
import type { Log } from '../host/log.ts';
import type { Listener, LoadBalancer } from '../model/load-balancer.ts';
import { ownerOfListener } from '../model/names.ts';
import { CandidateMaker } from './config/candidate.ts';
import { CertificateFiles } from './config/certificate-files.ts';
import { ConfigFile } from './config/config-file.ts';
import { GlobalSection } from './config/global-section.ts';
import { isForHaproxy, isOnlyChecked, isRoutePool } from './config/listener-config.ts';
import { logWriterText } from './config/log-writer-text.ts';
import { PageFiles } from './config/page-files.ts';
import { Persister } from './config/persister.ts';
import { Quarantine } from './config/quarantine.ts';
import { RejectionFile } from './config/rejection-file.ts';
import type { HaproxyOptions } from './options.ts';
import { type HaproxyPaths, haproxyPaths } from './paths.ts';
import { LogWriter } from './process/log-writer.ts';
import { RefusedRows } from './routes/refused-rows.ts';
import { RouteFiles } from './routes/route-files.ts';
import { UnneededRows } from './routes/unneeded-rows.ts';
import type { HaproxySettings } from './settings.ts';
import { showProc } from './socket/master.ts';
import { Statistics } from './stats/statistics.ts';
import { ActiveWorker } from './worker/active-worker.ts';
import { type CheckResults, CheckWatch } from './worker/check-watch.ts';
import { HaproxyMonitor, type Repair } from './worker/haproxy-monitor.ts';
import { LogNames } from './worker/log-names.ts';
import { LogTargetWatch } from './worker/log-target-watch.ts';
import { NamespaceWatch } from './worker/namespace-watch.ts';
import { ReloadArbiter } from './worker/reload-arbiter.ts';
import { Reloader } from './worker/reloader.ts';
import { StartFaults } from './worker/start-faults.ts';
import { Supervisor } from './worker/supervisor.ts';
import { WorkerFinder } from './worker/worker-finder.ts';
import type { BootedWorker } from './worker.ts';

const KERNEL_READ_INTERVAL_MS = 1_000;
/** For a desired state without TLS. */
const NO_TEXTS = { certificate: () => undefined, authority: () => undefined, crl: () => undefined };

/** HAProxy sends connections to its members. */
function isServed(listener: Listener): boolean {
  return isForHaproxy(listener) || isRoutePool(listener);
}

export type HaproxyParts = ReturnType<typeof haproxyParts>;

/** `settings` gives the current ones; program, paths, access, supervisor and network namespace are fixed at the start. */
export function haproxyParts(options: HaproxyOptions, settings: () => HaproxySettings) {
  const { desired, replan, metrics, log } = options;
  const { stateDir, runtimeDir, haproxyAccess, haproxy: executable, haproxySupervisor, netns } = settings();
  const isExternal = haproxySupervisor === 'external';
  const paths = haproxyPaths(
    stateDir,
    runtimeDir,
    haproxyAccess,
    options.isLanding ? 'haproxy-landing' : 'haproxy',
  );
  const worker = (): BootedWorker | undefined => active.worker;
  const isReloading = (): boolean => arbiter.isReloading;
  const onRepair = (what: Repair): void => metrics.repaired(what);
  const onRefused = (key: string): void => {
    persister.soon();
    replan([key]);
  };

  // The configuration file.
  /** Load balancers and addresses that cannot be served now, with the reasons. */
  const quarantine = new Quarantine();
  const rejectionFile = new RejectionFile(`${paths.config}.rejected.json`);
  /** The sections of haproxy.cfg besides the load balancers. */
  const globalSection = new GlobalSection({
    paths,
    settings,
    isRunning: () => finder.isRunning(),
    ...(options.pems?.users && { users: options.pems.users }),
    log,
  });
  const { context, aclIds, keepFiles } = globalSection;
  const certificates = new CertificateFiles({
    folder: paths.certificates,
    fileMode: paths.fileMode,
    folderMode: paths.certificatesMode,
    pems: options.pems ?? NO_TEXTS,
  });
  /** Rows that HAProxy refuses. */
  const refusedRows = new RefusedRows();
  const { tablesOf } = refusedRows;
  const routeFiles = new RouteFiles({
    folder: paths.routes,
    fileMode: paths.fileMode,
    folderMode: paths.certificatesMode,
    tablesOf,
  });
  const pageFiles = new PageFiles({
    folder: paths.pages,
    fileMode: paths.fileMode,
    folderMode: paths.certificatesMode,
    pages: options.pems?.pages ?? (() => undefined),
  });
  /** The files that haproxy.cfg names, with exactly the content that these load balancers need. */
  const writeFiles = async (all: Iterable<LoadBalancer>): Promise<void> => {
    const loadBalancers = [...all];
    await certificates.write(loadBalancers);
    await routeFiles.write(loadBalancers);
    await pageFiles.write(loadBalancers);
  };
  const unneededRows = new UnneededRows((listeners) => replan(listeners.map(ownerOfListener)));
  const file = new ConfigFile(paths.config, {
    mode: paths.fileMode,
    keepBeside: async () => {
      await keepFiles();
      await certificates.keep();
      await routeFiles.keep();
      await pageFiles.keep();
    },
    onTampered: () => {
      log.warn('Another process changed haproxy.cfg: writing it again', { path: paths.config });
      onRepair('file');
    },
  });
  /** Prepares the file for a start or a reload. */
  const maker = new CandidateMaker({
    executable,
    scratchFile: `${paths.config}.candidate`,
    quarantine,
    context,
    writeFiles,
    bound: () => {
      const serves = worker();
      if (serves !== undefined && serves.bound === undefined) return undefined;
      return new Set([...(serves?.bound ?? []), ...(options.beside?.()?.bound ?? [])]);
    },
    ignoreAccess: isExternal,
    canProbe: netns === '',
    onRefused,
  });
  /** Keeps haproxy.cfg at the desired state. */
  const persister = new Persister({
    file,
    loadBalancers: () => {
      const effective = maker.effective(desired);
      // A reload or a start writes the file itself, and HAProxy must check new load balancers first.
      if (isReloading() || supervisor.isStarting || (worker() !== undefined && !maker.isChecked(effective)))
        return undefined;
      return maker.isGlobalRefused(effective) ? undefined : effective;
    },
    context,
    writeFiles,
    keepRejections: () => rejectionFile.save(quarantine.rejections),
    onPersisted: (result) => metrics.persisted(result),
    log,
  });

  // Statistics and health checks.
  const statistics =
    options.statistics ??
    new Statistics({
      file: paths.counters,
      desired: options.counted ?? desired,
      active: () => worker()?.runtime,
      detail: () => settings().metricsDetail,
      countsRoutes: settings().routeMetrics,
      oldWorkers: async () => (await showProc(paths.masterSocket)).oldWorkers.length,
      log,
    });
  const onChanged = (keys: readonly string[]): void => options.onChecked?.(keys);
  const readInterval = (): number => settings().healthReadInterval;
  /** Read the results of health checks: those of the kernel's members more often, because the kernel acts on them. */
  const checkResults: CheckResults = new Map();
  const checkWatches = [
    { isRead: isServed, interval: readInterval },
    { isRead: isOnlyChecked, interval: () => Math.min(readInterval(), KERNEL_READ_INTERVAL_MS) },
  ].map((which) => new CheckWatch({ results: checkResults, worker, desired, onChanged, log, ...which }));

  const logWriter = options.isLanding ? undefined : logWriterOf(paths, settings(), log);
  /** The pods and nodes in the connection log. */
  const logNames = new LogNames({ worker, desired, log });
  const logTargetWatch = new LogTargetWatch({
    socket: socketOf(settings().connectionLogTarget),
    isLogging: () => logNames.isLogging,
    log,
  });

  const namespaceWatch = new NamespaceWatch({
    worker,
    desired,
    limit: () => globalSection.namespaceConnections,
    interval: readInterval,
    onChanged,
    log,
  });

  // The active worker and its replacements.
  const faults = new StartFaults({ paths, maker, quarantine, file, desired, onRefused, log });
  const finder = new WorkerFinder({ paths, maker, file, context, desired, tablesOf, log });
  /** Adopts or starts HAProxy. */
  const supervisor = new Supervisor({
    executable,
    netns,
    paths,
    finder,
    maker,
    faults,
    file,
    desired,
    startsHaproxy: !isExternal,
    isReloading,
    fileIdle: () => persister.idle(),
    onRepair,
    onUnwritten: (error) => persister.failed(error),
    log,
  });
  /** The worker that gets commands now. */
  const active: ActiveWorker = new ActiveWorker({
    masterSocket: paths.masterSocket,
    settings,
    desired,
    supervisor,
    persister,
    quarantine,
    statistics,
    aclIds,
    isElsewhere: options.isElsewhere ?? (() => false),
    isReloading,
    requestReload: (cause) => arbiter.request(cause),
    replan,
    onKnown: () => options.onKnown?.(),
    log,
  });
  const reloader = new Reloader({
    paths,
    maker,
    finder,
    faults,
    file,
    persister,
    desired,
    worker,
    beside: () => options.beside?.(),
    shortage: () => globalSection.fault,
    beforeOrder: ({ runtime }) => statistics.beforeReload(runtime),
    take: (next) => active.take(next),
    onReload: (causes, result) => {
      for (const cause of causes) metrics.reloaded(cause, result);
    },
    log,
  });
  /** Decides when the reloader reloads. */
  const arbiter: ReloadArbiter = new ReloadArbiter({
    interval: () => settings().reloadInterval,
    reload: async (causes) => {
      const result = await reloader.reload(causes);
      active.reloadEnded();
      return result;
    },
    pressure: () => {
      const { maxOldWorkers, oldWorkerMemory } = settings();
      return reloader.pressure({ most: maxOldWorkers, memory: oldWorkerMemory * 1024 * 1024 });
    },
  });
  /** Detects changes of HAProxy by other processes. */
  const monitor = new HaproxyMonitor({
    paths,
    file,
    persister,
    quarantine,
    desired,
    worker,
    isReloading,
    onReplaced: (old) => active.lose(old, 'Another process reloaded HAProxy'),
    requestReload: (cause) => arbiter.request(cause),
    replan,
    onRepair,
    tidy: async () => {
      // Of an adopted worker this agent may not have written them yet.
      await certificates.write(maker.effective(desired).values());
      const used = [...maker.effective(desired).values(), ...(worker()?.booted.values() ?? [])];
      await certificates.keepOnly(used);
      await pageFiles.keepOnly(used);
    },
    settings,
    log,
  });
  return {
    isExternal,
    paths,
    certificates,
    refusedRows,
    unneededRows,
    quarantine,
    rejectionFile,
    globalSection,
    maker,
    persister,
    finder,
    supervisor,
    active,
    arbiter,
    reloader,
    monitor,
    statistics,
    checkResults,
    checkWatches,
    namespaceWatch,
    logNames,
    logTargetWatch,
    logWriter,
  };
}

/** One for all HAProxies of the agent. */
function logWriterOf(paths: HaproxyPaths, settings: HaproxySettings, log: Log): LogWriter {
  const { haproxy: executable, connectionLogTarget: target, haproxyUser, haproxyGroup } = settings;
  return new LogWriter({
    executable,
    file: target.kind === 'file' ? target.path : '',
    socket: paths.logSocket,
    text: logWriterText(paths, haproxyUser, haproxyGroup),
    log,
  });
}
