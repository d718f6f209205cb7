// Addresses on the interfaces that are none of this host's now, left by a keepalived which is gone or put there by
// somebody: this host would go on answering for them while another one has them.

import { join } from 'node:path';
import { hostAddresses, isSingle, removeAddresses } from '../../host-addresses.ts';
import type { KeepalivedPaths } from '../paths.ts';
import type { InstanceDump } from '../states/dump.ts';
import { findKeepalived } from './find-keepalived.ts';

/**
 * Takes away those of `held`, unless keepalived runs again, and gives how many they were. An address that is there with
 * the prefix of a network was not put there by keepalived. Errors: COMMAND_FAILED.
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

/**
 * Takes away those that go with an instance of which this host is backup, and gives how many they were. Errors:
 * COMMAND_FAILED.
 */
export async function removeIntruders(
  netns: string,
  ask: () => Promise<readonly InstanceDump[] | undefined>,
  paths: KeepalivedPaths,
): Promise<number> {
  const idle = idleIn(await ask());
  if (idle.size === 0) return 0;
  const found = (await hostAddresses(netns)).filter((each) => idle.has(each.address) && isSingle(each));
  if (found.length === 0) return 0;
  // It may have become master meanwhile.
  const still = idleIn(await ask());
  const stale = found.filter(({ address }) => still.has(address));
  if (stale.length > 0) await removeAddresses(netns, stale, join(paths.directory, 'sweep'));
  return stale.length;
}

function idleIn(dump: readonly InstanceDump[] = []): ReadonlySet<string> {
  return new Set(dump.filter(({ state }) => state === 'backup').flatMap(({ addresses }) => [...addresses]));
}
