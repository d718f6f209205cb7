// What /metrics gives: reads the dataplane in the background, a round after the other, and keeps each round's text. A
// scrape gets the last text and the agent's own metrics as they are now, and waits for a round only if there is no text.
// Without scrapes it reads nothing.

import { type Clock, systemClock } from '../agent/base/clock.ts';
import { messageOf } from '../agent/base/errors.ts';
import type { MetricFamily } from '../agent/base/metric-family.ts';
import { Rounds } from '../agent/base/rounds.ts';
import { pieces } from './exposition.ts';
import { gzipFile, type KeptText, keep } from './kept-text.ts';
import type { TextFormat } from './text-format.ts';

export interface ScrapeSources {
  /** One round. `isAwaited`: a scrape waits for it. */
  readonly round: (round: { readonly isAwaited: boolean }) => Promise<readonly MetricFamily[]>;
  /** The agent's own metrics, as they are now. */
  readonly own: () => Promise<readonly MetricFamily[]>;
  readonly clock?: Clock;
}

/** Rounds end when the last scrape is so long ago: a series scraped less often is stale in Prometheus as well. */
const IDLE_AFTER_MS = 5 * 60_000;
/** From the end of a round to the next. */
const REST_MS = 2_000;

export class ScrapeRounds {
  readonly #sources: ScrapeSources;
  readonly #clock: Clock;
  readonly #rounds: Rounds;
  /** When each format was last asked for. */
  readonly #scrapedAt = new Map<TextFormat, number>();
  /** undefined before the first round, when the last scrape was long ago, and after a round that failed. */
  #last: RoundText | undefined;
  #failure = '';

  constructor(sources: ScrapeSources) {
    const { clock = systemClock } = sources;
    this.#sources = sources;
    this.#clock = clock;
    this.#rounds = new Rounds({
      intervalMs: () => REST_MS,
      work: () => this.#round(),
      onFailed: (error) => {
        this.#last = undefined;
        this.#failure = messageOf(error);
      },
      clock,
    });
  }

  /** The metrics as a gzip file, in parts. Errors: if there is no text, those of the first round. */
  async scrape(format: TextFormat): Promise<readonly Buffer[]> {
    this.#scrapedAt.set(format, this.#clock.monotonic());
    if (this.#last === undefined) {
      this.#rounds.start();
      await this.#rounds.now();
    }
    const last = this.#last;
    if (last === undefined) throw new Error(this.#failure);
    const [kept, own] = await Promise.all([last.text(format), this.#sources.own()]);
    const live = Array.from(pieces([...own, ...last.live], format), (piece) => Buffer.from(piece));
    return gzipFile(kept, Buffer.concat([...live, Buffer.from(format.end)]));
  }

  close(): void {
    this.#rounds.close();
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
    for (const format of this.#scrapedAt.keys()) await next.text(format);
    this.#last = next;
  }
}

/** The metrics of one round, whose text in a format is written once. */
class RoundText {
  readonly live: readonly MetricFamily[];
  readonly #kept: readonly MetricFamily[];
  readonly #texts = new Map<TextFormat, Promise<KeptText>>();

  constructor(families: readonly MetricFamily[]) {
    this.live = families.filter(({ isLive }) => isLive);
    this.#kept = families.filter(({ isLive }) => !isLive);
  }

  text(format: TextFormat): Promise<KeptText> {
    let text = this.#texts.get(format);
    if (text === undefined) {
      text = keep(pieces(this.#kept, format));
      this.#texts.set(format, text);
    }
    return text;
  }
}
