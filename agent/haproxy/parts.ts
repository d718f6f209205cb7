// The parts of the HAProxy dataplane, put together: each is given what it works on, and what it tells the others.

import { CandidateMaker } from './config/candidate.ts';
import { ConfigFile } from './config/config-file.ts';
import { GlobalSection } from './config/global-section.ts';
import { Persister } from './config/persister.ts';
import { Quarantine } from './config/quarantine.ts';
import { RejectionFile } from './config/rejection-file.ts';
import type { HaproxyOptions } from './options.ts';
import { type HaproxyPaths, haproxyPaths } from './paths.ts';
import type { HaproxySettings } from './settings.ts';
import { Statistics } from './stats/statistics.ts';
import { ActiveWorker } from './worker/active-worker.ts';
import { CheckWatch } from './worker/check-watch.ts';
import { HaproxyMonitor, type Repair } from './worker/haproxy-monitor.ts';
import { ReloadArbiter } from './worker/reload-arbiter.ts';
import { Reloader } from './worker/reloader.ts';
import { StartFaults } from './worker/start-faults.ts';
import { Supervisor } from './worker/supervisor.ts';
import type { BootedWorker } from './worker.ts';

export interface HaproxyParts {
  readonly paths: HaproxyPaths;
  /** What cannot be served now, and why. */
  readonly quarantine: Quarantine;
  readonly rejectionFile: RejectionFile;
  /** What stands in haproxy.cfg beside the load balancers. */
  readonly globalSection: GlobalSection;
  /** Prepares the file for a start or a reload. */
  readonly maker: CandidateMaker;
  /** Keeps the file at desired. */
  readonly persister: Persister;
  /** Gets a worker. */
  readonly supervisor: Supervisor;
  /** The worker that counts. */
  readonly active: ActiveWorker;
  /** Decides when to reload, and has the reloader do it. */
  readonly arbiter: ReloadArbiter;
  readonly reloader: Reloader;
  /** Notices what others do to HAProxy. */
  readonly monitor: HaproxyMonitor;
  readonly statistics: Statistics;
  /** Reads what health checks find. */
  readonly checkWatch: CheckWatch;
}

/** `settings`: as they are by then; those of the program, its paths and its place count from the start on. */
export function haproxyParts(options: HaproxyOptions, settings: () => HaproxySettings): HaproxyParts {
  const { desired: wanted, replan, metrics, log } = options;
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

  // What stands in the file.
  const quarantine = new Quarantine();
  const rejectionFile = new RejectionFile(`${paths.config}.rejected.json`);
  const globalSection = new GlobalSection({ paths, settings, isRunning: () => supervisor.isRunning(), log });
  const { context, aclIds, keepFiles } = globalSection;
  const file = new ConfigFile(paths.config, {
    mode: paths.fileMode,
    keepBeside: keepFiles,
    onTampered: () => {
      log.warn('haproxy.cfg was changed by someone else: written again', { path: paths.config });
      onRepair('file');
    },
  });
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
  const persister = new Persister({
    file,
    loadBalancers: () => {
      const effective = maker.effective(wanted);
      // A reload or a start is at it, or a reload has to check something in it first.
      if (isReloading() || supervisor.isStarting || (worker() !== undefined && !maker.isChecked(effective)))
        return undefined;
      return maker.isGlobalRefused(effective) ? undefined : effective;
    },
    context,
    keepRejections: () => rejectionFile.save(quarantine.rejections),
    onPersisted: (result) => metrics.persisted(result),
    log,
  });

  // What tells how HAProxy is doing.
  const statistics = new Statistics({
    file: paths.counters,
    desired: wanted,
    active: () => worker()?.runtime,
    detail: () => settings().metricsDetail,
    log,
  });
  const checkWatch = new CheckWatch({
    worker,
    wanted,
    interval: () => settings().healthReadInterval,
    onChanged: (keys) => options.onChecked?.(keys),
    log,
  });

  // Who serves: the first worker, and its successors.
  const faults = new StartFaults({ paths, maker, quarantine, file, wanted, onRefused, log });
  const supervisor = new Supervisor({
    executable,
    netns,
    paths,
    maker,
    faults,
    file,
    context,
    wanted,
    startsHaproxy: !isExternal,
    isReloading,
    fileIdle: () => persister.idle(),
    onRepair,
    onUnwritten: (error) => persister.failed(error),
    log,
  });
  const active: ActiveWorker = new ActiveWorker({
    masterSocket: paths.masterSocket,
    settings,
    wanted,
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
    supervisor,
    faults,
    file,
    persister,
    wanted,
    worker,
    take: (next) => active.take(next),
    onReload: (causes, result) => {
      for (const cause of causes) metrics.reloaded(cause, result);
    },
    log,
  });
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
  const monitor = new HaproxyMonitor({
    paths,
    file,
    persister,
    quarantine,
    wanted,
    worker,
    isReloading,
    onReplaced: (old) => active.lose(old, 'HAProxy was reloaded by someone else'),
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
    supervisor,
    active,
    arbiter,
    reloader,
    monitor,
    statistics,
    checkWatch,
  };
}
