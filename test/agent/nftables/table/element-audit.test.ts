import test from 'ava';
import { ElementAudit } from '../../../../agent/nftables/table/element-audit.ts';
import type { KernelTable } from '../../../../agent/nftables/table/kernel-table.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

/** Of a round. */
const TOOK_MS = 1_000;

function audit(): { readonly clock: FakeClock; readonly rounds: boolean[]; readonly audit: ElementAudit } {
  const clock = new FakeClock();
  const rounds: boolean[] = [];
  const table = {
    isLoaded: true,
    generation: 'a',
    listeners: () => [{}],
    changedFromNow: () => new Set(),
  };
  const made = new ElementAudit({
    table: table as unknown as KernelTable,
    read: async (isUrgent) => {
      rounds.push(isUrgent);
      clock.hang(TOOK_MS);
      // The comparison itself is tested with real nftables.
      table.generation += 'a';
      return new Map();
    },
    load: async () => undefined,
    metrics: { repaired: () => undefined },
    log: silentLog(),
    clock,
  });
  made.start();
  return { clock, rounds, audit: made };
}

test('ElementAudit compares at once when another process has changed elements', async (t) => {
  const { clock, rounds, audit: made } = audit();
  await clock.advance(5_000);
  t.deepEqual(rounds, []);
  made.changed();
  await clock.advance(20);
  t.deepEqual(rounds, [true]);
  made.close();
});

test('ElementAudit compares more and more seldom while the changes that are reported make no difference', async (t) => {
  const { clock, rounds, audit: made } = audit();
  for (let at = 0; at < 1_000; at++) {
    made.changed();
    await clock.advance(100);
  }
  // Rests of 2, 4, 8, 16, 25, 25 and 25 rounds.
  t.is(rounds.length, 7);
  made.close();
});

test('ElementAudit compares at most a twenty-fifth of the time without a change', async (t) => {
  const { clock, rounds, audit: made } = audit();
  await clock.advance(100_000);
  t.deepEqual(rounds, [false, false, false, false]);
  made.close();
});
