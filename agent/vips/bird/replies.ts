// Replies on BIRD's socket. Each line but the last begins with a code and a minus sign, or with a space if the code is that of
// the line before; the last one begins with a code and a space. Pure.
// https://bird.network.cz/?get_doc&v=20&f=prog-2.html#ss2.9

export interface Reply {
  /** The code of the last line: from 8000 on BIRD has refused the command. */
  readonly code: number;
  /** Without codes. */
  readonly lines: readonly string[];
}

/** Takes text as it arrives and gives whole replies. */
export class ReplyReader {
  #text = '';
  #lines: string[] = [];

  /** Errors: a line that is none of BIRD's. */
  take(chunk: string): readonly Reply[] {
    const parts = (this.#text + chunk).split('\n');
    this.#text = parts.pop() ?? '';
    const replies: Reply[] = [];
    for (const line of parts) {
      const [, code, mark, rest = ''] = /^(?:(\d{4})([ -])|[ +])(.*)$/.exec(line) ?? [];
      if (code === undefined && !/^[ +]/.test(line))
        throw new Error(`"${line.slice(0, 100)}" is no line of a reply`);
      if (rest !== '' || mark !== ' ') this.#lines.push(rest);
      if (mark !== ' ') continue;
      replies.push({ code: Number(code), lines: this.#lines });
      this.#lines = [];
    }
    return replies;
  }
}

/** Refused commands and syntax errors; BIRD 3 reports a reconfiguration that continues (0004) where BIRD 2 reports its end. */
export function isRefusal({ code }: Reply): boolean {
  return code >= 8000;
}
