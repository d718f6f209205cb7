// Answers scrapes: reads the dataplane in the background, in rounds that end before the next scrape is expected, and keeps
// the text of the last round. A scrape gets this text and the agent's own metrics with their current values; it waits for a
// round only if there is no recent text. Without scrapes no rounds are made.
// Why: docs/design/decisions/0029-scrape-in-background.md

import { type Clock, passed, systemClock } from '../../agent/base/clock.ts';
import { messageOf } from '../../agent/base/errors.ts';
import type { MetricFamily } from '../../agent/base/metric-family.ts';
import { Rounds } from '../../agent/base/rounds.ts';
import { type CompressedText, gzipFile, keep, type Rest } from './compressed-text.ts';
import { pieces, type TextFormat } from './exposition.ts';

export interface ScrapeSources {
  /** One round. `isAwaited`: a scrape waits for it. */
  readonly round: (round: { readonly isAwaited: boolean }) => Promise<readonly MetricFamily[]>;
  /** The agent's own metrics, with their current values. */
  readonly own: () => Promise<readonly MetricFamily[]>;
  readonly clock?: Clock;
}

/** Rounds end this long after the last scrape: Prometheus, too, treats a series as stale by then. */
const IDLE_AFTER_MS = 5 * 60_000;
/** From the end of a round to the next, at least. */
const REST_MS = 2_000;
/** From the begin of a round to the scrape that it is made for: enough for ten thousand members, and for a scrape that comes early. */
const LEAD_MS = 6_000;
/** Writing and compressing a piece keeps both processors of a small host busy for a fraction of this. */
const PIECE_REST_MS = 3;
/** A scrape does not get the text of a round that ended longer ago. */
const MAX_REST_MS = 6_000;

export class ScrapeRounds {
  readonly #sources: ScrapeSources;
  readonly #clock: Clock;
  readonly #rounds: Rounds;
  /** The time of the last scrape in each format, on the monotonic clock. */
  readonly #scrapedAt = new Map<TextFormat, number>();
  /** The times of the last three scrapes. */
  #scrapes: readonly number[] = [];
  /** The end of the last round. */
  #endedAt = 0;
  /** undefined before the first round, after a failed round, and long after the last scrape. */
  #last: RoundText | undefined;
  #failure = '';

  constructor(sources: ScrapeSources) {
    const { clock = systemClock } = sources;
    this.#sources = sources;
    this.#clock = clock;
    this.#rounds = new Rounds({
      intervalMs: () => this.#untilNext(),
      work: () =>
        this.#round().finally(() => {
          this.#endedAt = this.#clock.monotonic();
        }),
      onFailed: (error) => {
        this.#last = undefined;
        this.#failure = messageOf(error);
      },
      clock,
    });
  }

  /** The metrics as a gzip file, in parts. Errors: those of the round for which the scrape waited. */
  async scrape(format: TextFormat): Promise<readonly Buffer[]> {
    const now = this.#clock.monotonic();
    this.#scrapedAt.set(format, now);
    this.#scrapes = [...this.#scrapes.slice(-2), now];
    if (now - this.#endedAt > MAX_REST_MS) this.#last = undefined;
    this.#rounds.retime();
    if (this.#last === undefined) {
      this.#rounds.start();
      await this.#rounds.now();
    }
    const last = this.#last;
    if (last === undefined) throw new Error(this.#failure);
    const [kept, own] = await Promise.all([last.text(format), this.#sources.own()]);
    return gzipFile(kept, [...pieces([...own, ...last.live], format), format.end]);
  }

  close(): void {
    this.#rounds.close();
  }

  /** Milliseconds until the next round, if scrapes continue at the shorter one of their last two intervals. */
  #untilNext(): number {
    const [first = 0, second = first, third = second] = this.#scrapes;
    const expected = third + Math.min(second - first, third - second);
    const begin = Math.max(this.#endedAt + REST_MS, expected - LEAD_MS);
    return Math.max(0, begin - this.#clock.monotonic());
  }

  async #round(): Promise<void> {
    const began = this.#clock.monotonic();
    for (const [format, scrapedAt] of this.#scrapedAt)
      if (began - scrapedAt >= IDLE_AFTER_MS) this.#scrapedAt.delete(format);
    if (this.#scrapedAt.size === 0) {
      this.#rounds.close();
      this.#last = undefined;
      return;
    }
    const next = new RoundText(await this.#sources.round({ isAwaited: this.#last === undefined }));
    for (const format of this.#scrapedAt.keys()) await next.text(format, () => this.#rest());
    this.#last = next;
  }

  /** Between two pieces of text, unless a scrape waits for them. */
  async #rest(): Promise<void> {
    if (this.#last !== undefined) await passed(this.#clock, PIECE_REST_MS);
  }
}

/** The metrics of one round. Their text is written once in each format; live families are left out of it. */
class RoundText {
  readonly live: readonly MetricFamily[];
  readonly #kept: readonly MetricFamily[];
  readonly #texts = new Map<TextFormat, Promise<CompressedText>>();

  constructor(families: readonly MetricFamily[]) {
    this.live = families.filter(({ isLive }) => isLive);
    this.#kept = families.filter(({ isLive }) => !isLive);
  }

  text(format: TextFormat, rest?: Rest): Promise<CompressedText> {
    let text = this.#texts.get(format);
    if (text === undefined) {
      text = keep(pieces(this.#kept, format), rest);
      this.#texts.set(format, text);
    }
    return text;
  }
}
