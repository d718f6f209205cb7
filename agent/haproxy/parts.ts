// Constructs the parts of the HAProxy dataplane and connects them: its files (file-parts.ts), what reads it (watch-parts.ts), and
// the active worker with all that replaces it.

import { ownerOfListener } from '../model/names.ts';
import type { BootedWorker } from './booted-worker.ts';
import { isOfOneNamespace } from './causers.ts';
import { type FileParts, fileParts } from './file-parts.ts';
import type { HaproxyOptions } from './options.ts';
import { type HaproxyPaths, haproxyPaths } from './paths.ts';
import { UnneededRows } from './routes/unneeded-rows.ts';
import type { HaproxySettings } from './settings.ts';
import type { Statistics } from './stats/statistics.ts';
import { watchParts } from './watch-parts.ts';
import { ActiveWorker } from './worker/active-worker.ts';
import { HaproxyMonitor, type Repair } from './worker/haproxy-monitor.ts';
import { ReloadArbiter } from './worker/reload-arbiter.ts';
import { LANDING_SHARE } from './worker/reload-shares.ts';
import { Reloader } from './worker/reloader.ts';
import { StartFaults } from './worker/start-faults.ts';
import { Supervisor } from './worker/supervisor.ts';
import { WorkerFinder } from './worker/worker-finder.ts';

export type HaproxyParts = ReturnType<typeof haproxyParts>;

/** `settings` gives the current ones; program, paths, access, supervisor and network namespace are fixed at the start. */
export function haproxyParts(options: HaproxyOptions, settings: () => HaproxySettings) {
  const { desired, replan, metrics, log } = options;
  const { stateDir, runtimeDir, haproxyAccess, haproxySupervisor } = settings();
  const isExternal = haproxySupervisor === 'external';
  const paths = haproxyPaths(
    stateDir,
    runtimeDir,
    haproxyAccess,
    options.other?.isMain ? 'haproxy-landing' : 'haproxy',
  );
  const worker = (): BootedWorker | undefined => active.worker;
  const isReloading = (): boolean => arbiter.isReloading;
  const onRepair = (what: Repair): void => metrics.repaired(what);

  const files = fileParts(options, paths, {
    settings,
    worker,
    isRunning: () => finder.isRunning(),
    isReplacing: () => isReloading() || supervisor.isStarting,
    onRepair,
  });
  const { globalSection } = files;
  const watches = watchParts(options, paths, {
    settings,
    worker,
    namespaceConnections: () => globalSection.namespaceConnections,
  });
  const { statistics } = watches;
  const unneededRows = new UnneededRows((listeners) => replan(listeners.map(ownerOfListener)));

  const { faults, finder, supervisor } = startParts(options, paths, files, {
    settings,
    isReloading,
    onRepair,
  });
  /** The worker that gets commands now. */
  const active: ActiveWorker = new ActiveWorker({
    masterSocket: paths.masterSocket,
    settings,
    desired,
    supervisor,
    config: { ...files, aclIds: globalSection.aclIds },
    statistics,
    hooks: {
      isElsewhere: (key) => options.other?.hasAlone(key) === true,
      isReloading,
      requestReload: (cause) => arbiter.request(cause),
      replan,
      onTaken: () => watches.errorWatch.look(),
      onKnown: () => options.hooks?.onKnown?.(),
    },
    log,
  });
  const { reloader, arbiter } = reloadParts(options, paths, files, {
    settings,
    finder,
    faults,
    active,
    statistics,
  });
  /** Detects changes of HAProxy by other processes. */
  const monitor = new HaproxyMonitor({
    paths,
    config: files,
    desired,
    worker,
    settings,
    hooks: {
      isReloading,
      isReloadDue: () => arbiter.pending.size > 0,
      onReplaced: (old) => active.lose(old, 'Another process reloaded HAProxy'),
      requestReload: (cause) => arbiter.request(cause),
      replan,
      onRepair,
      tidy: files.tidy,
    },
    log,
  });
  return {
    ...files,
    ...watches,
    isExternal,
    paths,
    unneededRows,
    finder,
    supervisor,
    active,
    arbiter,
    reloader,
    monitor,
  };
}

interface ReloadedParts {
  readonly settings: () => HaproxySettings;
  readonly finder: WorkerFinder;
  readonly faults: StartFaults;
  readonly active: ActiveWorker;
  readonly statistics: Statistics;
}

/** What reloads HAProxy, and decides when. */
function reloadParts(
  options: HaproxyOptions,
  paths: HaproxyPaths,
  files: FileParts,
  { settings, finder, faults, active, statistics }: ReloadedParts,
): { readonly reloader: Reloader; readonly arbiter: ReloadArbiter } {
  const { desired, metrics, log } = options;
  const reloader = new Reloader({
    paths,
    config: files,
    finder,
    faults,
    desired,
    workers: {
      active: () => active.worker,
      otherWorker: () => options.other?.worker(),
      take: (next) => active.take(next),
    },
    hooks: {
      shortage: () => files.globalSection.fault,
      beforeOrder: ({ runtime }) => statistics.beforeReload(runtime),
      onReload: (causes, result) => {
        for (const cause of causes) metrics.reloaded(cause, result);
      },
    },
    log,
  });
  const arbiter = new ReloadArbiter({
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
    ...(options.other?.isMain && { share: LANDING_SHARE }),
    isAlone: () => isOfOneNamespace((options.other?.counted ?? desired).values()),
  });
  return { reloader, arbiter };
}

interface StartHooks {
  readonly settings: () => HaproxySettings;
  readonly isReloading: () => boolean;
  readonly onRepair: (what: Repair) => void;
}

/** What finds, adopts and starts HAProxy. */
function startParts(
  { desired, log }: HaproxyOptions,
  paths: HaproxyPaths,
  files: FileParts,
  { settings, isReloading, onRepair }: StartHooks,
) {
  const { haproxy: executable, haproxySupervisor, netns } = settings();
  const { quarantine, globalSection, refusedRows, file, maker, onRefused } = files;
  const faults = new StartFaults({ paths, maker, quarantine, file, desired, onRefused, log });
  const finder = new WorkerFinder({
    paths,
    maker,
    file,
    context: globalSection.context,
    desired,
    tablesOf: refusedRows.tablesOf,
    log,
  });
  const supervisor = new Supervisor({
    program: { executable, netns, isStartedHere: haproxySupervisor !== 'external' },
    paths,
    config: files,
    finder,
    faults,
    desired,
    hooks: { isReloading, onRepair },
    log,
  });
  return { faults, finder, supervisor };
}
