// When an agent has said something, from the lines of its log.

interface Line {
  /** ISO 8601. */
  readonly time: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

/** Milliseconds since the epoch of the first line after `since` that `is` asks for; undefined where there is none. */
export function whenSaid(log: string, since: number, is: (line: Line) => boolean): number | undefined {
  for (const text of log.split('\n')) {
    if (!text.startsWith('{') || !text.endsWith('}')) continue;
    const line = JSON.parse(text) as Line;
    const time = Date.parse(line.time);
    if (time >= since && is(line)) return time;
  }
  return undefined;
}
