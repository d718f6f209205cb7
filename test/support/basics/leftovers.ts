// Ends what a test has started when the test cannot do so itself, because its process died: a shell waits at the other
// end of a pipe, and when that breaks it stops each process that still has its directory among its arguments.

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

/** `directory` is one of the test's own, without blanks; it is taken away as well. */
export function endWithUs(pid: number, directory: string): void {
  if (watcher === undefined) {
    watcher = spawn('sh', ['-c', SCRIPT], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    watcher.unref();
    // A pipe is a socket here; without this the test would wait for it.
    (watcher.stdin as unknown as { unref(): void } | null)?.unref();
  }
  watcher.stdin?.write(`${pid} ${directory}\n`);
}
