// Ends the processes of a test whose own process has died: a shell waits at the other end of a pipe, and when the pipe
// breaks it ends each process with the test's directory in its arguments.

import { type ChildProcess, spawn } from 'node:child_process';

const SCRIPT = `
while read -r pid directory; do all="$all $pid:$directory"; done
for each in $all; do
  pid=\${each%%:*} directory=\${each#*:}
  if grep -qsF "$directory" "/proc/$pid/cmdline"; then kill "$pid"; fi
  rm -rf "$directory"
done
`;

let watcher: ChildProcess | undefined;

/** `directory` belongs to the test and contains no blanks; the shell removes it too. */
export function endWithUs(pid: number, directory: string): void {
  if (watcher === undefined) {
    watcher = spawn('sh', ['-c', SCRIPT], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    watcher.unref();
    // Node makes a socket for the pipe, which would keep the test's process alive.
    (watcher.stdin as unknown as { unref(): void } | null)?.unref();
  }
  watcher.stdin?.write(`${pid} ${directory}\n`);
}
