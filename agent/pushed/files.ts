// Where the HAProxy of one pushed text keeps its files and sockets: all in one folder in memory, because after a reboot the
// text comes from whoever stores it.

import { join } from 'node:path';
import type { InstanceFiles } from '../haproxy/instance/files.ts';

export interface PushedFiles extends InstanceFiles {
  readonly folder: string;
  /** Words by which HAProxy knows its own name among the peers of the text. */
  readonly peer: readonly string[];
  /** The second file, with what is the agent's. */
  readonly second: string;
  /** The mark of the last boot and what it took; see boot-record.ts. */
  readonly record: string;
  /** Copies that HAProxy only checks. */
  readonly checked: string;
  readonly checkedSecond: string;
  /** HAProxy's own metrics. */
  readonly exporterSocket: string;
  /** The agent's answers to listeners of metrics. */
  readonly metricsSocket: string;
}

/** HAProxy's user enters the folder, and finds only the socket of metrics open. */
export const FOLDER_MODE = 0o711;
export const FILE_MODE = 0o600;

/**
 * `folder`: such as /run/headgate/octavia/LB; sockets need it to be shorter than some 90 characters. `peerName`: this
 * amphora's in the peers of the text; '' if it has none.
 */
export function pushedFiles(folder: string, peerName = ''): PushedFiles {
  const second = join(folder, 'headgate.cfg');
  const peer = peerName === '' ? [] : ['-L', peerName];
  return {
    folder,
    peer,
    config: join(folder, 'haproxy.cfg'),
    // Without -db the `daemon` of the text would end the process that was started.
    more: ['-f', second, '-db', ...peer],
    second,
    record: join(folder, 'boot.json'),
    checked: join(folder, 'checked.cfg'),
    checkedSecond: join(folder, 'checked-headgate.cfg'),
    adminSocket: join(folder, 'admin.sock'),
    masterSocket: join(folder, 'master.sock'),
    pidFile: join(folder, 'haproxy.pid'),
    log: join(folder, 'haproxy.log'),
    exporterSocket: join(folder, 'exporter.sock'),
    metricsSocket: join(folder, 'metrics.sock'),
  };
}
