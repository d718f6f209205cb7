// Reads the kernel's table of connections by the program conntrack, line by line, because it may have a million.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { HeadgateError } from '../../base/errors.ts';
import { inNamespace } from '../../host/namespace.ts';
import { makeNice } from '../../host/run-command.ts';
import type { KernelListener } from '../rules/kernel-listener.ts';
import { FlowCounts } from './flow-counts.ts';

const TIMEOUT_MS = 60_000;

/** Errors: COMMAND_FAILED. */
export async function readFlows(netns: string, listeners: readonly KernelListener[]): Promise<FlowCounts> {
  const counts = new FlowCounts(listeners);
  for (const family of new Set(listeners.map((each) => each.family))) {
    const words = ['-L', '-f', family === 'v6' ? 'ipv6' : 'ipv4'];
    const child = spawn(...inNamespace(netns, 'conntrack', words), {
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: TIMEOUT_MS,
      killSignal: 'SIGKILL',
    });
    const end = once(child, 'close').then(
      ([status]) => (status === 0 ? '' : `ended with exit status ${status}`),
      () => 'cannot be started',
    );
    if (child.pid !== undefined) makeNice(child.pid, 19);
    for await (const line of createInterface(child.stdout)) counts.add(line);
    const why = await end;
    if (why !== '')
      throw new HeadgateError('COMMAND_FAILED', `Program "conntrack" ${why}`, { retry: 'later' });
  }
  return counts;
}
