// The names of a documented metric.

/** A metric of the process has a second name, without `headgate_`. */
export function namesOf(documented: string): readonly string[] {
  const [, second] = /^headgate_((?:process|nodejs)_\w+)$/.exec(documented) ?? [];
  return second === undefined ? [documented] : [documented, second];
}
