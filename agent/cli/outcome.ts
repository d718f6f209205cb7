// What became of an order, for people or as JSON, and the exit status.

import type { OrderOutcome } from '../pair/orders/orders.ts';

export function sayOutcome(outcome: OrderOutcome, asJson: boolean): number {
  const { ok, active, tookMs, message } = outcome;
  const moved = tookMs > 0 ? ` after ${tookMs} ms` : '';
  console.log(asJson ? JSON.stringify(outcome, undefined, 2) : `${message}${moved}\nActive: ${active}`);
  return ok ? 0 : 1;
}
