// Finds times in an agent's log.

interface Line {
  /** ISO 8601. */
  readonly time: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

/** The time of the first line after `since` that `matches`, in milliseconds since the epoch; undefined without one. */
export function whenLogged(log: string, since: number, matches: (line: Line) => boolean): number | undefined {
  return timesLogged(log, since, matches)[0];
}

/** The times of all such lines. */
export function timesLogged(log: string, since: number, matches: (line: Line) => boolean): readonly number[] {
  return log
    .split('\n')
    .filter((text) => text.startsWith('{') && text.endsWith('}'))
    .map((text) => JSON.parse(text) as Line)
    .filter((line) => Date.parse(line.time) >= since && matches(line))
    .map(({ time }) => Date.parse(time));
}
