// What is checked before the first request: the connection and its TLS handshake. Pure.

import { quote } from '../../../base/quote.ts';
import type { Tls } from '../../../model/load-balancer.ts';
import type { HostPattern } from '../../../model/routes.ts';
import {
  asked,
  type CheckResult,
  CLOSED,
  limited,
  NO_HANDSHAKE,
  passed,
  refused,
  type Way,
} from './check.ts';
import { mostSpecific } from './hosts.ts';
import { rangesResult } from './ranges.ts';

export function connectionLimit({ listener, atEachHost }: Way): CheckResult | undefined {
  const { connectionLimit: most } = listener;
  return most === 0 ? undefined : limited(`${most} connections at once${atEachHost}`, 'further ones wait');
}

export function namespaceShare({ listener: { engine, labels } }: Way): CheckResult | undefined {
  if (engine === 'kernel') return undefined;
  return limited(`the connections that namespace ${quote(labels.namespace)} may have together`, CLOSED);
}

export function sourceRanges({ listener, client }: Way): CheckResult {
  const { allowedCidrs: allowed, family, engine } = listener;
  const lost = engine === 'kernel' ? 'packets are dropped' : CLOSED;
  return rangesResult({ allowed, denied: [] }, family, client, lost);
}

export function connectionRate({ listener: { rateLimit }, atEachHost }: Way): CheckResult | undefined {
  if (rateLimit === 0) return undefined;
  return limited(`${rateLimit} new connections a second from one address${atEachHost}`, CLOSED);
}

export function handshake({ listener: { tls } }: Way): CheckResult | undefined {
  return tls && limited(`TLS ${tls.minVersion} or later`, NO_HANDSHAKE);
}

export function clientCertificate({ listener: { tls }, serverName, client }: Way): CheckResult | undefined {
  const clients = tls && clientsOf(tls, serverName);
  if (clients === undefined) return undefined;
  const { verify, authority, crl } = clients;
  const condition = `with a certificate of ${authority.name}${crl === undefined ? '' : ' that is not revoked'}`;
  if (verify === 'ignored') return passed('with any certificate, or without');
  if (verify === 'optional') return passed(`${condition}, or without`);
  return client.hasCertificate ? passed(condition) : asked(condition, NO_HANDSHAKE);
}

/** Where the handshake has not asked for the certificate that the host's section needs. */
export function hostCertificate({
  listener: { tls, routing },
  serverName,
  request,
  client,
}: Way): CheckResult | undefined {
  const isCompared = tls !== undefined && routing?.kind === 'http' && routing.detectMisdirected;
  if (!isCompared || request?.hostname === undefined) return undefined;
  const needed = guardOf(tls, request.hostname);
  const given = clientsOf(tls, serverName);
  if (needed?.verify !== 'required' || given?.verify === 'required') return undefined;
  const condition = `with a certificate of ${needed.authority.name}`;
  const answer = 'status 403';
  if (given === undefined) return refused(`${condition}, which the handshake does not ask for`, answer);
  return client.hasCertificate ? passed(condition) : asked(condition, answer);
}

/** As the map of guarded sections has it. */
function guardOf({ clients, sections = [] }: Tls, { kind, suffix }: HostPattern): Tls['clients'] {
  const section = sections.find(({ hostname }) => hostname.kind === kind && hostname.suffix === suffix);
  return section === undefined && kind === 'any' ? clients : section?.clients;
}

/** As the list of certificates decides, in which a wildcard is one label. */
function clientsOf({ clients, sections = [] }: Tls, serverName: string): Tls['clients'] {
  if (serverName === '') return clients;
  const [section] = mostSpecific(sections, serverName, ({ hostname }) =>
    hostname.kind === 'labels' ? { ...hostname, kind: 'one-label' } : hostname,
  );
  return section === undefined ? clients : section.clients;
}
