// Checks what the rows of BGP require.

import { spawnSync } from 'node:child_process';

/** Errors: this machine cannot run them; the message names the remedy. */
export function demandBgp(): void {
  if (process.getuid?.() !== 0)
    throw new Error('Hosts that announce by BGP need network namespaces: run the benchmark as root');
  for (const program of ['bird', 'nft'])
    if (spawnSync(program, ['--version']).error !== undefined) throw new Error(`${program} is not installed`);
}
