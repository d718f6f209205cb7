// Lists and removes addresses of this host's interfaces.

import { unlink, writeFile } from 'node:fs/promises';
import { HeadgateError } from '../base/errors.ts';
import { parseAddress } from '../base/ip.ts';
import { boolean, listOf, number, object, string } from '../base/validate.ts';
import { inNamespace } from '../host/namespace.ts';
import { runCommand } from '../host/run-command.ts';
import { readSysctl } from '../host/sysctl.ts';

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

/** True if an interface of this host has the address. Errors: COMMAND_FAILED. */
export async function hasAddress(netns: string, address: string): Promise<boolean> {
  // An address of IPv6 that another host has as well does not work.
  const { exitCode, stdout, stderr } = await ip(netns, [
    '-o',
    'address',
    'show',
    '-dadfailed',
    'to',
    address,
  ]);
  if (exitCode !== 0)
    throw new HeadgateError('COMMAND_FAILED', `Cannot look for the address ${address}: ${stderr.trim()}`);
  return stdout !== '';
}

/** False if the kernel has no IPv6, or if it is off on the interface; an interface that is missing for a moment has it. */
export async function hasV6(netns: string, device: string): Promise<boolean> {
  const isOff = (of: string) => readSysctl(netns, ['net', 'ipv6', 'conf', of, 'disable_ipv6']);
  return (await isOff('all')) !== '' && (await isOff(device)) !== '1';
}

/** From `ip -j address show`, without the addresses on `lo` that a planned failover sets for a limited time. */
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

/** True if keepalived may have put the address there: its prefix covers the address alone. */
export function isSingle({ address, prefix }: HostAddress): boolean {
  return prefix === (address.includes(':') ? 128 : 32);
}

/**
 * Removes all in one command; an address that is gone already is no error. `scratch` is a file for the command's input,
 * removed afterwards. Errors: COMMAND_FAILED.
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
