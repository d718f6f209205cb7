// Which machines of a network answer for an address, by its Ethernet addresses. The kernel keeps the first answer to a question
// only, so rules of nftables note every one: of IPv4 in any ARP packet, of IPv6 in an advertisement of a neighbour. The
// questions are the kernel's own, which need no right besides CAP_NET_ADMIN. Errors of every method: COMMAND_FAILED.

import { unlink, writeFile } from 'node:fs/promises';
import { HeadgateError } from '../base/errors.ts';
import { parseAddress, parseCidrOrAddress } from '../base/ip.ts';
import { loadTemplate } from '../base/template.ts';
import { listOf, number, object, string } from '../base/validate.ts';
import { inNamespace } from '../host/namespace.ts';
import { runCommand } from '../host/run-command.ts';

export interface AnswerSettings {
  /** A network namespace by its name in /run/netns; '' for the agent's own. */
  readonly netns: string;
  readonly nft: string;
  /** The name of the tables, which only this agent uses. */
  readonly table: string;
  /** A folder for temporary files. */
  readonly scratch: string;
}

/** An Ethernet address that was seen with an IP address. */
export interface Answer {
  readonly address: string;
  readonly ether: string;
}

export interface OwnLink {
  /** The Ethernet addresses of all interfaces. */
  readonly ethers: ReadonlySet<string>;
  /** The networks that are reached directly by the interface, as CIDRs. */
  readonly networks: readonly string[];
}

/** How long an answer counts, in seconds; longer than the time until an address with a conflict is asked for again. */
export const ANSWER_MEMORY_S = 45;
/** The most for each family; more answers than these are not recorded. */
const MAX_ANSWERS = 16_384;
const COMMAND_TIMEOUT_MS = 10_000;

const FAMILIES = [
  {
    family: 'arp',
    type: 'ipv4_addr',
    match: 'arp saddr ip',
    address: 'arp saddr ip',
    ether: 'arp saddr ether',
  },
  {
    family: 'ip6',
    type: 'ipv6_addr',
    match: 'icmpv6 type nd-neighbor-advert ip6 saddr',
    address: 'ip6 saddr',
    ether: 'ether saddr',
  },
] as const;

const template = loadTemplate('vips/answers');

export class AddressAnswers {
  readonly #settings: AnswerSettings;

  constructor(settings: AnswerSettings) {
    this.#settings = settings;
  }

  /** Makes the tables without an address; replaces those of an earlier agent. */
  async make(device: string): Promise<void> {
    await this.#nft('rules', renderAnswers(this.#settings.table, device));
  }

  async remove(): Promise<void> {
    const { table } = this.#settings;
    await this.#nft(
      'end',
      FAMILIES.map(({ family }) => `table ${family} ${table}\ndelete table ${family} ${table}\n`).join(''),
    );
  }

  /** Begins and ends to note answers for these addresses. */
  async watch(added: readonly string[], removed: readonly string[]): Promise<void> {
    const text =
      elements('delete', this.#settings.table, removed) + elements('add', this.#settings.table, added);
    if (text !== '') await this.#nft('watch', text);
  }

  /**
   * Sends a question to all for each address. A neighbour that the kernel knows would be asked alone, and one that it does not
   * know cannot be deleted: that would end ip.
   */
  async ask(device: string, addresses: readonly string[]): Promise<void> {
    const lines = addresses.map((address) => {
      const question = `neigh replace ${address} dev ${device} use\n`;
      return `${question}neigh del ${address} dev ${device}\n${question}`;
    });
    await this.#withFile('ask', lines.join(''), (path) => this.#run('ip', ['-force', '-batch', path]));
  }

  /** What was noted within the last ANSWER_MEMORY_S. */
  async answers(): Promise<readonly Answer[]> {
    const texts: string[] = [];
    // nft 1.0.6 finds the tables of one family alone if it lists two in one run.
    for (const { family } of FAMILIES)
      texts.push(
        await this.#run(this.#settings.nft, ['-n', 'list', 'set', family, this.#settings.table, 'answers']),
      );
    return answersIn(texts.join('\n'));
  }

  /** The Ethernet address of a neighbour, '' if the kernel knows none: it then begins to ask for it. */
  async neighbour(device: string, address: string): Promise<string> {
    const known = parseNeighbour(
      await this.#run('ip', ['-j', 'neigh', 'show', 'to', address, 'dev', device]),
    );
    if (known === '') await this.#run('ip', ['neigh', 'replace', address, 'dev', device, 'use'], true);
    return known;
  }

  async link(device: string): Promise<OwnLink> {
    return parseOwnLink(await this.#run('ip', ['-j', 'address', 'show']), device);
  }

  #nft(name: string, text: string): Promise<string> {
    return this.#withFile(name, text, (path) => this.#run(this.#settings.nft, ['-f', path]));
  }

  /** `name`: another one for each use, because the end of the agent may come during a round. */
  async #withFile(name: string, text: string, use: (path: string) => Promise<string>): Promise<string> {
    const path = `${this.#settings.scratch}/answers-${name}`;
    await writeFile(path, text, { mode: 0o600 });
    return use(path).finally(() => unlink(path));
  }

  async #run(program: string, words: readonly string[], mayFail = false): Promise<string> {
    const [outer, args] = inNamespace(this.#settings.netns, program, words);
    const { exitCode, stdout, stderr } = await runCommand(outer, args, { timeout: COMMAND_TIMEOUT_MS });
    if (exitCode === 0 || mayFail) return stdout;
    const [why = ''] = stderr.trim().split('\n');
    throw new HeadgateError('COMMAND_FAILED', `Program "${program}" failed: ${why.slice(0, 200)}`);
  }
}

/** Replaces the tables if there are any. */
export function renderAnswers(table: string, device: string): string {
  const families = FAMILIES.map((each) => ({
    ...each,
    table,
    device,
    memory: ANSWER_MEMORY_S,
    most: MAX_ANSWERS,
  }));
  return template({ families });
}

function elements(verb: 'add' | 'delete', table: string, addresses: readonly string[]): string {
  return FAMILIES.map(({ family }) => {
    const own = addresses.filter((each) => each.includes(':') === (family === 'ip6'));
    return own.length === 0 ? '' : `${verb} element ${family} ${table} watched { ${own.join(', ')} }\n`;
  }).join('');
}

/** From `nft list set`. */
export function answersIn(text: string): readonly Answer[] {
  const found = text.matchAll(/([0-9a-f.:]+) \. ((?:[0-9a-f]{2}:){5}[0-9a-f]{2})\b/g);
  return Array.from(found, ([, address = '', ether = '']) => ({
    address: parseAddress(address)?.address ?? address,
    ether,
  }));
}

const shown = listOf(
  object({
    ifname: string().nullish(),
    address: string().nullish(),
    addr_info: listOf(object({ local: string().nullish(), prefixlen: number().nullish() })).nullish(),
  }),
);

const shownNeighbours = listOf(object({ lladdr: string().nullish() }));

/** From `ip -j neigh show to ADDRESS dev DEVICE`. */
export function parseNeighbour(json: string): string {
  const [first] = json.trim() === '' ? [] : shownNeighbours.parse(JSON.parse(json));
  return first?.lladdr?.toLowerCase() ?? '';
}

/** From `ip -j address show`. */
export function parseOwnLink(json: string, device: string): OwnLink {
  const links = shown.parse(JSON.parse(json));
  const ethers = new Set(links.map(({ address = '' }) => address.toLowerCase()));
  const own = links.find(({ ifname }) => ifname === device)?.addr_info ?? [];
  const networks = own
    .filter(({ local = '', prefixlen = 0 }) => prefixlen < (local.includes(':') ? 128 : 32))
    .flatMap(({ local = '', prefixlen = 0 }) => parseCidrOrAddress(`${local}/${prefixlen}`)?.cidr ?? []);
  return { ethers, networks };
}
