// Finds the items at fault if only a set of items can be checked: by halves, so that one of a thousand takes ten checks.
// For a file that HAProxy refuses without naming a line.

/** The suspects that are refused together with all others. `isGood` must hold for []. */
export async function isolate<T>(
  suspects: readonly T[],
  isGood: (some: readonly T[]) => Promise<boolean>,
): Promise<readonly T[]> {
  const guilty: T[] = [];
  await admit([], suspects);
  return guilty;

  /** Returns `good` and all of `some` that are accepted with it. */
  async function admit(good: readonly T[], some: readonly T[]): Promise<readonly T[]> {
    if (some.length === 0 || (await isGood([...good, ...some]))) return [...good, ...some];
    if (some.length === 1) {
      guilty.push(...some);
      return good;
    }
    const half = Math.ceil(some.length / 2);
    return admit(await admit(good, some.slice(0, half)), some.slice(half));
  }
}
