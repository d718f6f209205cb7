// The tables of egress that the kernel has: loads them as a whole, changes single pods through a long-lived nft, and removes them
// when no Service needs them. Keeps in memory what they contain. Owns the file of the rules and the processes.

import { randomBytes } from 'node:crypto';
import { unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { BackgroundWrite } from '../../base/background-write.ts';
import type { DiskFile } from '../../base/disk-file.ts';
import { HeadgateError } from '../../base/errors.ts';
import { serial } from '../../base/serial.ts';
import type { EgressMapping as Mapping } from '../../dataplane/egress-facts.ts';
import { renameDurably, writeAtomically } from '../../host/atomic-file.ts';
import type { Log } from '../../host/log.ts';
import { makeFolder } from '../../host/make-directory.ts';
import type { Count } from '../rules/elements.ts';
import { HoldTable } from '../table/hold-table.ts';
import { Nft } from '../table/nft.ts';
import type { EgressBook } from './egress-book.ts';
import { COUNTING, egressChange, egressText, type PodChange, type VipCounts } from './egress-text.ts';

export interface EgressTableOptions {
  /** The program nft. */
  readonly nft: string;
  readonly netns: string;
  readonly table: string;
  readonly file: string;
  /** Whether packets and bytes are counted. */
  readonly countsTraffic: boolean;
  readonly book: EgressBook;
  readonly log: Log;
}

/** More of them are faster in a file. */
const MAX_CHANGES = 500;
const PERSIST_DELAY_MS = 1_000;
const PERSIST_RETRY_MS = 10_000;
const NOTHING: Count = { packets: 0, bytes: 0 };
const NO_COUNTS: VipCounts = { opened: NOTHING, sent: NOTHING, received: NOTHING };

export class EgressTable {
  readonly #options: EgressTableOptions;
  readonly #path: string;
  readonly #turns = serial();
  readonly #nft: Nft;
  readonly #hold: HoldTable;
  readonly #written: BackgroundWrite;
  /** '' while it is not known what the kernel has. */
  #generation = '';
  /** Pod → VIP, as the kernel has it. */
  #pods = new Map<string, string>();
  #vips: ReadonlySet<string> = new Set();
  /** By VIP: what the kernel had when it was read last, and the sums until then, which never go back. */
  readonly #last = new Map<string, VipCounts>();
  readonly #sums = new Map<string, VipCounts>();
  #knowsSockets: boolean | undefined;

  constructor(options: EgressTableOptions) {
    const { nft, netns, table, file, log } = options;
    this.#options = options;
    this.#nft = new Nft({ program: nft, netns });
    this.#hold = new HoldTable({ program: nft, netns, table, log });
    this.#written = new BackgroundWrite({
      write: () => this.#write(),
      delayMs: PERSIST_DELAY_MS,
      rest: 20,
      retryMs: PERSIST_RETRY_MS,
      onFault: (error) => log.error('Cannot write the rules of egress for the next boot', { error }),
    });
    this.#path = file;
  }

  get isLoaded(): boolean {
    return this.#generation !== '';
  }

  /** The rules for the next boot. */
  get file(): DiskFile {
    return this.#written.file(this.#path);
  }

  /** All that the book has. Established flows continue. Errors: NFT_MISSING, NFT_FAILED, FILE_WRITE, COMMAND_FAILED. */
  load(): Promise<void> {
    this.#generation = '';
    return this.#turns.run(async () => {
      await this.#readCounts();
      this.#knowsSockets ??= await this.#findsSockets();
      const generation = randomBytes(8).toString('hex');
      await makeFolder(dirname(this.#path), 0o700);
      const loading = `${this.#path}.loading`;
      const { book } = this.#options;
      const [mappings, vips] = [[...book.mappings()], book.vips()];
      await writeAtomically(loading, this.#text(generation, mappings, vips));
      const { exitCode, stderr } = await this.#nft.run('-f', loading);
      if (exitCode !== 0) {
        await unlink(loading).catch(() => undefined);
        throw failed(
          `nft cannot load the rules of egress: ${firstLine(stderr) || `exit status ${exitCode}`}`,
        );
      }
      if (!(await this.#isInKernel(generation)))
        throw failed('nft has loaded the rules of egress, but the kernel does not have them');
      this.#generation = generation;
      this.#pods = new Map(mappings.map(({ pod, vip }) => [pod, vip]));
      this.#vips = vips;
      for (const vip of vips) this.#last.set(vip, this.#sums.get(vip) ?? NO_COUNTS);
      await renameDurably(loading, this.#path).catch(() => this.#written.soon());
      await this.#hold.holdFlows();
    });
  }

  /**
   * Brings these pods to what the book has, in one transaction. Gives those that have changed; undefined if there are too many.
   * Errors: as load(); it is then not known what the kernel has.
   */
  change(pods: Iterable<string>): Promise<readonly PodChange[] | undefined> {
    return this.#turns.run(async () => {
      const { table, book } = this.#options;
      const changes = Array.from(pods, (pod): PodChange => {
        return { pod, before: this.#pods.get(pod), after: book.mappingOf(pod)?.vip };
      }).filter(({ before, after }) => before !== after);
      if (changes.length > MAX_CHANGES) return undefined;
      const vips = book.vips();
      const fresh = [...vips].filter((vip) => !this.#vips.has(vip));
      const gone = [...this.#vips].filter((vip) => !vips.has(vip));
      const text = egressChange(table, changes, { fresh, gone });
      if (text === '') return changes;
      const answer = await this.#nft.ask(text).catch((error: unknown) => this.#lost(error));
      if (answer !== '') this.#lost(failed(`nft refused a change of egress: ${firstLine(answer)}`));
      for (const { pod, after } of changes)
        if (after === undefined) this.#pods.delete(pod);
        else this.#pods.set(pod, after);
      this.#vips = vips;
      for (const vip of [...gone, ...fresh]) this.#last.set(vip, NO_COUNTS);
      for (const vip of gone) this.#sums.delete(vip);
      this.#written.soon();
      return changes;
    });
  }

  /** False if another process has removed or replaced the tables. Errors: NFT_MISSING, NFT_FAILED. */
  isIntact(): Promise<boolean> {
    return this.#turns.run(async () => {
      if (!this.isLoaded || (await this.#isInKernel(this.#generation))) {
        if (this.isLoaded) await this.#hold.holdFlows();
        return true;
      }
      this.#generation = '';
      return false;
    });
  }

  /** By VIP, until now. Never rejects. */
  counts(): Promise<ReadonlyMap<string, VipCounts>> {
    return this.#turns.run(async () => {
      if (this.isLoaded) await this.#readCounts();
      return new Map([...this.#vips].map((vip) => [vip, this.#sums.get(vip) ?? NO_COUNTS]));
    });
  }

  /** The tables, the file and the processes go. Errors: NFT_MISSING, NFT_FAILED. */
  remove(): Promise<void> {
    return this.#turns.run(async () => {
      const { table } = this.#options;
      this.#generation = '';
      this.#hold.close();
      const names = ['ip', 'ip6'].map((family) => `${family} ${table}`);
      await this.#nft.ask(names.flatMap((name) => [`add table ${name}`, `delete table ${name}`]).join('; '));
      this.#nft.close();
      this.#pods.clear();
      this.#vips = new Set();
      this.#last.clear();
      this.#sums.clear();
      await unlink(this.#path).catch(() => undefined);
    });
  }

  /** The rules stay. */
  async close(): Promise<void> {
    await this.#written.close();
    await this.#turns.idle();
    this.#hold.close();
    this.#nft.close();
  }

  #text(generation: string, mappings: readonly Mapping[], vips: Iterable<string>): Iterable<string> {
    const { table, countsTraffic } = this.#options;
    const knowsSockets = this.#knowsSockets === true;
    return egressText({ table, generation, mappings, vips, counts: this.#sums, countsTraffic, knowsSockets });
  }

  async #write(): Promise<void> {
    const { book } = this.#options;
    if (this.#generation === '') return;
    await makeFolder(dirname(this.#path), 0o700);
    await writeAtomically(this.#path, this.#text(this.#generation, [...book.mappings()], book.vips()));
  }

  async #isInKernel(generation: string): Promise<boolean> {
    const { table } = this.#options;
    for (const family of ['ip', 'ip6']) {
      const text = await this.#nft.ask(`list chains ${family}`);
      const at = text.indexOf(`table ${family} ${table} {`);
      if (at < 0 || !text.includes(`chain generation_${generation} {`, at)) return false;
    }
    return true;
  }

  /** Whether rules can look for the socket of a packet, for which the kernel needs a module. */
  async #findsSockets(): Promise<boolean> {
    const table = `${this.#options.table}_probe`;
    const chain = `add chain ip ${table} pre { type filter hook prerouting priority 0; }`;
    const rule = `add rule ip ${table} pre socket wildcard 0 accept`;
    const { exitCode } = await this.#nft.run('-c', `add table ip ${table}; ${chain}; ${rule}`);
    return exitCode === 0;
  }

  async #readCounts(): Promise<void> {
    const { table } = this.#options;
    const found = new Map<string, VipCounts>();
    for (const set of COUNTING)
      for (const family of ['ip', 'ip6']) {
        const words = ['list', 'set', family, table, set];
        const text = await this.#nft.run(...words).then(
          ({ stdout }) => stdout,
          () => '',
        );
        for (const [, vip = '', packets, bytes] of text.matchAll(COUNTED))
          found.set(vip, {
            ...(found.get(vip) ?? NO_COUNTS),
            [set]: { packets: Number(packets), bytes: Number(bytes) },
          });
      }
    for (const [vip, now] of found) {
      this.#sums.set(vip, added(this.#sums.get(vip) ?? NO_COUNTS, this.#last.get(vip) ?? NO_COUNTS, now));
      this.#last.set(vip, now);
    }
  }

  /** It is not known any more what the kernel has. */
  #lost(error: unknown): never {
    this.#generation = '';
    throw error;
  }
}

const COUNTED = /([0-9a-f.:]+) counter packets (\d+) bytes (\d+)/g;

/** Counters that are less than before have started again from 0. */
function added(sum: VipCounts, before: VipCounts, now: VipCounts): VipCounts {
  const plus = (of: keyof VipCounts): Count => {
    const from = now[of].packets < before[of].packets ? NOTHING : before[of];
    return {
      packets: sum[of].packets + now[of].packets - from.packets,
      bytes: sum[of].bytes + now[of].bytes - from.bytes,
    };
  };
  return { opened: plus('opened'), sent: plus('sent'), received: plus('received') };
}

function failed(message: string): HeadgateError {
  return new HeadgateError('NFT_FAILED', message, { retry: 'now' });
}

function firstLine(text: string): string {
  return (text.trim().split('\n')[0] ?? '').slice(0, 300);
}
