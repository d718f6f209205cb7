// Tells a lack of descriptors or memory, in which nothing is learnt of what was looked at, from all else that keeps a
// file from being read or a connection from being made.

const CODES: readonly unknown[] = ['EMFILE', 'ENFILE', 'ENOMEM'];

/** Whether an error, or one beneath it, is such a lack: what it kept from being seen may be there all the same. */
export function isShortage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return CODES.includes((error as NodeJS.ErrnoException).code) || isShortage(error.cause);
}
