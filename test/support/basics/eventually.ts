// Waits until a value meets a condition.

import { Deadline } from './deadline.ts';

/** Checks until `condition` holds. Errors: it does not hold after 30 s, or later on a busy machine. */
export async function eventually<T>(ask: () => Promise<T>, condition: (value: T) => boolean): Promise<T> {
  for (const deadline = new Deadline(30_000, 30); ; await deadline.pause()) {
    const value = await ask();
    if (condition(value)) return value;
    if (deadline.isOver) throw new Error(`Still ${JSON.stringify(value)} after 30 s`);
  }
}
