// Stick tables that the HAProxies of several hosts share: by TLS with certificates on both sides, because any sender could
// write to a table with the plain peers protocol.

import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { socketAddress } from '../../base/socket-address.ts';
import { KeptFile } from '../../host/kept-file.ts';

export interface TablesSettings {
  readonly address: string;
  /** The addresses of the other hosts. */
  readonly peers: readonly string[];
  /** Equal on all hosts. */
  readonly port: number;
}

export interface TablesCredentials {
  /** A private key and its certificate, PEM. */
  readonly identity: string;
  /** The trusted certificates, PEM. */
  readonly trusted: string;
  readonly fingerprint: string;
}

/** The values in haproxy.cfg. */
export interface SharedTables {
  /** HAProxy's name of this host, as the other hosts have it. */
  readonly ownName: string;
  readonly own: string;
  readonly peers: readonly { readonly name: string; readonly place: string }[];
  readonly identityFile: string;
  readonly trustedFile: string;
  /** Part of the structure, so that new credentials cause a reload. */
  readonly fingerprint: string;
}

/** The credentials are in the folder of `configFile`. */
export function sharedTables(
  { address, peers, port }: TablesSettings,
  fingerprint: string,
  configFile: string,
): SharedTables {
  const folder = dirname(configFile);
  return {
    ownName: `${address}:${port}`,
    own: socketAddress(address, port),
    // In one order, so that another order of the hosts is no reason for a reload.
    peers: peers.toSorted().map((each) => ({ name: `${each}:${port}`, place: socketAddress(each, port) })),
    identityFile: join(folder, 'pair.pem'),
    trustedFile: join(folder, 'pair-trusted.pem'),
    fingerprint,
  };
}

/** True if haproxy.cfg has these tables already. */
export async function isShared(configFile: string, { own }: SharedTables): Promise<boolean> {
  const text = await readFile(configFile, 'utf8').catch(() => '');
  return text.includes(`\n    bind ${own} ssl `);
}

/**
 * Copies of the validated credentials, because HAProxy refuses its whole configuration if the original becomes invalid. To
 * be written in this order.
 */
export function credentialFiles(
  { identityFile, trustedFile }: SharedTables,
  { identity, trusted }: TablesCredentials,
  mode: number,
): readonly KeptFile[] {
  return [new KeptFile(trustedFile, trusted, mode), new KeptFile(identityFile, identity, mode)];
}
