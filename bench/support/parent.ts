// The benchmark, as a process that it started sees it: when to end, and how to answer without a fault where it is gone.

/**
 * Resolves at SIGTERM, and when the benchmark itself is gone, also where either comes before the process has got as far
 * as listening for it.
 */
export const over: Promise<void> = new Promise((resolve) => {
  process.once('SIGTERM', resolve).once('disconnect', resolve);
  if (!process.connected) resolve();
});
// A terminal sends it to all; the benchmark says when.
process.on('SIGINT', () => undefined);

export function answer(message: object): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}
