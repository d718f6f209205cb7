// How a process runs that is a client of what is measured: in truth it has a machine of its own, here it shares two
// processors with all the others. Nobody is to be measured by the client's wait for one of them.

/**
 * One thread, and nothing to be collected while it measures: others would take processors from what is measured, with
 * the same priority where it has a higher one, and would have to be waited for.
 */
export const clientFlags = ['--single-threaded', '--min-semi-space-size=64', '--max-semi-space-size=64'];

/** A command that becomes what follows it, before everybody else: none where we may not have that. */
export function beforeOthers(): readonly string[] {
  return process.getuid?.() === 0 ? ['chrt', '--rr', '10'] : [];
}
