// Which host of the setting `hosts` this one is, and whether the setting goes with the others.

import { hostname, networkInterfaces } from 'node:os';
import { HeadgateError } from '../base/errors.ts';
import { parseAddress } from '../base/ip.ts';
import type { HostGroup, LbHost } from '../model/host-group.ts';
import type { Settings } from './table.ts';

type Given = Pick<Settings, 'hosts' | 'announce' | 'pairAddress' | 'pairCredentials'>;

/** What this host is called, and has. */
export interface OwnNames {
  readonly hostname: string;
  /** Canonical. */
  readonly addresses: readonly string[];
}

/** undefined without the setting `hosts`. Errors: SETTINGS_INVALID. */
export function hostGroup(settings: Given, names: () => OwnNames = ownNames): HostGroup | undefined {
  const { hosts } = settings;
  if (hosts.length === 0) return undefined;
  const fault = faultOf(settings);
  const self = fault === '' ? selfIn(settings, names()) : fault;
  if (typeof self !== 'string') return { self, hosts };
  throw new HeadgateError('SETTINGS_INVALID', `Cannot use these settings:\n  ${self}`, { retry: 'never' });
}

/** The group of the settings in force; if a change has taken this host's address away, the last one. Errors: SETTINGS_INVALID. */
export function currentGroup(settings: () => Given): () => HostGroup | undefined {
  let read = settings();
  let group = hostGroup(read);
  return () => {
    const now = settings();
    if (now === read) return group;
    read = now;
    try {
      group = hostGroup(now);
    } catch {
      // It has been checked when the settings were read.
    }
    return group;
  };
}

function faultOf({ hosts, announce, pairCredentials }: Given): string {
  if (announce === 'vrrp')
    return 'hosts: does not go with announce "vrrp", whose hosts are a pair: leave it out, or set announce to "bgp"';
  if (hosts.length > 1 && pairCredentials === '')
    return `pairCredentials is missing: the ${hosts.length} hosts of "hosts" authenticate each other by it`;
  return '';
}

/** This host; a text says why it is none of them. */
function selfIn({ hosts, pairAddress }: Given, { hostname: name, addresses }: OwnNames): LbHost | string {
  const list = hosts.map((host) => `${host.name} (${host.address})`).join(', ');
  const named = hosts.find((host) => host.address === pairAddress);
  if (pairAddress !== '')
    return named ?? `pairAddress: "${pairAddress}" is not the address of a host of "hosts": ${list}`;
  const here = hosts.filter(({ address }) => addresses.includes(address));
  const [only] = here;
  if (only !== undefined && here.length === 1) return only;
  // The network may come up later than the agent.
  const called = (here.length === 0 ? hosts : here).find((host) => host.name === name.split('.')[0]);
  if (called !== undefined) return called;
  return here.length === 0
    ? `hosts: none of them is this host: it has none of their addresses, and its name is "${name}": ${list}`
    : `hosts: this host has the addresses of ${here.map((host) => host.name).join(' and ')}: set pairAddress to its own`;
}

function ownNames(): OwnNames {
  const addresses = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .map(({ address }) => parseAddress(address.replace(/%.*$/, ''))?.address ?? '');
  return { hostname: hostname(), addresses };
}
