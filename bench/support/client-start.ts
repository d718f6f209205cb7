// How to start a client or a member. In production it has its own machine; here it shares the processors with the
// measured processes, so its waits for a processor must not count as their latency.

/**
 * Flags of Node for a client: one thread that neither collects garbage nor optimizes code during a measurement. Other
 * threads would take processors from the measured processes. collect() frees the garbage after an order.
 */
export const clientFlags = [
  '--single-threaded',
  '--min-semi-space-size=64',
  '--max-semi-space-size=64',
  '--expose-gc',
  // On a single thread the optimizing compilers would interrupt requests.
  '--no-opt',
  '--no-maglev',
];

/** A command that runs the words after it at a realtime priority; empty unless the user is root. */
export function beforeOthers(): readonly string[] {
  return process.getuid?.() === 0 ? ['chrt', '--rr', '10'] : [];
}

/** Called by the client after it has answered an order. Errors: the client was started without clientFlags. */
export function collect(): void {
  if (globalThis.gc === undefined) throw new Error('The client was started without clientFlags');
  void globalThis.gc({ type: 'minor' });
}
