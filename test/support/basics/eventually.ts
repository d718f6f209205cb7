// Waits for a value that comes to hold.

import { setTimeout as delay } from 'node:timers/promises';
import { Deadline } from './deadline.ts';

/** Asks until `condition` holds, at most for half a minute: the machine may be busy. */
export async function eventually<T>(ask: () => Promise<T>, condition: (value: T) => boolean): Promise<T> {
  for (const deadline = new Deadline(30_000, 30); ; await delay(10)) {
    const value = await ask();
    if (condition(value)) return value;
    if (deadline.isOver) throw new Error(`Still ${JSON.stringify(value)} after 30 s`);
  }
}
