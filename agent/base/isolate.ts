// Finds what a checker refuses in a list that it refuses as a whole. Pure, except for the checker.

/**
 * The suspects that are refused together with all others, for a file that is refused without a line that is named: found by
 * halves, so that one of a thousand takes some twenty checks. `isAccepted` must hold for [].
 */
export async function isolate<T>(
  suspects: readonly T[],
  isAccepted: (some: readonly T[]) => Promise<boolean>,
): Promise<readonly T[]> {
  const refused: T[] = [];
  await accepted([], suspects);
  return refused;

  /** `before` and all of `some` that are accepted with it. */
  async function accepted(before: readonly T[], some: readonly T[]): Promise<readonly T[]> {
    if (some.length === 0 || (await isAccepted([...before, ...some]))) return [...before, ...some];
    if (some.length === 1) {
      refused.push(...some);
      return before;
    }
    const half = Math.ceil(some.length / 2);
    return accepted(await accepted(before, some.slice(0, half)), some.slice(half));
  }
}
