// A text that shows itself nowhere: not in JSON, in a log, in a template or in a message. Only reveal() gives it.

export class SecretText {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return '[secret]';
  }
}
