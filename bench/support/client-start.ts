// How a process runs that is a client of what is measured: in truth it has a machine of its own, here it shares two
// processors with all the others. Nobody is to be measured by the client's wait for one of them.

/**
 * One thread, which neither collects anything nor compiles anything while it measures: other threads would take
 * processors from what is measured, with the same priority where this one has a higher one, and would have to be waited
 * for. What it threw away is collected by collect(), between two orders.
 */
export const clientFlags = [
  '--single-threaded',
  '--min-semi-space-size=64',
  '--max-semi-space-size=64',
  '--expose-gc',
  // Each function takes up to 7 ms to compile, and it takes thousands of requests until all are: a third of the requests
  // above 1.2 ms met that. Uncompiled, a request takes 0.08 ms more.
  '--no-opt',
  '--no-maglev',
];

/** A command that becomes what follows it, before everybody else: none where we may not have that. */
export function beforeOthers(): readonly string[] {
  return process.getuid?.() === 0 ? ['chrt', '--rr', '10'] : [];
}

/** To be called by the client itself once it has answered. Errors: where it was started without clientFlags. */
export function collect(): void {
  if (globalThis.gc === undefined) throw new Error('The client was started without clientFlags');
  void globalThis.gc({ type: 'minor' });
}
