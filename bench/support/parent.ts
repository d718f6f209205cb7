// The benchmark as its child process sees it: when to end, and how to answer.

/** Resolves on SIGTERM and when the benchmark has ended, even if it ended before this process listened. */
export const over: Promise<void> = new Promise((resolve) => {
  process.once('SIGTERM', resolve).once('disconnect', resolve);
  if (!process.connected) resolve();
});
// A terminal sends SIGINT to all processes; the benchmark ends its children itself.
process.on('SIGINT', () => undefined);

/** Does nothing if the benchmark has ended. */
export function answer(message: object): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}
