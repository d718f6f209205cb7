// Reads all elements that the kernel has, by processes of nft: seconds for hundreds of thousands. Changes nothing.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { HeadgateError } from '../../base/errors.ts';
import { Lines } from '../../base/lines.ts';
import { inNamespace } from '../../host/namespace.ts';
import { addListed, type Digests } from '../rules/element-digests.ts';

export interface ReadElementsOptions {
  /** The program nft. */
  readonly nft: string;
  readonly netns: string;
  readonly table: string;
  /** As in nice(1). */
  readonly nice: number;
}

const TIMEOUT_MS = 300_000;
const MAX_LINE_BYTES = 64 * 1024;

/** The kernel itself adds its elements and removes them. */
const DYNAMIC = 'closed';

/** Errors: NFT_FAILED, also if `signal` ends it. */
export async function readElements(
  { nft, netns, table, nice }: ReadElementsOptions,
  signal: AbortSignal,
): Promise<Digests> {
  const digests: Digests = new Map();
  const lists: readonly (readonly [suffix: string, words: readonly string[]])[] = [
    ...['ip', 'ip6'].flatMap((family) =>
      ['', '_counts'].map((suffix) => [suffix, ['table', family, `${table}${suffix}`]] as const),
    ),
    // Not the memory of clients, which may be large.
    ['_affinity', ['map', 'ip', `${table}_affinity`, 'timeouts']],
  ];
  for (const [suffix, words] of lists) {
    const [program, args] = inNamespace(netns, 'nice', ['-n', `${nice}`, nft, '-n', 'list', ...words]);
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'], timeout: TIMEOUT_MS, signal });
    const ended = once(child, 'close').catch(() => [-1]);
    const list = new ListedElements((map, text) => {
      if (map !== DYNAMIC) addListed(digests, `${suffix} ${map}`, text);
    });
    const lines = new Lines(MAX_LINE_BYTES, failed);
    for await (const chunk of child.stdout) for (const line of lines.push(chunk)) list.read(line);
    const [status] = await ended;
    if (status !== 0) throw failed();
  }
  return digests;
}

/** Finds the elements in the lines of `nft list`. */
export class ListedElements {
  readonly #take: (map: string, text: string) => void;
  #map = '';
  #isInside = false;

  constructor(take: (map: string, text: string) => void) {
    this.#take = take;
  }

  read(line: string): void {
    const [, map] = /^\t(?:map|set) (\w+) \{$/.exec(line) ?? [];
    if (map !== undefined) this.#map = map;
    const begin = line.indexOf('elements = { ');
    if (begin >= 0) this.#isInside = true;
    if (!this.#isInside) return;
    if (line.endsWith(' }')) this.#isInside = false;
    const text = (begin < 0 ? line : line.slice(begin + 'elements = { '.length))
      .replace(/(?: \}|,)$/, '')
      .trim();
    for (const each of text.split(', '))
      this.#take(this.#map, each.replace(/ counter packets \d+ bytes \d+$/, ''));
  }
}

function failed(): HeadgateError {
  return new HeadgateError('NFT_FAILED', 'nft cannot list the elements of the rules', { retry: 'later' });
}
