// A long-lived `nft -i`, which is to the kernel what the runtime socket is to HAProxy: a line is one transaction, and takes a
// tenth of the time of a process. Owns the process.
// Why: docs/design/decisions/0036-kernel-path.md

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { HeadgateError } from '../../base/errors.ts';
import { ReadFirstTimeout } from '../../base/read-first-timeout.ts';
import { inNamespace } from '../../host/namespace.ts';

export interface SessionOptions {
  readonly program: string;
  /** A network namespace by its name in /run/netns; '' for the agent's own. */
  readonly netns: string;
}

interface Question {
  /** A word that nft does not know: it repeats the line, which shows that the lines before it are answered. */
  readonly mark: string;
  readonly resolve: (answer: string) => void;
  readonly reject: (error: HeadgateError) => void;
}

const ANSWER_TIMEOUT_MS = 3_000;
/** nft has the history of its user there, which it would read and add to. */
const NO_HOME = '/nonexistent';
/** What the shell gives if there is no such program. */
const NOT_FOUND = 127;

export class NftSession {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #timeout = new ReadFirstTimeout(() => this.#end('nft does not answer'));
  #question: Question | undefined;
  #count = 0;
  #output = '';
  #isOpen = true;

  constructor({ program, netns }: SessionOptions) {
    // One pipe for both outputs keeps their order.
    const [outer, words] = inNamespace(netns, 'sh', ['-c', 'exec "$0" -i 2>&1', program]);
    const child = spawn(outer, words, { stdio: 'pipe', env: { ...process.env, HOME: NO_HOME } });
    this.#child = child;
    child.stdout.setEncoding('utf8').on('data', (text: string) => this.#read(text));
    child.stdin.on('error', () => undefined);
    child.on('error', (error) => this.#end(`nft cannot be started: ${error.message}`));
    child.on('close', (code) => this.#end(`nft ended with exit status ${code}`, code === NOT_FOUND));
    child.unref();
  }

  /** Also the id of its netlink socket. */
  get process(): number {
    return this.#child.pid ?? 0;
  }

  /** The answers that it was asked for. */
  get answers(): number {
    return this.#count;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * What nft says about one line; '' if it carries out a transaction. Only one line at a time. Errors: NFT_MISSING;
   * NFT_FAILED if the process ends or does not answer.
   */
  ask(line: string): Promise<string> {
    return new Promise((resolve, reject) => {
      if (!this.#isOpen) {
        reject(new HeadgateError('NFT_FAILED', 'nft has ended', { retry: 'now' }));
        return;
      }
      const mark = `answered_${++this.#count}`;
      this.#output = '';
      this.#question = { mark, resolve, reject };
      this.#timeout.wait(ANSWER_TIMEOUT_MS);
      this.#child.stdin.write(`${line}\n${mark}\n`);
    });
  }

  close(): void {
    this.#isOpen = false;
    this.#timeout.end();
    this.#child.kill('SIGKILL');
  }

  #read(text: string): void {
    this.#output += text;
    const question = this.#question;
    if (question === undefined) return;
    // The error about the mark: a line that begins with "Error", from nft 1.1.6 on one with what is expected, the mark, and a
    // line that points to its place.
    const end = this.#output.search(
      new RegExp(`^Error: .*\\n(?:(?!Error: ).*\\n)*?${question.mark}\\n`, 'm'),
    );
    if (end < 0) return;
    this.#timeout.end();
    this.#question = undefined;
    question.resolve(
      this.#output
        .slice(0, end)
        .replace(/^\s*\^\s*\n/, '')
        .trim(),
    );
  }

  #end(why: string, isMissing = false): void {
    if (!this.#isOpen) return;
    this.close();
    const said = this.#output.trim().slice(0, 200);
    const message = isMissing
      ? 'The program nft is missing: install nftables'
      : `${why}${said && `: ${said}`}`;
    this.#question?.reject(
      new HeadgateError(isMissing ? 'NFT_MISSING' : 'NFT_FAILED', message, {
        retry: isMissing ? 'later' : 'now',
      }),
    );
  }
}
