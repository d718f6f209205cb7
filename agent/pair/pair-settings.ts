// Whether this host is one of a pair, by its settings, and by which addresses. Pure.

import { HeadgateError } from '../base/errors.ts';

export interface StandingSettings {
  /** Milliseconds that this host must be bad, or well, before it counts. */
  readonly pairLowerAfter: number;
  readonly pairRaiseAfter: number;
}

export interface PairSettings extends StandingSettings {
  readonly stateDir: string;
  /** This host's address and the peer's, by which the two agents talk. */
  readonly pairAddress: string;
  readonly pairPeer: string;
  readonly pairPort: number;
  /** The file. */
  readonly pairCredentials: string;
  /** Milliseconds. */
  readonly pairDrainTimeout: number;
}

export interface PairedBy extends PairSettings {
  readonly pairTablesPort: number;
  readonly vrrp: { readonly address: string; readonly peers: readonly string[] } | undefined;
  /** Where the VIPs are; '' for the agent's own. */
  readonly netns: string;
}

/** Addresses and a port by which the HAProxies of the two hosts talk. */
export interface TablesPlace {
  readonly address: string;
  readonly peerAddress: string;
  readonly port: number;
}

/**
 * undefined where there is no peer. The addresses are those of VRRP where no others are given and the agent can use
 * them. Errors: SETTINGS_INVALID that names each setting that is missing or at odds.
 */
export function pairSettings<T extends PairedBy>(settings: T): T | undefined {
  const { vrrp, netns, pairCredentials } = settings;
  const own = netns === '' ? vrrp : undefined;
  const pairAddress = settings.pairAddress || (pairCredentials && (own?.address ?? ''));
  const pairPeer =
    settings.pairPeer || (pairCredentials && own?.peers.length === 1 ? (own.peers[0] ?? '') : '');
  const faults = faultsOf({ pairAddress, pairPeer, pairCredentials });
  if (faults === undefined) return undefined;
  if (faults.length === 0) return { ...settings, pairAddress, pairPeer };
  const lines = faults.map((fault) => `  ${fault}`).join('\n');
  throw new HeadgateError('SETTINGS_INVALID', `Cannot use these settings:\n${lines}`, { retry: 'never' });
}

/** HAProxy in a network namespace of its own reaches the peer's by the addresses of VRRP, where there are any. */
export function tablesPlace(settings: PairedBy): TablesPlace | undefined {
  const { netns, vrrp, pairAddress, pairPeer, pairTablesPort: port } = settings;
  if (netns === '') return { address: pairAddress, peerAddress: pairPeer, port };
  const [peerAddress] = vrrp?.peers ?? [];
  if (vrrp === undefined || peerAddress === undefined) return undefined;
  return { address: vrrp.address, peerAddress, port };
}

function faultsOf(
  given: Pick<PairSettings, 'pairAddress' | 'pairPeer' | 'pairCredentials'>,
): readonly string[] | undefined {
  const { pairAddress, pairPeer } = given;
  const missing = Object.entries(given).filter(([, value]) => value === '');
  if (missing.length === 3) return undefined;
  if (missing.length > 0)
    return missing.map(([name]) => `${name} is missing: a pair needs ${Object.keys(given).join(', ')}`);
  if (pairPeer === pairAddress)
    return [`pairPeer: "${pairPeer}" is this host's own pairAddress, not its peer's`];
  if (pairPeer.includes(':') !== pairAddress.includes(':'))
    return [`pairPeer: "${pairPeer}" is not of the family of pairAddress "${pairAddress}"`];
  return [];
}
