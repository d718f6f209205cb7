// Orders the master of one HAProxy to reload, by its socket or by a signal.

import { dirname } from 'node:path';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../host/log.ts';
import { makeFolder } from '../../host/make-directory.ts';
import { proveNewFiles } from '../../host/takes-files.ts';
import { type ReloadOutcome, reload, signalReload } from '../socket/master.ts';
import type { InstanceFiles } from './files.ts';
import { findMaster, hasListened } from './find-master.ts';

/** reload() fails with these codes before the master has the order. */
const NOT_ORDERED: readonly string[] = ['RUNTIME_CONNECT', 'RUNTIME_TIMEOUT'];

/**
 * A reload executes the master again, which then ends, with its workers, if it cannot make its socket and pid file.
 * Errors: HAPROXY_RELOAD if it could not.
 */
export async function proveRestart({ masterSocket }: InstanceFiles): Promise<void> {
  try {
    await makeFolder(dirname(masterSocket), 0o711);
    await proveNewFiles(dirname(masterSocket));
  } catch (error) {
    const message = `HAProxy does not reload, because its master could not make its socket again and would end: ${messageOf(error)}`;
    throw new HeadgateError('HAPROXY_RELOAD', message);
  }
}

/**
 * By signal if the master cannot be reached on its socket: the reload makes the socket again and ends its connections.
 * `isServed`: whether the new worker serves already. Errors: those of reload() and signalReload().
 */
export async function orderReload(
  files: InstanceFiles,
  { isServed, log }: { readonly isServed: () => boolean; readonly log: Log },
): Promise<ReloadOutcome> {
  const { masterSocket } = files;
  try {
    return await reload(masterSocket, { isServed });
  } catch (error) {
    if (!(error instanceof HeadgateError && NOT_ORDERED.includes(error.code))) throw error;
    const pid = await findMaster(files);
    // The signal would end a master that starts.
    if (pid === undefined || !(await hasListened(pid, files))) throw error;
    log.warn('Reloading HAProxy by signal, because its master cannot be reached', {
      error: messageOf(error),
    });
    return signalReload(pid, masterSocket, { isServed });
  }
}
