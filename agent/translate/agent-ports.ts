// Where the agents of this host and of its peer, and their daemons, listen for themselves, as far as the settings say: no member
// may be there. The same on both hosts of a pair with the same settings. Pure.

import type { Protocol } from '../model/load-balancer.ts';
import type { PortAddress } from '../model/port-owners.ts';

/** An address of a host, or `loopback` for all loopback addresses. */
export type AgentPort = PortAddress;

export const LOOPBACK = 'loopback';

export interface ListeningSettings {
  readonly listen: { readonly address: string; readonly port: number };
  readonly vrrp: { readonly address: string; readonly peers: readonly string[] } | undefined;
  readonly pairAddress: string;
  readonly pairPeer: string;
  readonly pairPort: number;
  readonly pairTablesPort: number;
  readonly connectionSync: boolean;
  readonly connectionSyncPort: number;
}

export function agentPorts(settings: ListeningSettings): readonly AgentPort[] {
  const { listen, vrrp, pairAddress, pairPeer } = settings;
  const named = [pairAddress, pairPeer, vrrp?.address ?? '', ...(vrrp?.peers ?? [])];
  const hosts = [...new Set(named.filter((each) => each !== ''))];
  const at = (addresses: readonly string[], port: number, protocol: Protocol = 'TCP'): readonly AgentPort[] =>
    addresses.map((address) => ({ address, protocol, port }));
  const isPlain = isLoopback(listen.address);
  return [
    // With port 0 the system chooses one.
    ...(listen.port === 0
      ? []
      : at(isPlain ? [LOOPBACK] : [LOOPBACK, listen.address, ...hosts], listen.port)),
    ...at(hosts, settings.pairPort),
    ...at(hosts, settings.pairTablesPort),
    ...(settings.connectionSync ? at(hosts, settings.connectionSyncPort, 'UDP') : []),
  ];
}

export function isOfAgent(ports: readonly AgentPort[], { address, protocol, port }: PortAddress): boolean {
  return ports.some(
    (each) =>
      each.port === port &&
      each.protocol === protocol &&
      (each.address === address || (each.address === LOOPBACK && isLoopback(address))),
  );
}

function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1';
}
