// Runs a script as the first process of network, PID and mount namespaces of its own, and keeps the logs that it writes.
// All that it starts ends with it, and it ends with this process.

import { chmodSync, cpSync, lstatSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './check.ts';
import { runProgram } from './run-program.ts';

const NAMESPACES = [
  '--net',
  '--pid',
  '--mount',
  '--uts',
  '--ipc',
  '--fork',
  '--kill-child=SIGKILL',
  '--mount-proc',
];

/** `args` follow a new folder, in which the script writes; its logs and reports are in `logs` afterwards. */
export async function runIsolated(
  script: string,
  args: readonly string[],
  logs: string,
  show: (text: string) => void = (text) => process.stdout.write(text),
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-conformance-'));
  // HAProxy, which is another user, connects to a socket of its own below it.
  chmodSync(folder, 0o711);
  await runProgram('unshare', [...NAMESPACES, process.execPath, join(root, script), folder, ...args], {
    cwd: root,
    // The programs are built already.
    env: { ...process.env, TMPDIR: folder, KUBE_BUILD: 'no' },
    onOutput: show,
    onError: show,
    afterwards: () => {
      rmSync(logs, { recursive: true, force: true });
      mkdirSync(logs, { recursive: true });
      cpSync(folder, logs, { recursive: true, filter: isKept });
      rmSync(folder, { recursive: true, force: true });
    },
  });
}

/** Logs and reports, of all folders. */
function isKept(path: string): boolean {
  return lstatSync(path).isDirectory() || /\.(log|json|yaml)$/.test(path);
}
