// Renders conntrackd.conf and the rules of nftables beside it. Pure, except that it reads the templates at start.
//
// The rules select the flows: conntrackd filters by the addresses of client and member, which no setting knows. So its file
// stays the same whatever VIPs and members come and go, and it never restarts for them.

import { loadTemplate } from '../../base/template.ts';
import { MARK_OFFSET } from '../rules/command-text.ts';
import type { ConntrackdPaths } from './paths.ts';
import type { SyncLink } from './sync-link.ts';

const templates = { config: loadTemplate('conntrackd/conntrackd'), rules: loadTemplate('conntrackd/rules') };

export function conntrackdText(
  link: SyncLink,
  { lock, socket }: Pick<ConntrackdPaths, 'lock' | 'socket'>,
): string {
  return templates.config({ ...link, lock, socket, family: isV6(link) ? 'IPv6' : 'IPv4' });
}

/** Replaces the table in one transaction. */
export function syncRulesText(link: SyncLink, { table }: Pick<ConntrackdPaths, 'table'>): string {
  const words = isV6(link) ? { ip: 'ip6', ttl: 'hoplimit' } : { ip: 'ip', ttl: 'ttl' };
  return templates.rules({ ...link, ...words, table, mark: `0x${MARK_OFFSET.toString(16)}` });
}

function isV6({ address }: SyncLink): boolean {
  return address.includes(':');
}
