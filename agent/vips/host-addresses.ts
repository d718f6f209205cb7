// The addresses that this host has on its interfaces, and the removal of those that a keepalived has left there.

import { unlink, writeFile } from 'node:fs/promises';
import { HeadgateError } from '../base/errors.ts';
import { parseAddress } from '../base/ip.ts';
import { boolean, listOf, number, object, string } from '../base/validate.ts';
import { inNamespace } from '../host/namespace.ts';
import { runCommand } from '../host/run-command.ts';

export interface HostAddress {
  /** Canonical. */
  readonly address: string;
  readonly prefix: number;
  readonly interface: string;
}

const shown = listOf(
  object({
    ifname: string().nullish(),
    addr_info: listOf(
      object({ local: string().nullish(), prefixlen: number().nullish(), dynamic: boolean().nullish() }),
    ).nullish(),
  }),
);

/** Errors: COMMAND_FAILED. */
export async function hostAddresses(netns: string): Promise<readonly HostAddress[]> {
  const { exitCode, stdout, stderr } = await ip(netns, ['-j', 'address', 'show']);
  if (exitCode !== 0)
    throw new HeadgateError('COMMAND_FAILED', `Cannot list this host's addresses: ${stderr.trim()}`);
  return parseAddresses(stdout);
}

/** From `ip -j address show`, without what a planned failover has lent this host for a while. */
export function parseAddresses(json: string): readonly HostAddress[] {
  const found: HostAddress[] = [];
  for (const { ifname = '', addr_info = [] } of shown.parse(JSON.parse(json))) {
    for (const { local = '', prefixlen = 0, dynamic = false } of addr_info) {
      if (ifname === 'lo' && dynamic) continue;
      const address = parseAddress(local)?.address;
      if (address !== undefined) found.push({ address, prefix: prefixlen, interface: ifname });
    }
  }
  return found;
}

/** Whether it is one that keepalived may have put there: nothing but the address itself. */
export function isSingle({ address, prefix }: HostAddress): boolean {
  return prefix === (address.includes(':') ? 128 : 32);
}

/**
 * Takes them away, all in one go; one that is gone already is no fault. `scratch` is a file that is written for it.
 * Errors: COMMAND_FAILED.
 */
export async function removeAddresses(
  netns: string,
  addresses: readonly HostAddress[],
  scratch: string,
): Promise<void> {
  const lines = addresses.map((each) => `address del ${each.address}/${each.prefix} dev ${each.interface}\n`);
  await writeFile(scratch, lines.join(''), { mode: 0o600 });
  await ip(netns, ['-force', '-batch', scratch]).finally(() => unlink(scratch));
}

function ip(netns: string, words: readonly string[]) {
  const [program, args] = inNamespace(netns, 'ip', words);
  return runCommand(program, args, { timeout: 10_000 });
}
