// The tables that the kernel has: loads them as a whole, changes single elements, and finds out whether another process has
// removed them. Keeps in memory what they contain, because reading thousands of elements back takes seconds.
// Owns the nft process and the file of the rules.

import { randomBytes } from 'node:crypto';
import { dirname } from 'node:path';
import { BackgroundWrite } from '../base/background-write.ts';
import { HeadgateError } from '../base/errors.ts';
import { serial } from '../base/serial.ts';
import { renameDurably, writeAtomically } from '../host/atomic-file.ts';
import type { Log } from '../host/log.ts';
import { makeFolder } from '../host/make-directory.ts';
import { inNamespace } from '../host/namespace.ts';
import { runCommand } from '../host/run-command.ts';
import type { OwnerKey } from '../model/load-balancer.ts';
import { ownerOfListener } from '../model/names.ts';
import { counterName, transactionText } from './command-text.ts';
import { type Element, type ElementChange, elementChange } from './elements.ts';
import type { KernelListener } from './kernel-listener.ts';
import { rulesText } from './rules-file.ts';
import { NftSession } from './session.ts';

export interface KernelTableOptions {
  /** The program nft. */
  readonly nft: string;
  readonly netns: string;
  readonly table: string;
  readonly rulesFile: string;
  /** The address from which members get the packets to a VIP; '' for this host's own. */
  readonly sourceOf: (vip: string) => string;
  readonly anchors: () => readonly string[];
  readonly log: Log;
}

/** A listener before and after; undefined if there is none. */
export interface ListenerChange {
  readonly before: KernelListener | undefined;
  readonly after: KernelListener | undefined;
}

/** By VIP. */
type Sources = Map<string, { readonly source: string; readonly users: number }>;

const NONE: readonly KernelListener[] = [];
const LOAD_TIMEOUT_MS = 30_000;
/** More elements than these are faster in a file. */
const MAX_ELEMENTS = 10_000;
const PERSIST_DELAY_MS = 1_000;
const PERSIST_RETRY_MS = 10_000;

export class KernelTable {
  readonly #options: KernelTableOptions;
  readonly #turns = serial();
  readonly #file: BackgroundWrite;
  #running = new Map<OwnerKey, readonly KernelListener[]>();
  /** By VIP: its source, and how many listeners have it. */
  #sources: Sources = new Map();
  /** New flows by listener when they were read last. */
  #counts = new Map<string, number>();
  /** '' while it is not known what the kernel has. */
  #generation = '';
  #session: NftSession | undefined;

  constructor(options: KernelTableOptions) {
    this.#options = options;
    const { log } = options;
    this.#file = new BackgroundWrite({
      write: () => this.#write(options.rulesFile, this.#generation),
      delayMs: PERSIST_DELAY_MS,
      rest: 20,
      retryMs: PERSIST_RETRY_MS,
      onFault: (error) => log.error('Cannot write the rules for the next boot', { error }),
    });
  }

  /** The kernel has what `of` gives. */
  get isLoaded(): boolean {
    return this.#generation !== '';
  }

  get persistFault(): string {
    return this.#file.fault;
  }

  /** The listeners of a load balancer that the kernel has. */
  of(key: OwnerKey): readonly KernelListener[] {
    return this.#running.get(key) ?? NONE;
  }

  keys(): Iterable<OwnerKey> {
    return this.#running.keys();
  }

  /** True if the settings now ask for other source addresses. */
  get hasOtherSources(): boolean {
    return [...this.#sources].some(([vip, { source }]) => source !== this.#options.sourceOf(vip));
  }

  /** Replaces everything. Established flows continue. Errors: NFT_MISSING, NFT_FAILED, FILE_WRITE, COMMAND_FAILED. */
  load(listeners: readonly KernelListener[]): Promise<void> {
    this.#generation = '';
    return this.#turns.run(async () => {
      // Also those of an agent before this one.
      await this.#readCounts(listeners);
      await this.#load(listeners);
    });
  }

  /** Changes single listeners. Errors: as load(); it is then not known what the kernel has. */
  change(changes: readonly ListenerChange[]): Promise<void> {
    return this.#turns.run(async () => {
      const elements = changes.map(({ before, after }) => elementChange(before, after));
      const sources = this.#sourceChange(changes);
      const count = elements.reduce((sum, { removed, added }) => sum + removed.length + added.length, 0);
      if (count > MAX_ELEMENTS) {
        this.#fold(changes);
        await this.#load([...this.#running.values()].flat());
        return;
      }
      const line = transactionText(this.#options.table, [sources.change, ...elements]);
      const answer = line === '' ? '' : await this.#ask(line).catch((error: unknown) => this.#lost(error));
      if (answer !== '') this.#lost(failed(`nft refused a change: ${firstLine(answer)}`));
      this.#fold(changes);
      for (const [vip, entry] of sources.touched)
        if (entry.users > 0) this.#sources.set(vip, entry);
        else this.#sources.delete(vip);
      this.#file.soon();
    });
  }

  /** False if another process has removed or replaced the tables. Errors: NFT_MISSING, NFT_FAILED. */
  isIntact(): Promise<boolean> {
    return this.#turns.run(async () => {
      if (!this.isLoaded) return true;
      const mark = `chain generation_${this.#generation} {`;
      // They are loaded together, but another process may remove them apart.
      for (const family of ['ip', 'ip6']) {
        if ((await this.#ask(`list chains ${family}`)).includes(mark)) continue;
        this.#generation = '';
        return false;
      }
      return true;
    });
  }

  /** New flows by listener, also from before the rules were loaded; the last ones that could be read. Never rejects. */
  counts(): Promise<ReadonlyMap<string, number>> {
    return this.#turns.run(async () => {
      if (this.isLoaded && this.#running.size > 0) await this.#readCounts([...this.#running.values()].flat());
      return this.#counts;
    });
  }

  /** Removes the tables. Errors: as load(). */
  remove(): Promise<void> {
    return this.#turns.run(async () => {
      const { table } = this.#options;
      const names = ['ip', 'ip6'].flatMap((family) => [`${family} ${table}`, `${family} ${table}_counts`]);
      await this.#ask(names.flatMap((name) => [`add table ${name}`, `delete table ${name}`]).join('; '));
      this.#generation = '';
    });
  }

  /** The rules stay. */
  async close(): Promise<void> {
    await this.#file.close();
    await this.#turns.idle();
    this.#session?.close();
  }

  async #load(listeners: readonly KernelListener[]): Promise<void> {
    const { nft, netns, rulesFile } = this.#options;
    this.#generation = '';
    this.#running = new Map(Map.groupBy(listeners, ({ name }) => ownerOfListener(name)));
    this.#sources = new Map();
    this.#sources = this.#sourceChange(listeners.map((after) => ({ before: undefined, after }))).touched;
    const generation = randomBytes(8).toString('hex');
    // Not the file for the next boot, which may be written at the same time.
    const path = `${rulesFile}.loading`;
    await this.#write(path, generation);
    const [program, words] = inNamespace(netns, nft, ['-f', path]);
    const { exitCode, stderr } = await runCommand(program, words, { timeout: LOAD_TIMEOUT_MS });
    if (exitCode !== 0)
      throw failed(`nft cannot load the rules: ${firstLine(stderr) || `exit status ${exitCode}`}`);
    this.#generation = generation;
    await renameDurably(path, rulesFile);
  }

  async #write(path: string, generation: string): Promise<void> {
    const { table, rulesFile } = this.#options;
    if (generation === '') return;
    await makeFolder(dirname(rulesFile), 0o700);
    const text = rulesText({
      table,
      generation,
      listeners: [...this.#running.values()].flat(),
      sourceOf: (vip) => this.#sources.get(vip)?.source ?? '',
      anchors: this.#options.anchors(),
      counts: this.#counts,
    });
    await writeAtomically(path, text);
  }

  #fold(changes: readonly ListenerChange[]): void {
    for (const { before, after } of changes) {
      const name = before?.name ?? after?.name ?? '';
      const key = ownerOfListener(name);
      const others = this.of(key).filter((each) => each.name !== name);
      const listeners = after === undefined ? others : [...others, after];
      if (listeners.length === 0) this.#running.delete(key);
      else this.#running.set(key, listeners);
    }
  }

  /** `touched`: the sources of the VIPs in these changes, after them. */
  #sourceChange(changes: readonly ListenerChange[]): {
    readonly change: ElementChange;
    readonly touched: Sources;
  } {
    const { sourceOf } = this.#options;
    const touched: Sources = new Map();
    const count = (vip: string, step: 1 | -1): void => {
      const now = touched.get(vip) ?? this.#sources.get(vip) ?? { source: sourceOf(vip), users: 0 };
      touched.set(vip, { ...now, users: now.users + step });
    };
    for (const { before, after } of changes) {
      for (const vip of after?.addresses ?? []) count(vip, 1);
      for (const vip of before?.addresses ?? []) count(vip, -1);
    }
    const [removed, added]: [Element[], Element[]] = [[], []];
    for (const [vip, { source, users }] of touched) {
      const isThere = this.#sources.has(vip);
      if (source === '' || isThere === users > 0) continue;
      if (isThere) removed.push({ map: 'sources', vip, source });
      else added.push({ map: 'sources', vip, source });
    }
    return { change: { removed, added, removedCounters: [], addedCounters: [] }, touched };
  }

  /** A count never goes back, also if another process has removed the counters. */
  async #readCounts(listeners: readonly KernelListener[]): Promise<void> {
    const names = new Map(listeners.map(({ name }) => [counterName(name), name]));
    const counts = new Map(listeners.map(({ name }) => [name, this.#counts.get(name) ?? 0]));
    this.#counts = counts;
    for (const family of ['ip', 'ip6']) {
      const text = await this.#ask(`list table ${family} ${this.#options.table}_counts`).catch(() => '');
      for (const [, counter = '', packets] of text.matchAll(/counter (l_[0-9a-f]{16}) \{\s*packets (\d+)/g)) {
        const name = names.get(counter);
        if (name !== undefined) counts.set(name, Math.max(counts.get(name) ?? 0, Number(packets)));
      }
    }
  }

  #ask(line: string): Promise<string> {
    const { nft: program, netns } = this.#options;
    if (this.#session?.isOpen !== true) this.#session = new NftSession({ program, netns });
    return this.#session.ask(line);
  }

  /** It is not known any more what the kernel has. */
  #lost(error: unknown): never {
    this.#generation = '';
    throw error;
  }
}

function failed(message: string): HeadgateError {
  return new HeadgateError('NFT_FAILED', message, { retry: 'now' });
}

function firstLine(text: string): string {
  return (text.trim().split('\n')[0] ?? '').slice(0, 300);
}
