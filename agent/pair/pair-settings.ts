// The settings of a pair: whether this host has a peer, and the addresses of both. Pure.

import { HeadgateError } from '../base/errors.ts';
import type { HostGroup, LbHost } from '../model/host-group.ts';

export interface StandingSettings {
  /** Milliseconds that a fault of HAProxy must last before it counts, and be gone before it counts no more. */
  readonly pairLowerAfter: number;
  readonly pairRaiseAfter: number;
}

export interface PairSettings extends StandingSettings {
  readonly stateDir: string;
  /** This host's address and the peer's, between which the agents connect. */
  readonly pairAddress: string;
  readonly pairPeer: string;
  readonly pairPort: number;
  /** Path of a file. */
  readonly pairCredentials: string;
  /** Milliseconds. */
  readonly pairDrainTimeout: number;
  readonly pairTablesPort: number;
  readonly vrrp: { readonly address: string; readonly peers: readonly string[] } | undefined;
  /** The network namespace of the VIPs; '' for the agent's own. */
  readonly netns: string;
  /** Hosts with this list are no pair. */
  readonly hosts: readonly unknown[];
}

/** The addresses and the port between which the HAProxies of the hosts connect. */
export interface TablesAddresses {
  readonly address: string;
  /** The addresses of the other hosts. */
  readonly peers: readonly string[];
  readonly port: number;
}

/**
 * undefined without a peer. The addresses default to those of VRRP if the agent can use them. Errors: SETTINGS_INVALID
 * that names each setting that is missing or contradicts another.
 */
export function pairSettings<T extends PairSettings>(settings: T): T | undefined {
  const { vrrp, netns, pairCredentials, hosts } = settings;
  if (hosts.length > 0) return undefined;
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

/** In a network namespace of its own, HAProxy reaches the peer's only at the addresses of VRRP. */
export function tablesAddresses(settings: PairSettings): TablesAddresses | undefined {
  const { netns, vrrp, pairAddress, pairPeer, pairTablesPort: port } = settings;
  if (netns === '') return { address: pairAddress, peers: [pairPeer], port };
  const [peerAddress] = vrrp?.peers ?? [];
  if (vrrp === undefined || peerAddress === undefined) return undefined;
  return { address: vrrp.address, peers: [peerAddress], port };
}

/**
 * As tablesAddresses(), of the setting `hosts`. In a network namespace of its own, HAProxy reaches the others only at the back
 * addresses.
 */
export function tablesOfGroup(
  { netns, pairTablesPort: port }: Pick<PairSettings, 'netns' | 'pairTablesPort'>,
  { self, hosts }: HostGroup,
): TablesAddresses | undefined {
  const placeOf = ({ address, back }: LbHost): string => (netns === '' ? address : (back[0] ?? ''));
  const peers = hosts.filter(({ name }) => name !== self.name).map(placeOf);
  const all = [placeOf(self), ...peers];
  return peers.length === 0 || all.includes('') ? undefined : { address: placeOf(self), peers, port };
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
