// The nft of the tests of the kernel path. `NFT` names the executable, because test/support/haproxy/debian-matrix.sh has other
// versions than the installed one.

import { until } from '../basics/until.ts';
import type { TestNetwork } from './namespaces.ts';

export const nftExecutable = process.env.NFT ?? 'nft';

/** Flags for an agent that uses this nft. */
export const nftFlags: readonly string[] = ['--nft', nftExecutable];

/** One for changes and reads, and one that holds flows while the rules are away. */
const LONG_LIVED = 2;

/** Waits for all long-lived nft on the host `a`, and sends them the signal. */
export async function signalNft(network: TestNetwork, signal: 'KILL' | 'STOP'): Promise<void> {
  const pids = `for p in $(ip netns pids ${network.netns('a')}); do tr '\\0' ' ' < /proc/$p/cmdline | grep -q 'nft -i $' && echo $p; done`;
  let found: readonly string[] = [];
  await until('nft runs', async () => {
    const { stdout } = await network.try('a', 'sh', '-c', pids);
    found = stdout.split('\n').filter((line) => line !== '');
    return found.length === LONG_LIVED;
  });
  for (const pid of found) process.kill(Number(pid), `SIG${signal}`);
}
