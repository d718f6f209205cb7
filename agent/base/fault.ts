// A fault that lasts: shown in the status as long as it is there, logged once when it appears or changes.

export class Fault {
  #text: string;

  /** `text`: the fault before anything was tried; '' for none. */
  constructor(text = '') {
    this.#text = text;
  }

  /** '' where there is no fault. */
  get text(): string {
    return this.#text;
  }

  /** True where the fault is another one than before: time to log it. */
  set(text: string): boolean {
    const isNews = text !== this.#text;
    this.#text = text;
    return isNews;
  }

  /** True where there was a fault. */
  clear(): boolean {
    return this.set('');
  }
}
