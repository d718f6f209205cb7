// Constructs what reads a HAProxy while it serves: counters, results of health checks, what fails clients, and the names and the
// target of the connection log.

import { socketOf } from '../base/log-target.ts';
import type { Log } from '../host/log.ts';
import type { Listener } from '../model/load-balancer.ts';
import type { BootedWorker } from './booted-worker.ts';
import { isForHaproxy, isOnlyChecked, isRoutePool } from './config/listener-config.ts';
import { logWriterText } from './config/log-writer-text.ts';
import { Ejector } from './ejection/ejector.ts';
import { ErrorWatch } from './ejection/error-watch.ts';
import type { HaproxyOptions } from './options.ts';
import type { HaproxyPaths } from './paths.ts';
import { LogWriter } from './process/log-writer.ts';
import type { HaproxySettings } from './settings.ts';
import { showProc } from './socket/master.ts';
import { FailureWatch } from './stats/failure-watch.ts';
import { Statistics } from './stats/statistics.ts';
import { type CheckResults, CheckWatch } from './worker/check-watch.ts';
import { LogNames } from './worker/log-names.ts';
import { LogTargetWatch } from './worker/log-target-watch.ts';
import { NamespaceWatch } from './worker/namespace-watch.ts';

export interface WatchHooks {
  readonly settings: () => HaproxySettings;
  /** The active one. */
  readonly worker: () => BootedWorker | undefined;
  /** Connections that a namespace may have now. */
  readonly namespaceConnections: () => number;
}

const KERNEL_READ_INTERVAL_MS = 1_000;

/** HAProxy sends connections to its members. */
function isServed(listener: Listener): boolean {
  return isForHaproxy(listener) || isRoutePool(listener);
}

export function watchParts(options: HaproxyOptions, paths: HaproxyPaths, hooks: WatchHooks) {
  const { desired, log } = options;
  const { settings, worker } = hooks;
  const active = () => worker()?.runtime;
  const onChanged = (keys: readonly string[]): void => options.hooks?.onChecked?.(keys);
  const readInterval = (): number => settings().healthReadInterval;
  const statistics =
    options.other?.statistics ??
    new Statistics({
      file: paths.counters,
      desired: options.other?.counted ?? desired,
      active,
      detail: () => settings().metricsDetail,
      countsRoutes: settings().routeMetrics,
      oldWorkers: async () => (await showProc(paths.masterSocket)).oldWorkers.length,
      log,
    });
  /** Read the results of health checks: those of the kernel's members more often, because the kernel acts on them. */
  const checkResults: CheckResults = new Map();
  const checkWatches = [
    { isRead: isServed, interval: readInterval },
    { isRead: isOnlyChecked, interval: () => Math.min(readInterval(), KERNEL_READ_INTERVAL_MS) },
  ].map((which) => new CheckWatch({ results: checkResults, worker, desired, onChanged, log, ...which }));
  const ejector = new Ejector({
    desired,
    checkResults,
    certificates: paths.certificates,
    onChanged,
    onEjected: (result) => options.metrics.ejected(result),
    log,
  });
  /** The pods and nodes in the connection log. */
  const logNames = new LogNames({ worker, desired, log });
  return {
    statistics,
    checkResults,
    checkWatches,
    ejector,
    errorWatch: new ErrorWatch({ paths, worker, ejector, keys: () => desired.keys() }),
    failureWatch: new FailureWatch({ active, desired, onChanged, log }),
    namespaceWatch: new NamespaceWatch({
      worker,
      desired,
      limit: hooks.namespaceConnections,
      interval: readInterval,
      onChanged,
      log,
    }),
    logNames,
    logTargetWatch: new LogTargetWatch({
      socket: socketOf(settings().connectionLogTarget),
      isLogging: () => logNames.isLogging,
      log,
    }),
    logWriter: options.other?.isMain ? undefined : logWriterOf(paths, settings(), log),
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
