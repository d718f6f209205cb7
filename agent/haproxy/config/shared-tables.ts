// Stick-tables that two HAProxies share, each on a host of its own: by TLS, both sides with a certificate, because the
// peers protocol itself is clear text that anybody could write into a table.

import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { KeptFile } from '../../host/kept-file.ts';
import { socketAddress } from './listener-config.ts';

export interface TablesSettings {
  readonly address: string;
  readonly peerAddress: string;
  /** The same on both hosts. */
  readonly port: number;
}

export interface TablesCredentials {
  /** A private key and its certificate, PEM. */
  readonly identity: string;
  /** The certificates that are trusted, PEM. */
  readonly trusted: string;
  readonly fingerprint: string;
}

/** As it stands in haproxy.cfg. */
export interface SharedTables {
  /** Names of the two peers: the same on both hosts, whichever of them renders. */
  readonly ownName: string;
  readonly peerName: string;
  readonly own: string;
  readonly peer: string;
  readonly identityFile: string;
  readonly trustedFile: string;
  /** Other credentials need a reload, as a changed line would. */
  readonly fingerprint: string;
}

/** `configFile`: beside it are the credentials. */
export function sharedTables(
  { address, peerAddress, port }: TablesSettings,
  fingerprint: string,
  configFile: string,
): SharedTables {
  const folder = dirname(configFile);
  return {
    ownName: `${address}:${port}`,
    peerName: `${peerAddress}:${port}`,
    own: socketAddress(address, port),
    peer: socketAddress(peerAddress, port),
    identityFile: join(folder, 'pair.pem'),
    trustedFile: join(folder, 'pair-trusted.pem'),
    fingerprint,
  };
}

/** Whether the file that HAProxy starts from has them already. */
export async function isShared(configFile: string, { own }: SharedTables): Promise<boolean> {
  const text = await readFile(configFile, 'utf8').catch(() => '');
  return text.includes(`\n    bind ${own} ssl `);
}

/**
 * HAProxy gets a copy that was found to be good: it would refuse the whole configuration because of a file that is
 * not, also where nobody has told the agent of a change. `mode` is that of the files, which are to be written in their
 * order.
 */
export function credentialFiles(
  { identityFile, trustedFile }: SharedTables,
  { identity, trusted }: TablesCredentials,
  mode: number,
): readonly KeptFile[] {
  return [new KeptFile(trustedFile, trusted, mode), new KeptFile(identityFile, identity, mode)];
}
