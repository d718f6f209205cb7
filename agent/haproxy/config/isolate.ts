// Finds which of many are at fault when only their sum can be asked: by halves, so that one among a thousand takes
// ten questions. Used where HAProxy rejects a file without saying where.

/** Those of `suspects` that cannot be accepted together with all the others. `isGood` must hold for []. */
export async function isolate<T>(
  suspects: readonly T[],
  isGood: (some: readonly T[]) => Promise<boolean>,
): Promise<readonly T[]> {
  const guilty: T[] = [];
  await admit([], suspects);
  return guilty;

  /** Returns `good` with all of `some` that it can take. */
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
