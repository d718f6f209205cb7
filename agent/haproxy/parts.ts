// Constructs the parts of the HAProxy dataplane and connects them.

import { CandidateMaker } from './config/candidate.ts';
import { ConfigFile } from './config/config-file.ts';
import { GlobalSection } from './config/global-section.ts';
import { Persister } from './config/persister.ts';
import { Quarantine } from './config/quarantine.ts';
import { RejectionFile } from './config/rejection-file.ts';
import type { HaproxyOptions } from './options.ts';
import { haproxyPaths } from './paths.ts';
import type { HaproxySettings } from './settings.ts';
import { showProc } from './socket/master.ts';
import { Statistics } from './stats/statistics.ts';
import { ActiveWorker } from './worker/active-worker.ts';
import { CheckWatch } from './worker/check-watch.ts';
import { HaproxyMonitor, type Repair } from './worker/haproxy-monitor.ts';
import { NamespaceWatch } from './worker/namespace-watch.ts';
import { ReloadArbiter } from './worker/reload-arbiter.ts';
import { Reloader } from './worker/reloader.ts';
import { StartFaults } from './worker/start-faults.ts';
import { Supervisor } from './worker/supervisor.ts';
import { WorkerFinder } from './worker/worker-finder.ts';
import type { BootedWorker } from './worker.ts';

export type HaproxyParts = ReturnType<typeof haproxyParts>;

/** `settings` gives the current ones; program, paths, access, supervisor and network namespace are fixed at the start. */
export function haproxyParts(options: HaproxyOptions, settings: () => HaproxySettings) {
  const { desired, replan, metrics, log } = options;
  const { stateDir, runtimeDir, haproxyAccess, haproxy: executable, haproxySupervisor, netns } = settings();
  const isExternal = haproxySupervisor === 'external';
  const paths = haproxyPaths(stateDir, runtimeDir, haproxyAccess);
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
  const globalSection = new GlobalSection({ paths, settings, isRunning: () => finder.isRunning(), log });
  const { context, aclIds, keepFiles } = globalSection;
  const file = new ConfigFile(paths.config, {
    mode: paths.fileMode,
    keepBeside: keepFiles,
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
    bound: () => {
      const serves = worker();
      return serves === undefined ? new Set() : serves.bound;
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
    keepRejections: () => rejectionFile.save(quarantine.rejections),
    onPersisted: (result) => metrics.persisted(result),
    log,
  });

  // Statistics and health checks.
  const statistics = new Statistics({
    file: paths.counters,
    desired,
    active: () => worker()?.runtime,
    detail: () => settings().metricsDetail,
    oldWorkers: async () => (await showProc(paths.masterSocket)).oldWorkers.length,
    log,
  });
  /** Reads the results of health checks. */
  const checkWatch = new CheckWatch({
    worker,
    desired,
    interval: () => settings().healthReadInterval,
    onChanged: (keys) => options.onChecked?.(keys),
    log,
  });

  const namespaceWatch = new NamespaceWatch({
    worker,
    desired,
    limit: () => globalSection.namespaceConnections,
    interval: () => settings().healthReadInterval,
    onChanged: (keys) => options.onChecked?.(keys),
    log,
  });

  // The active worker and its replacements.
  const faults = new StartFaults({ paths, maker, quarantine, file, desired, onRefused, log });
  const finder = new WorkerFinder({ paths, maker, file, context, desired, log });
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
    shortage: () => globalSection.fault,
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
    settings,
    log,
  });
  return {
    paths,
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
    checkWatch,
    namespaceWatch,
  };
}
