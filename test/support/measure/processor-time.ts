// How much work something is, on a machine that is as busy as it likes.

/** Milliseconds that this process has had the processor. Of a test only where no other one of its file runs: serial. */
export function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
