// Asks direct members of IPv4 whether they have the VIPs, as a client would by way of this host (templates/nftables/loopback.pl).
// For `headgate check`, because the agent itself has no right to send such packets.

import { readFileSync } from 'node:fs';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';

export interface Pair {
  readonly member: string;
  readonly vip: string;
}

const PROGRAM = readFileSync(new URL('../../../templates/nftables/loopback.pl', import.meta.url), 'utf8');
const TIMEOUT_MS = 10_000;

/** By pair: whether it answers as the VIP; undefined if that is not known. Errors: COMMAND_FAILED. */
export async function answersAsVip(
  netns: string,
  pairs: readonly Pair[],
): Promise<readonly (boolean | undefined)[]> {
  const said = async (program: string, words: readonly string[], input?: string): Promise<string> => {
    const [outer, args] = inNamespace(netns, program, words);
    const { exitCode, stdout } = await runCommand(outer, args, {
      timeout: TIMEOUT_MS,
      ...(input !== undefined && { input }),
    });
    return exitCode === 0 ? stdout : '';
  };
  const ways = new Map<string, string | undefined>();
  for (const { member } of pairs) {
    if (ways.has(member)) continue;
    const [, device = '', from = ''] =
      / dev (\S+) .*?src (\S+)/.exec(await said('ip', ['-4', 'route', 'get', member])) ?? [];
    const index = device && /^(\d+): /.exec(await said('ip', ['-o', 'link', 'show', 'dev', device]))?.[1];
    const neighbour = device && (await said('ip', ['-4', 'neigh', 'show', 'to', member, 'dev', device]));
    const mac = neighbour && / lladdr (\S+)/.exec(neighbour)?.[1];
    ways.set(member, index && mac ? `${index} ${mac} ${from}` : undefined);
  }
  const asked = pairs.filter(({ member }) => ways.get(member) !== undefined);
  const lines = asked.map(({ member, vip }) => `${ways.get(member)} ${vip}\n`);
  const answers = asked.length === 0 ? '' : await said('perl', ['-e', PROGRAM], lines.join(''));
  const found = answers.split('\n');
  return pairs.map((pair) => {
    const answer = found[asked.indexOf(pair)];
    return answer === '1' || answer === '0' ? answer === '1' : undefined;
  });
}
