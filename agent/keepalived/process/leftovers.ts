// Addresses that a keepalived which is gone has left on the interfaces: this host would go on answering for them while
// another one has them.

import { join } from 'node:path';
import type { KeepalivedPaths } from '../paths.ts';
import { hostAddresses, isSingle, removeAddresses } from '../vips/host-addresses.ts';
import { keepalivedPid } from './process.ts';

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
  if (stale.length === 0 || (await keepalivedPid(paths)) !== undefined) return 0;
  await removeAddresses(netns, stale, join(paths.directory, 'sweep'));
  return stale.length;
}
