// A fault that lasts: the status shows it while it is there; the log reports it once when it appears or changes.

export class Fault {
  #text: string;

  /** `text`: the fault before the first attempt; '' for none. */
  constructor(text = '') {
    this.#text = text;
  }

  /** '' if there is no fault. */
  get text(): string {
    return this.#text;
  }

  /** True if the fault is new or has changed, so that the caller logs it. */
  set(text: string): boolean {
    const isNews = text !== this.#text;
    this.#text = text;
    return isNews;
  }

  /** True if there was a fault. */
  clear(): boolean {
    return this.set('');
  }
}
