// What HAProxy is to find in its environment at its start; its unit of systemd says the same. Looks at the devices of
// this host.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The devices by which the host of a virtual machine gets memory back. */
const BALLOONS = '/sys/bus/virtio/drivers/virtio_balloon';
/** The bit of such a device's features by which the kernel gives back all that is free, VIRTIO_BALLOON_F_REPORTING. */
const REPORTING = 5;

/**
 * HAPROXY_MWORKER: 2.6 sets it itself, but only after it has read the file, in which the start script depends on it.
 * GLIBC_TUNABLES: with huge pages, in a heap that grows by enough to hold some, 10,000 members take a fifth less
 * processor time to read, and a master forks its worker in a quarter of the time. Not where free memory is given back to
 * the host: each huge page has to be got from there first, which takes longer than all the small ones in its place
 * (docs/design/haproxy-versions.md).
 */
export function haproxyVariables(balloons = BALLOONS): Readonly<Record<string, string>> {
  const own = { HAPROXY_MWORKER: '1' };
  if (givesBack(balloons)) return own;
  return { ...own, GLIBC_TUNABLES: `glibc.malloc.hugetlb=1:glibc.malloc.top_pad=${64 * 1024 * 1024}` };
}

function givesBack(balloons: string): boolean {
  try {
    const devices = readdirSync(balloons).filter((name) => name.startsWith('virtio'));
    return devices.some(
      (name) => readFileSync(join(balloons, name, 'features'), 'latin1')[REPORTING] === '1',
    );
  } catch {
    // There is none, or nobody may look.
    return false;
  }
}
