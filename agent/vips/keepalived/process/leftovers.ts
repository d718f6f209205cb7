// Removes addresses from the interfaces that this host must not answer for, because another host may have them: left by
// an ended keepalived, or put there by another process.

import { join } from 'node:path';
import { hostAddresses, isSingle, removeAddresses } from '../../host-addresses.ts';
import type { KeepalivedPaths } from '../paths.ts';
import type { InstanceDump } from './dump.ts';
import { findKeepalived } from './process.ts';

/**
 * Removes the addresses in `held`, unless keepalived runs again; the number that was removed. An address with the prefix
 * of a network was not put there by keepalived. Errors: COMMAND_FAILED, FILE_READ.
 */
export async function removeLeftovers(
  netns: string,
  held: ReadonlySet<string>,
  paths: KeepalivedPaths,
): Promise<number> {
  const all = await hostAddresses(netns);
  const stale = all.filter((each) => held.has(each.address) && isSingle(each));
  if (stale.length === 0 || (await findKeepalived(paths)) !== undefined) return 0;
  await removeAddresses(netns, stale, join(paths.directory, 'sweep'));
  return stale.length;
}

/** Removes the addresses of instances of which this host is backup; the number that was removed. Errors: COMMAND_FAILED. */
export async function removeForeign(
  netns: string,
  readDump: () => Promise<readonly InstanceDump[] | undefined>,
  paths: KeepalivedPaths,
): Promise<number> {
  const idle = idleIn(await readDump());
  if (idle.size === 0) return 0;
  const found = (await hostAddresses(netns)).filter((each) => idle.has(each.address) && isSingle(each));
  if (found.length === 0) return 0;
  // This host may have become master in the meantime.
  const stillIdle = idleIn(await readDump());
  const stale = found.filter(({ address }) => stillIdle.has(address));
  if (stale.length > 0) await removeAddresses(netns, stale, join(paths.directory, 'sweep'));
  return stale.length;
}

function idleIn(dump: readonly InstanceDump[] = []): ReadonlySet<string> {
  return new Set(dump.filter(({ state }) => state === 'backup').flatMap(({ addresses }) => [...addresses]));
}
