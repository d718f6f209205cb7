// The tables that the kernel has: loads them as a whole, changes single elements, and finds out whether another process has
// removed them. Keeps in memory what they contain, because reading thousands of elements back takes seconds.
// Owns the file of the rules.

import { randomBytes } from 'node:crypto';
import { closeSync, constants, ftruncateSync, openSync, writeSync } from 'node:fs';
import { unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { BackgroundWrite } from '../../base/background-write.ts';
import type { DiskFile } from '../../base/disk-file.ts';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import { sameValue } from '../../base/same-value.ts';
import { serial } from '../../base/serial.ts';
import { renameDurably, writeAtomically } from '../../host/atomic-file.ts';
import type { Log } from '../../host/log.ts';
import { makeFolder } from '../../host/make-directory.ts';
import type { Family, OwnerKey } from '../../model/load-balancer.ts';
import { ownerOfListener } from '../../model/names.ts';
import type { SourceGroups } from '../../model/source-groups.ts';
import { transactionText } from '../rules/command-text.ts';
import { type ListenerCounts, NO_COUNTS, newCounts, placesCounted } from '../rules/counts.ts';
import { type ElementChange, elementChange } from '../rules/elements.ts';
import { isDirect, type KernelListener, type ListenerChange } from '../rules/kernel-listener.ts';
import { prefixesOf, rulesText } from '../rules/rules-file.ts';
import { SharedElements } from '../rules/shared-elements.ts';
import { type HeldPlace, HoldTable, heldPlace } from './hold-table.ts';
import { Nft } from './nft.ts';
import { refusalsIn } from './refusals.ts';

export interface KernelTableOptions {
  /** The program nft. */
  readonly nft: string;
  readonly netns: string;
  readonly table: string;
  readonly rulesFile: string;
  /** Through which nft gets changes; no character of its path is special to nft. */
  readonly changeFile: string;
  /** Whether packets and bytes are counted. */
  readonly countsTraffic: boolean;
  /** By the settings in force. */
  readonly sources: () => SourceGroups;
  readonly log: Log;
}

const NONE: readonly KernelListener[] = [];
const FAMILIES: readonly Family[] = ['v4', 'v6'];
/** More elements than these are faster in a file. */
const MAX_ELEMENTS = 10_000;
const PERSIST_DELAY_MS = 1_000;
const PERSIST_RETRY_MS = 10_000;

export class KernelTable {
  readonly #options: KernelTableOptions;
  readonly #turns = serial();
  readonly #readings = serial();
  readonly #nft: Nft;
  readonly #file: BackgroundWrite;
  readonly #hold: HoldTable;
  #running = new Map<OwnerKey, readonly KernelListener[]>();
  /** What the kernel has for each owner while all rules are being loaded; undefined otherwise. */
  #before: ReadonlyMap<OwnerKey, readonly KernelListener[]> | undefined;
  /** The sources that the kernel has. */
  #sources: SourceGroups;
  #shared: SharedElements;
  /** When they were read last. */
  #counts = NO_COUNTS;
  /** undefined before the first load. */
  #knowsSockets: boolean | undefined;
  /** Prefixes of clients' addresses, for which the kernel has chains. */
  #prefixes: Readonly<Record<Family, ReadonlySet<number>>> = { v4: new Set(), v6: new Set() };
  /** The kernel has chains for direct members. */
  #knowsDirect = false;
  /** '' while it is not known what the kernel has. */
  #generation = '';

  constructor(options: KernelTableOptions) {
    this.#options = options;
    this.#sources = options.sources();
    this.#shared = new SharedElements(this.#sources.groupOf);
    const { nft, netns, log } = options;
    this.#nft = new Nft({ program: nft, netns });
    this.#hold = new HoldTable({ program: nft, netns, table: options.table, log });
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

  /** Another one after each load; '' while it is not known what the kernel has. */
  get generation(): string {
    return this.#generation;
  }

  /** The tables of both families. */
  get tables(): readonly string[] {
    return tablesOf('ip', this.#options.table);
  }

  /** True if this agent has started it to change the tables, lately. */
  hasStarted(process: number): boolean {
    return this.#nft.hasStarted(process);
  }

  /** The rules for the next boot. */
  get file(): DiskFile {
    return this.#file.file(this.#options.rulesFile);
  }

  /** By listener, when they were read last. */
  get lastCounts(): ReadonlyMap<string, ListenerCounts> {
    return this.#counts.listeners;
  }

  /** The listeners of a load balancer that the kernel has, or that are being loaded. */
  of(key: OwnerKey): readonly KernelListener[] {
    return this.#running.get(key) ?? NONE;
  }

  /** As of(), but what the kernel has now while others are being loaded. */
  inKernel(key: OwnerKey): readonly KernelListener[] {
    return (this.#before ?? this.#running).get(key) ?? NONE;
  }

  keys(): Iterable<OwnerKey> {
    return this.#running.keys();
  }

  listeners(): readonly KernelListener[] {
    return [...this.#running.values()].flat();
  }

  /** True if the settings now ask for other source addresses. */
  get hasOtherSources(): boolean {
    return !sameValue(this.#sources.groups, this.#options.sources().groups);
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

  /** What nft says against the rules of these listeners; '' if it accepts them. Changes nothing. Errors: as load(). */
  check(listeners: readonly KernelListener[]): Promise<string> {
    return this.#turns.run(async () => {
      const path = await this.#writeForNft('checking', () => this.#textOf(listeners, '0'.repeat(16)));
      const { exitCode, stderr } = await this.#nft.run('-c', '-f', path);
      await unlink(path).catch(() => undefined);
      return exitCode === 0 ? '' : firstLine(stderr) || `exit status ${exitCode}`;
    });
  }

  /** Changes single listeners. Errors: as load(); it is then not known what the kernel has. */
  change(changes: readonly ListenerChange[]): Promise<void> {
    return this.#turns.run(async () => {
      const shared = this.#shared.change(changes);
      const elements = [shared, ...changes.map(({ before, after }) => elementChange(before, after))];
      const count = elements.reduce((sum, { removed, added }) => sum + removed.length + added.length, 0);
      if (count > MAX_ELEMENTS || this.#lacksChains(changes)) {
        this.#before ??= new Map(this.#running);
        this.#fold(changes);
        await this.#load(this.listeners());
        return;
      }
      const [gone, come] = changedPlaces(changes);
      await this.#hold.release(gone);
      const answer = await this.#carryOut(elements).catch((error: unknown) => this.#lost(error));
      if (answer !== '') this.#lost(failed(`nft refused a change: ${firstLine(answer)}`));
      this.#fold(changes);
      this.#file.soon();
      await this.#hold.hold(come);
    });
  }

  /** Again if the process that holds flows has ended. Never rejects. */
  async holdAgain(): Promise<void> {
    if (!this.#hold.isDue) return;
    await this.#turns.run(async () => {
      if (this.isLoaded && this.#running.size > 0) await this.#hold.holdAll(this.listeners());
    });
  }

  /** False if another process has removed or replaced the tables. Errors: NFT_MISSING, NFT_FAILED. */
  isIntact(): Promise<boolean> {
    return this.#turns.run(async () => {
      if (!this.isLoaded || (await this.#isInKernel(this.#generation))) return true;
      this.#generation = '';
      return false;
    });
  }

  /** What the kernel forwards, as `address protocol port`, also by rules of an agent before this one. Never rejects. */
  async places(): Promise<ReadonlySet<string>> {
    const list = (family: string): Promise<string> =>
      this.#nft.run('-n', 'list', 'set', family, `${this.#options.table}_counts`, 'flows').then(
        ({ stdout }) => stdout,
        () => '',
      );
    return placesCounted(`${await list('ip')}\n${await list('ip6')}`);
  }

  /** By listener, also from before the rules were loaded; the last ones that could be read. Never rejects. */
  async counts(): Promise<ReadonlyMap<string, ListenerCounts>> {
    if (!this.isLoaded) return this.#counts.listeners;
    if (this.#running.size > 0) await this.#readCounts(this.listeners());
    // A listener that comes back later begins at 0.
    else this.#counts = NO_COUNTS;
    return this.#counts.listeners;
  }

  /** The milliseconds since members have refused a packet of a client by ICMP, by the member's name. Never rejects. */
  refusals(): Promise<ReadonlyMap<string, number>> {
    return this.#turns.run(async () => {
      if (!this.isLoaded) return new Map();
      const list = (family: string): Promise<string> =>
        this.#nft.ask(`list set ${family} ${this.#options.table}_counts closed`).catch(() => '');
      return refusalsIn(`${await list('ip')}\n${await list('ip6')}`);
    });
  }

  /** Removes the tables. Errors: as load(). */
  remove(): Promise<void> {
    return this.#turns.run(async () => {
      const { table } = this.#options;
      const names = ['ip', 'ip6'].flatMap((family) =>
        tablesOf(family, table).map((each) => `${family} ${each}`),
      );
      this.#hold.close();
      await this.#nft.ask(names.flatMap((name) => [`add table ${name}`, `delete table ${name}`]).join('; '));
      this.#generation = '';
    });
  }

  /** The rules stay. */
  async close(): Promise<void> {
    await this.#file.close();
    await this.#turns.idle();
    this.#hold.close();
    this.#nft.close();
  }

  async #load(listeners: readonly KernelListener[]): Promise<void> {
    const { rulesFile, changeFile } = this.#options;
    this.#generation = '';
    await makeFolder(dirname(changeFile), 0o700);
    // Until it is loaded the kernel has what it had before.
    this.#before ??= this.#running;
    this.#running = new Map(Map.groupBy(listeners, ({ name }) => ownerOfListener(name)));
    this.#sources = this.#options.sources();
    this.#shared = new SharedElements(this.#sources.groupOf);
    this.#shared.change(listeners.map((after) => ({ before: undefined, after })));
    const generation = randomBytes(8).toString('hex');
    this.#knowsSockets ??= await this.#findsSockets();
    await this.#hold.keepOnly(listeners);
    // Not the file for the next boot, which may be written at the same time.
    const path = await this.#writeForNft('loading', () => this.#textOf(listeners, generation));
    const { exitCode, stderr } = await this.#nft.run('-f', path);
    if (exitCode !== 0)
      throw failed(`nft cannot load the rules: ${firstLine(stderr) || `exit status ${exitCode}`}`);
    // Another program of this name may end with 0, too.
    const isThere = await this.#isInKernel(generation).catch((error: unknown) => {
      throw failed(`nft has loaded the rules, but they cannot be read back: ${messageOf(error)}`);
    });
    if (!isThere)
      throw failed(
        `nft has loaded the rules, but the kernel does not have them: is ${quote(this.#options.nft)} the program of nftables?`,
      );
    this.#generation = generation;
    this.#prefixes = { v4: prefixesOf(listeners, 'v4'), v6: prefixesOf(listeners, 'v6') };
    this.#knowsDirect = listeners.some(isDirect);
    this.#before = undefined;
    await this.#hold.holdAll(listeners);
    if (dirname(path) === dirname(rulesFile))
      await renameDurably(path, rulesFile).catch(() => this.#file.soon());
    else {
      await unlink(path).catch(() => undefined);
      this.#file.soon();
    }
  }

  /** They are loaded together, but another process may remove them apart. Errors: NFT_MISSING, NFT_FAILED. */
  async #isInKernel(generation: string): Promise<boolean> {
    const mark = `chain generation_${generation} {`;
    for (const family of ['ip', 'ip6']) {
      const text = await this.#nft.ask(`list chains ${family}`);
      const headers = tablesOf(family, this.#options.table).map((each) => `table ${family} ${each} {`);
      if (![mark, ...headers].every((each) => text.includes(each))) return false;
    }
    return true;
  }

  /** Whether rules can look for the socket of a packet, for which the kernel needs a module. */
  async #findsSockets(): Promise<boolean> {
    const probe =
      'add table ip headgate_probe; add chain ip headgate_probe pre { type nat hook prerouting priority 0; }';
    const { exitCode } = await this.#nft.run(
      '-c',
      `${probe}; add rule ip headgate_probe pre socket wildcard 0 accept`,
    );
    return exitCode === 0;
  }

  /** Beside the rules; in the runtime directory if there is no room. Gives the path. Errors: FILE_WRITE. */
  async #writeForNft(suffix: string, text: () => Iterable<string>): Promise<string> {
    const { rulesFile, changeFile } = this.#options;
    const path = `${rulesFile}.${suffix}`;
    try {
      await makeFolder(dirname(path), 0o700);
      await writeAtomically(path, text());
      return path;
    } catch {
      const other = `${changeFile}.${suffix}`;
      await writeAtomically(other, text());
      return other;
    }
  }

  async #write(path: string, generation: string): Promise<void> {
    const { rulesFile } = this.#options;
    if (generation === '') return;
    await makeFolder(dirname(rulesFile), 0o700);
    await writeAtomically(path, this.#textOf(this.listeners(), generation));
  }

  #textOf(listeners: readonly KernelListener[], generation: string): Iterable<string> {
    const { table, countsTraffic } = this.#options;
    const [sources, counts] = [this.#sources, this.#counts.elements];
    const knowsSockets = this.#knowsSockets === true;
    return rulesText({ table, generation, listeners, sources, counts, countsTraffic, knowsSockets });
  }

  /** Chains for direct members, and for a prefix of clients' addresses, are made only when all rules are loaded. */
  #lacksChains(changes: readonly ListenerChange[]): boolean {
    const after = changes.flatMap((change) => change.after ?? []);
    if (!this.#knowsDirect && after.some(isDirect)) return true;
    return FAMILIES.some((family) =>
      [...prefixesOf(after, family)].some((prefix) => !this.#prefixes[family].has(prefix)),
    );
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

  /**
   * By processes of their own, so that no change waits for the text of all counters. One reading at a time: numbers of an
   * older one would look like counters that have begun again.
   */
  #readCounts(listeners: readonly KernelListener[]): Promise<void> {
    return this.#readings.run(() => this.#readCountsNow(listeners));
  }

  async #readCountsNow(listeners: readonly KernelListener[]): Promise<void> {
    let text = '';
    for (const family of ['ip', 'ip6']) {
      const words = ['list', 'table', family, `${this.#options.table}_counts`];
      text += await this.#nft.run('-n', ...words).then(
        ({ stdout }) => stdout,
        () => '',
      );
    }
    this.#counts = newCounts(listeners, this.#counts, text);
  }

  /** What nft says about one transaction; '' if it carries it out. Errors: those of NftSession. */
  async #carryOut(changes: readonly ElementChange[]): Promise<string> {
    const { table, changeFile } = this.#options;
    const text = transactionText(table, changes);
    if (text === '') return '';
    // nft reads its input byte by byte, and a file at once.
    overwrite(changeFile, `${text}\n`);
    return this.#nft.ask(`include "${changeFile}"`);
  }

  /** It is not known any more what the kernel has. */
  #lost(error: unknown): never {
    this.#generation = '';
    throw error;
  }
}

/** Places that leave the rules, and those that come. */
function changedPlaces(
  changes: readonly ListenerChange[],
): readonly [gone: readonly HeldPlace[], come: readonly HeldPlace[]] {
  const [gone, come]: [HeldPlace[], HeldPlace[]] = [[], []];
  for (const { before, after } of changes) {
    const isSame = before !== undefined && after !== undefined && isDirect(before) === isDirect(after);
    for (const address of before?.addresses ?? [])
      if (before !== undefined && !(isSame && after.addresses.includes(address)))
        gone.push(heldPlace(before, address));
    for (const address of after?.addresses ?? [])
      if (after !== undefined && !(isSame && before.addresses.includes(address)))
        come.push(heldPlace(after, address));
  }
  return [gone, come];
}

function tablesOf(family: string, table: string): readonly string[] {
  const others = family === 'ip' ? ['counts', 'affinity', 'direct'] : ['counts', 'direct'];
  return [table, ...others.map((each) => `${table}_${each}`)];
}

/** Without O_TRUNC: some file systems write a file to the disk that is empty when it is opened. */
function overwrite(path: string, text: string): void {
  const file = openSync(path, constants.O_WRONLY | constants.O_CREAT, 0o600);
  try {
    ftruncateSync(file, writeSync(file, text));
  } finally {
    closeSync(file);
  }
}

function failed(message: string): HeadgateError {
  return new HeadgateError('NFT_FAILED', message, { retry: 'now' });
}

function firstLine(text: string): string {
  return (text.trim().split('\n')[0] ?? '').slice(0, 300);
}
