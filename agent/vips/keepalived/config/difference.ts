// What keepalived has other than its file says. Pure.

import type { InstanceDump } from '../states/dump.ts';
import { instancesIn } from './config-text.ts';

/** Between what keepalived tells and a text of ours, as half a sentence; '' where there is nothing. */
export function differenceOf(dump: readonly InstanceDump[], text: string): string {
  const wanted = instancesIn(text);
  if (dump.length !== wanted.size) return `it has ${dump.length} instances instead of ${wanted.size}`;
  for (const [name, { priority, advertInterval, addresses }] of wanted) {
    const running = dump.find((each) => each.name === name);
    if (running === undefined) return `it has no instance ${name}`;
    if (running.basePriority !== priority || running.advertInterval !== advertInterval)
      return `${name} has another priority or interval`;
    const missing = [...addresses].filter((each) => !running.addresses.has(each));
    if (missing.length > 0) return `${name} lacks ${missing.length} addresses, ${missing[0]} for one`;
    const excess = running.addresses.size - addresses.size;
    if (excess > 0) return `${name} has ${excess} addresses too many`;
    const unset = running.state === 'master' ? addresses.size - running.set.size : 0;
    if (unset > 0) return `${unset} addresses of ${name} are not on the interface`;
  }
  return '';
}
