// The program ip of one network namespace: shows what is there as JSON, and carries out lines, those of a family in one process.

import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';
import type { Family } from '../../model/load-balancer.ts';
import {
  type FoundNetwork,
  type Link,
  readAddresses,
  readLinks,
  readRoutes,
  readRules,
  readTraffic,
} from './found-network.ts';

const TIMEOUT_MS = 10_000;
const OPTIONS: Readonly<Record<Family, string>> = { v4: '-4', v6: '-6' };

export class IpProgram {
  readonly #netns: string;

  /** A name in /run/netns, '' for the agent's own namespace. */
  constructor(netns: string) {
    this.#netns = netns;
  }

  /** Errors: COMMAND_FAILED, as of all. */
  async links(): Promise<readonly Link[]> {
    return readLinks(await this.run('-json', 'link', 'show'));
  }

  async traffic(): Promise<ReadonlyMap<string, { readonly tx: number; readonly rx: number }>> {
    return readTraffic(await this.run('-json', '-statistics', 'link', 'show'));
  }

  async found(): Promise<FoundNetwork> {
    const families: readonly Family[] = ['v4', 'v6'];
    const routes = families.map(async (family) =>
      readRoutes(await this.run('-N', '-json', OPTIONS[family], 'route', 'show', 'table', 'all'), family),
    );
    const rules = families.map(async (family) =>
      readRules(await this.run('-N', '-json', '-details', OPTIONS[family], 'rule', 'show')),
    );
    return {
      links: await this.links(),
      addresses: readAddresses(await this.run('-json', 'address', 'show')),
      routes: (await Promise.all(routes)).flat(),
      rules: (await Promise.all(rules)).flat(),
    };
  }

  /** The standard output. Errors: COMMAND_FAILED with what ip says. */
  async run(...words: readonly string[]): Promise<string> {
    const [program, args] = inNamespace(this.#netns, 'ip', words);
    const { exitCode, stdout, stderr } = await runCommand(program, args, { timeout: TIMEOUT_MS });
    if (exitCode === 0) return stdout;
    throw new HeadgateError('COMMAND_FAILED', `Cannot run ip ${quote(words.join(' '))}: ${oneLine(stderr)}`);
  }

  /** Carries out all lines, also after one that fails; what ip says, '' if it has carried out all. Errors: COMMAND_FAILED. */
  async batch(family: Family, lines: readonly string[]): Promise<string> {
    if (lines.length === 0) return '';
    const [program, args] = inNamespace(this.#netns, 'ip', [OPTIONS[family], '-force', '-batch', '-']);
    const { exitCode, stderr } = await runCommand(program, args, {
      timeout: TIMEOUT_MS,
      input: lines.map((line) => `${line}\n`).join(''),
    });
    return exitCode === 0 ? '' : oneLine(stderr) || `exit status ${exitCode}`;
  }
}

function oneLine(text: string): string {
  return text
    .trim()
    .replaceAll(/\s*\n\s*/g, '; ')
    .slice(0, 500);
}
