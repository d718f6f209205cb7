// When an agent has said something, from the lines of its log.

interface Line {
  /** ISO 8601. */
  readonly time: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

/** Milliseconds since the epoch of the first line after `since` that `is` asks for; undefined where there is none. */
export function whenSaid(log: string, since: number, is: (line: Line) => boolean): number | undefined {
  return timesSaid(log, since, is)[0];
}

/** The same of all such lines. */
export function timesSaid(log: string, since: number, is: (line: Line) => boolean): readonly number[] {
  return log
    .split('\n')
    .filter((text) => text.startsWith('{') && text.endsWith('}'))
    .map((text) => JSON.parse(text) as Line)
    .filter((line) => Date.parse(line.time) >= since && is(line))
    .map(({ time }) => Date.parse(time));
}
