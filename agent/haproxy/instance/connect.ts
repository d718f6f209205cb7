// Connects to the worker of one HAProxy. Changes nothing.

import { existsSync } from 'node:fs';
import { HeadgateError } from '../../base/errors.ts';
import type { Log } from '../../host/log.ts';
import { Runtime } from '../socket/runtime.ts';
import type { InstanceFiles } from './files.ts';
import { isOwn } from './find-master.ts';

/** While HAProxy starts only its own socket is tried, not the master's. */
export type Phase = 'starting' | 'running';

const CONNECT_TIMEOUT_MS = 2_000;

/**
 * By the admin socket; if that was removed and HAProxy is not starting, by the master's. undefined if nothing answers.
 * Errors: those of Runtime.connect() besides RUNTIME_CONNECT.
 */
export async function connectWorker(files: InstanceFiles, phase: Phase): Promise<Runtime | undefined> {
  const { adminSocket: socketPath, masterSocket: masterSocketPath } = files;
  const isStarting = phase === 'starting';
  if (!existsSync(socketPath) && (isStarting || !existsSync(masterSocketPath))) return undefined;
  try {
    return await Runtime.connect({
      socketPath,
      masterSocketPath,
      isStarting,
      timeoutMs: CONNECT_TIMEOUT_MS,
    });
  } catch (error) {
    if (error instanceof HeadgateError && error.code === 'RUNTIME_CONNECT') return undefined;
    throw error;
  }
}

/**
 * As connectWorker(), but a HAProxy that an operator started beside this one may have replaced the admin socket: then the
 * master leads to the worker, or nothing does while the master starts it. Errors: also FILE_READ.
 */
export async function connectOwnWorker(
  files: InstanceFiles,
  phase: Phase,
  log: Log,
): Promise<Runtime | undefined> {
  const runtime = await connectWorker(files, phase);
  if (runtime === undefined || runtime.worker.via === 'master') return runtime;
  const { pid } = runtime.worker;
  const isKnown = await isOwn(pid, files).catch((error: unknown) => {
    runtime.close();
    throw error;
  });
  if (isKnown) return runtime;
  if (phase === 'starting') {
    runtime.close();
    return undefined;
  }
  const { adminSocket: socketPath, masterSocket: masterSocketPath } = files;
  const own = await Runtime.connect({ socketPath, masterSocketPath, isReplaced: true }).catch(
    () => undefined,
  );
  if (own === undefined) return runtime;
  runtime.close();
  log.warn('Another HAProxy answers at the admin socket', { pid, own: own.worker.pid });
  return own;
}
