// Recognizes errors by which a check is inconclusive: the agent had no descriptor or memory left for it.

const CODES: readonly unknown[] = ['EMFILE', 'ENFILE', 'ENOMEM'];

/** True for EMFILE, ENFILE and ENOMEM, and for an error with such a cause: a file that could not be read may exist. */
export function isShortage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return CODES.includes((error as NodeJS.ErrnoException).code) || isShortage(error.cause);
}
