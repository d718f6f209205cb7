// What is checked of a client's certificate: in the TLS handshake, for the host of a request, and its names. Pure.

import { isMatch } from '../../../base/expression/expression.ts';
import { subjectExpression, subjectInRfc2253 } from '../../../base/expression/subject.ts';
import { quote } from '../../../base/quote.ts';
import { hasErrorPage } from '../../../model/client-guards.ts';
import type { Authority, Tls } from '../../../model/load-balancer.ts';
import type { HostPattern } from '../../../model/routes.ts';
import { asked, type CheckResult, NO_HANDSHAKE, passed, refused, type Way } from './check.ts';
import { mostSpecific } from './hosts.ts';

export function clientCertificate(way: Way): CheckResult | undefined {
  const { tls } = way.listener;
  const clients = askedOf(way);
  const given = way.client.certificates;
  if (clients === undefined)
    return tls && given && passed('none is asked for, so that the client sends none');
  const { verify, authority, crl, errorPage } = clients;
  const condition = `${ofAuthority(authority)}${crl === undefined ? '' : ' that is not revoked'}`;
  if (verify === 'ignored') return passed('with any certificate, or without');
  const fault = faultOf(way, clients);
  const answer = answerToWrong(way);
  if (fault !== '') return refused(`${condition}: the client's ${fault}`, answer);
  if (given !== undefined) return passed(condition);
  if (verify === 'optional') return passed(`${condition}, or without`);
  const absent = errorPage === undefined ? NO_HANDSHAKE : answer;
  return way.client.hasCertificate ? passed(condition) : asked(condition, absent);
}

/** What a client gets whose certificate is refused; '' if none is. */
export function answerToWrong(way: Pick<Way, 'listener' | 'serverName'>): string {
  const { tls } = way.listener;
  const clients = askedOf(way);
  if (tls === undefined || clients === undefined || clients.verify === 'ignored') return '';
  return hasErrorPage(tls) ? answerOf(clients) : NO_HANDSHAKE;
}

/** If handshakes continue with any certificate. */
function answerOf({ errorPage }: NonNullable<Tls['clients']>): string {
  return errorPage === undefined ? 'status 403' : `status 302 to ${errorPage}`;
}

/** Where the handshake has not asked for the certificate that the host's section needs. */
export function hostCertificate(way: Way): CheckResult | undefined {
  const { tls, routing } = way.listener;
  const { request, client } = way;
  const isCompared = tls !== undefined && routing?.kind === 'http' && routing.detectMisdirected;
  if (!isCompared || request?.hostname === undefined) return undefined;
  const needed = guardOf(tls, request.hostname);
  const given = askedOf(way);
  if (needed?.verify !== 'required' || given?.verify === 'required') return undefined;
  const condition = ofAuthority(needed.authority);
  const answer = answerOf(needed);
  if (given === undefined) return refused(`${condition}, which the handshake does not ask for`, answer);
  return client.hasCertificate || client.certificates !== undefined
    ? passed(condition)
    : asked(condition, answer);
}

function ofAuthority({ name, depth }: Authority): string {
  const most = depth === undefined ? '' : ` with at most ${depth} intermediate certificates`;
  return `with a certificate of ${name}${most}`;
}

export function certificateName(way: Way): CheckResult | undefined {
  const { listener, request, client } = way;
  const name = request?.rule?.certificateName;
  if (name === undefined) return undefined;
  const words = `with a certificate whose subject has ${quote(name)}`;
  const answer = 'status 403';
  const clients = askedOf(way);
  if (clients === undefined) {
    const what = listener.tls === undefined ? 'this port' : 'the handshake';
    return refused(`${words}, which ${what} does not ask for`, answer);
  }
  const [own] = client.certificates ?? [];
  if (own === undefined) return asked(words, answer);
  const fault = faultOf(way, clients);
  if (fault !== '') return refused(`${words}: the client's ${fault}`, answer);
  const subject = subjectInRfc2253(own.subject);
  if (subject === undefined) return asked(`${words}, which only HAProxy can tell`, answer);
  const isMet = isMatch(subjectExpression(name), 'start', subject);
  return isMet ? passed(words) : refused(`${words}: the client's has ${quote(subject)}`, answer);
}

/** '' if the client shows none, or one that is accepted. */
function faultOf({ client, proofs }: Way, clients: NonNullable<Tls['clients']>): string {
  const { certificates, now = 0 } = client;
  return certificates === undefined ? '' : proofs.certificateFault(clients, { certificates, now });
}

/** What the handshake asks for. */
export function askedOf({
  listener: { tls },
  serverName,
}: Pick<Way, 'listener' | 'serverName'>): Tls['clients'] {
  return tls && clientsOf(tls, serverName);
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
