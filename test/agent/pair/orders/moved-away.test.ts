import test from 'ava';
import { type Move, movedAway } from '../../../../agent/pair/orders/moved-away.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';

/** `here` and `there`: how many new connections there are after so many milliseconds; `hosts`: how many others. */
async function moveOf(
  here: (ms: number) => number,
  there: ((ms: number) => number) | undefined,
  hosts = 2,
): Promise<Move> {
  const clock = new FakeClock();
  const began = clock.monotonic();
  const at = () => clock.monotonic() - began;
  const names = Array.from({ length: hosts }, (_, each) => `lb${each}`);
  const move = movedAway({
    here: () => here(at()),
    others: () => there && new Map(names.map((name) => [name, there(at())])),
    clock,
  });
  await clock.advance(10_000);
  return move;
}

test('movedAway() is sure once many connections have come to other hosts since the last one here', async (t) => {
  const move = await moveOf(
    (ms) => Math.min(3, Math.floor(ms / 50)),
    (ms) => Math.floor(ms / 20),
  );
  t.like(move, { kind: 'moved', here: 3 });
  t.true(move.lastMs >= 150 && move.lastMs <= 200, String(move.lastMs));
  t.true(move.there >= 21, String(move.there));
});

test('movedAway() proves nothing by a few connections, or without other hosts', async (t) => {
  t.like(
    await moveOf(
      () => 0,
      (ms) => Math.floor(ms / 500),
    ),
    { kind: 'quiet', here: 0 },
  );
  t.like(await moveOf(() => 0, undefined), { kind: 'quiet', there: 0 });
  // Numbers that are not known yet, and one that begins again from 0.
  t.like(
    await moveOf(
      () => 0,
      (ms) => (ms < 500 ? -1 : 50),
    ),
    { kind: 'quiet', there: 0 },
  );
  t.like(
    await moveOf(
      () => 0,
      (ms) => (ms < 500 ? 90 : 0),
    ),
    { kind: 'quiet', there: 0 },
  );
});

test('movedAway() gives up if connections still come, if no other host could take them, or if it cannot count', async (t) => {
  t.like(
    await moveOf(
      (ms) => Math.floor(ms / 100),
      (ms) => ms,
    ),
    { kind: 'arriving' },
  );
  t.like(
    await moveOf(
      (ms) => Math.floor(ms / 100),
      () => 0,
      0,
    ),
    { kind: 'alone' },
  );
  t.like(
    await moveOf(
      () => -1,
      (ms) => ms,
    ),
    { kind: 'uncounted' },
  );
  // A counter that another process removes.
  t.like(
    await moveOf(
      (ms) => (ms < 300 ? 1 : -1),
      (ms) => ms,
    ),
    { kind: 'uncounted' },
  );
});
