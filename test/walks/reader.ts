// The reader of a document, with a host and a clone of the repository, who runs its commands.
// Each command and what it prints goes to the output. For a process in network and mount namespaces of its own.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Deadline } from '../support/basics/deadline.ts';
import { eventually } from '../support/basics/eventually.ts';
import { blocksOf } from '../support/repository/markdown.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const COMMAND_TIMEOUT_MS = 300_000;
/** What a reader edits or writes in the repository; all else of the clone is links. */
const COPIED = ['examples'];
const NOT_CLONED = ['.cache', '.git'];
/** Empty at first, so that no other agent or package of this machine is seen. */
const EMPTY_FOLDERS = ['/run', '/var/lib', '/var/log'];

/** A file of the repository. */
export function textOf(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

function writtenAt(path: string): number {
  return statSync(join(root, path)).mtimeMs;
}

/** A command that runs in a terminal of its own. */
export interface Running {
  /** What it has printed. */
  output(): string;
  /** Waits until it has printed this. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Ctrl-C, which a terminal sends to all processes in the foreground. Returns the exit status. */
  interrupt(): Promise<number | null>;
}

export class Reader {
  readonly clone: string;
  readonly #env: NodeJS.ProcessEnv;

  /** `folder` is empty; `settings` are variables of the environment. */
  constructor(folder: string, settings: Readonly<Record<string, string>> = {}) {
    execFileSync('ip', ['link', 'set', 'lo', 'up']);
    for (const place of EMPTY_FOLDERS) execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', place]);
    // /etc stays as it is, and what is written into it ends with the namespace.
    const etc = ['upperdir=/run/etc', 'workdir=/run/etc-work', 'lowerdir=/etc'];
    for (const place of ['/run/etc', '/run/etc-work']) mkdirSync(place);
    execFileSync('mount', ['-t', 'overlay', 'overlay', '-o', etc.join(), '/etc']);
    // Else `make install` in the clone would empty the packages of the repository, to which the clone has a link.
    if (writtenAt('package-lock.json') > writtenAt('node_modules/.package-lock.json'))
      throw new Error('node_modules is older than package-lock.json: run "make install" first');
    this.clone = join(folder, 'clone');
    mkdirSync(this.clone);
    for (const name of readdirSync(root).filter((each) => !NOT_CLONED.includes(each)))
      if (COPIED.includes(name)) cpSync(join(root, name), join(this.clone, name), { recursive: true });
      else symlinkSync(join(root, name), join(this.clone, name));
    const own = Object.entries(process.env).filter(([name]) => !/^(HEADGATE_|FORCE_COLOR$|XDG_)/.test(name));
    const PATH = `${process.env.PATH}:${join(this.clone, 'bin')}`;
    this.#env = { ...Object.fromEntries(own), PATH, ...settings };
  }

  /** The shell blocks of a document. Errors: there are more or fewer than the walk knows. */
  blocks(document: string, count: number): string[] {
    const blocks = blocksOf(textOf(document), 'sh');
    if (blocks.length !== count)
      throw new Error(
        `${document} has ${blocks.length} blocks of shell commands, and the walk does ${count}`,
      );
    return blocks;
  }

  /** What the commands print. Errors: another exit status than `status`. */
  async run(commands: string, status = 0): Promise<string> {
    const child = this.#spawn(commands);
    const timer = setTimeout(() => child.kill('SIGKILL'), COMMAND_TIMEOUT_MS);
    const output = printed(child);
    const [actual] = await once(child, 'close');
    clearTimeout(timer);
    if (actual !== status) throw new Error(`Status ${actual} instead of ${status} of: ${commands}`);
    return output();
  }

  /** Runs the commands again and again, with any exit status, until they print this. A log line may come before the state. */
  until(commands: string, pattern: RegExp): Promise<string> {
    return eventually(
      () => this.run(`${commands} || :`),
      (text) => pattern.test(text),
    );
  }

  /** In a terminal of its own, with the last line in the foreground. */
  start(commands: string): Running {
    // With `set -m` what runs in the background has a process group of its own, which Ctrl-C does not reach.
    const child = this.#spawn(commands.replace(/(?<=^|\n)(?=[^\n]+$)/, 'exec '), 'set -m\n');
    const output = printed(child);
    return {
      output,
      printed: async (pattern) => {
        for (const deadline = new Deadline(COMMAND_TIMEOUT_MS, 30); ; await delay(10)) {
          const found = pattern.exec(output());
          if (found !== null) return found;
          if (deadline.isOver) throw new Error(`It has not printed ${pattern}: ${commands}`);
        }
      },
      interrupt: async () => {
        const exit = once(child, 'exit');
        process.kill(-(child.pid as number), 'SIGINT');
        const [status] = await exit;
        return status;
      },
    };
  }

  /** As the first of a process group. */
  #spawn(commands: string, preparation = ''): ChildProcess {
    console.log(commands.replaceAll(/^/gm, '$ '));
    const options = { cwd: this.clone, env: this.#env, detached: true } as const;
    return spawn('bash', ['-ec', preparation + commands], { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  }
}

/** Shows the output of a process, and collects it. */
function printed(child: ChildProcess): () => string {
  let all = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      all += text;
      process.stdout.write(text);
    });
  return () => all;
}
