// TLS of a listener in HAProxy's terms: the names of its files, and the words of its `bind` lines. Pure.
// Each listener has a crt-list, a file with the names of its certificate files, which commands can change at runtime.
// Why: docs/design/decisions/0076-no-sessions-where-certificates-count.md

import { createHash } from 'node:crypto';
import { memoByIdentity } from '../../base/memo.ts';
import { asksForCertificates, contentOf, guardedSections, hasErrorPage } from '../../model/client-guards.ts';
import type {
  Authority,
  Certificate,
  Crl,
  Listener,
  MemberTls,
  Pool,
  Tls,
  TlsSection,
  UserList,
} from '../../model/load-balancer.ts';
import type { HostPattern } from '../../model/routes.ts';

/** The file system allows 255 bytes. */
const MAX_NAME_CHARACTERS = 200;

/** `name`: of a certificate in the model. Without a colon, behind which HAProxy's `del ssl crt-list` expects a line number. */
export function certificateFile(folder: string, name: string): string {
  return `${folder}/${fileName(name.replace('/', '_'))}.pem`;
}

/** The name of the certificate in a file, in a list; empty if the name of the file does not show it. */
export function nameOfCertificate(file: string): readonly string[] {
  const [, namespace, name] = /(?:^|\/)([a-z0-9-]+)_([a-z0-9.-]+(?:\+[0-9a-f]+)?)\.pem$/.exec(file) ?? [];
  return namespace === undefined || name === undefined ? [] : [`${namespace}/${name}`];
}

/** Named by its content, because HAProxy before 3.2 can end when a list of authorities changes at runtime. */
export function authorityFile(folder: string, authority: Authority): string {
  const name = fileName(`ca_${authority.name.replace(/[ /]/g, '_')}`);
  return `${folder}/${name}_${contentOf(authority)}.crt`;
}

/** Named by its content, as the file of authorities. */
export function crlFile(folder: string, { name, fingerprint }: Crl): string {
  return `${folder}/${fileName(`crl_${name.replace(/[ /]/g, '_')}`)}_${fingerprint}.crl`;
}

/** Named by its content, as the file of authorities: HAProxy has its users in haproxy.cfg, the next agent reads this. */
export function usersFile(folder: string, { name, fingerprint }: UserList): string {
  return `${folder}/${fileName(`users_${name.replace(/[ /]/g, '_')}`)}_${fingerprint}.users`;
}

export function crtListFile(folder: string, listener: string): string {
  return `${folder}/${fileName(listener.replaceAll(':', '_'))}.list`;
}

/** A line of a crt-list. */
export interface CrtLine {
  /** Named after the line, because lines with other words have files of their own, which commands can tell apart. */
  readonly certificate: Certificate;
  /** undefined: as in the `bind` line; `none`: clients need no certificate, though others of the listener do. */
  readonly clients: Tls['clients'] | 'none';
  /** The names for which clients get it; '' for those in the certificate, `!*` for names that no other line has. */
  readonly filter: string;
}

/** The lines of a listener, the default one first. */
export const crtLines = memoByIdentity(
  ({ certificates, clients, sections = [] }: Tls): readonly CrtLine[] => {
    if (sections.length === 0)
      return certificates.map((certificate) => ({ certificate, clients: undefined, filter: '' }));
    const lines = [...named(certificates.slice(0, 1), undefined, '!*')];
    // HAProxy takes the first of several lines that have a name.
    for (const section of [...sections].sort((x, y) => rank(y.hostname) - rank(x.hostname)))
      lines.push(...named(section.certificates, section.clients ?? (clients && 'none'), filterOf(section)));
    return lines;
  },
);

/** With a certificate of its own a section has it for all of its names; of several each has the names that it is made for. */
function filterOf({ hostname: { kind, suffix }, certificates }: TlsSection): string {
  if (certificates.length > 1 || kind === 'any') return '';
  return kind === 'exact' ? suffix : `*.${suffix}`;
}

function rank({ kind, suffix }: HostPattern): number {
  return kind === 'any' ? 0 : suffix.length * 2 + (kind === 'exact' ? 1 : 0);
}

/** The last line of each: of a list in which one of thousands is renewed, all others are the same values. */
const namedLines = new WeakMap<Certificate, { readonly mark: string; readonly line: CrtLine }>();

function named(
  certificates: readonly Certificate[],
  clients: CrtLine['clients'],
  filter: string,
): readonly CrtLine[] {
  const mark = createHash('sha256')
    .update(JSON.stringify([clients, filter]))
    .digest('hex')
    .slice(0, 16);
  return certificates.map((certificate) => {
    const known = namedLines.get(certificate);
    if (known?.mark === mark) return known.line;
    const line = { certificate: { ...certificate, name: `${certificate.name}+${mark}` }, clients, filter };
    namedLines.set(certificate, { mark, line });
    return line;
  });
}

/** The certificates of all lines. */
export const certificatesOf = memoByIdentity((tls: Tls): readonly Certificate[] =>
  crtLines(tls).map(({ certificate }) => certificate),
);

/** The Secret of a line's certificate. */
export function secretOf(name: string): string {
  return name.split('+', 1)[0] ?? name;
}

/** The words of a line: its file, options and filter. */
export function crtLineText(folder: string, { certificate, clients, filter }: CrtLine): string {
  const words = [certificateFile(folder, certificate.name)];
  if (clients === 'none') words.push('[verify none]');
  else if (clients !== undefined) words.push(`[${clientWords(folder, clients).join(' ')}]`);
  if (filter !== '') words.push(filter);
  return words.join(' ');
}

/** For the `bind` line or a line of its crt-list. */
function clientWords(
  folder: string,
  { verify, authority, crl, errorPage }: NonNullable<Tls['clients']>,
): readonly string[] {
  const words = ['ca-file', authorityFile(folder, authority)];
  if (crl !== undefined) words.push('crl-file', crlFile(folder, crl));
  const isOptional = verify === 'ignored' || errorPage !== undefined;
  return [...words, 'verify', isOptional ? 'optional' : verify];
}

export function crtListText(folder: string, tls: Tls): string {
  return crtLines(tls)
    .map((line) => `${crtLineText(folder, line)}\n`)
    .join('');
}

/** The authorities of clients. */
export function clientAuthorities({ clients, sections = [] }: Tls): readonly Authority[] {
  return [clients, ...sections.map((each) => each.clients)].flatMap((each) => each?.authority ?? []);
}

/** The revocation lists of clients. */
export function clientCrls({ clients, sections = [] }: Tls): readonly Crl[] {
  return [clients, ...sections.map((each) => each.clients)].flatMap((each) => each?.crl ?? []);
}

/** With a blank before each word; '' without TLS. */
export function bindWords(folder: string, { name, tls }: Pick<Listener, 'name' | 'tls'>): string {
  if (tls === undefined) return '';
  const words = ['ssl', 'crt-list', crtListFile(folder, name), 'ssl-min-ver', `TLSv${tls.minVersion}`];
  words.push(...cipherWords(tls.ciphers));
  if (tls.clients !== undefined) words.push(...clientWords(folder, tls.clients));
  // With it the rules of routes refuse what is wrong.
  if (tls.clients?.verify === 'ignored' || hasErrorPage(tls))
    words.push('crt-ignore-err', 'all', 'ca-ignore-err', 'all');
  if (tls.alpn.length > 0) words.push('alpn', tls.alpn.join(','));
  // A ticket of one line of the crt-list would count at all others, whatever authority they ask for.
  if (asksForCertificates(tls)) words.push('no-tls-tickets');
  return words.map((word) => ` ${word}`).join('');
}

function cipherWords(ciphers: readonly string[]): readonly string[] {
  const suites = ciphers.filter(isOfTls13);
  const older = ciphers.filter((cipher) => !isOfTls13(cipher));
  return [
    ...(older.length > 0 ? ['ciphers', older.join(':')] : []),
    ...(suites.length > 0 ? ['ciphersuites', suites.join(':')] : []),
  ];
}

/** All of TLS that only a reload can change: the other certificates are lines of the crt-list. */
export function tlsStructure({ tls }: Pick<Listener, 'tls'>): unknown {
  if (tls === undefined) return null;
  const [byDefault] = certificatesOf(tls);
  // A worker has the authorities and revocation lists with which it booted.
  const others = (tls.sections ?? []).flatMap(({ clients }) =>
    [clients?.authority, clients?.crl].flatMap((each) => (each === undefined ? [] : contentOf(each))),
  );
  return [
    byDefault?.name,
    tls.minVersion,
    tls.ciphers,
    tls.clients ?? null,
    tls.alpn,
    ...(hasErrorPage(tls) ? ['error page'] : []),
    ...new Set(others.sort()),
    // With the next worker their rows come, because only that one surely asks for certificates there.
    ...guardedSections(tls),
  ];
}

/** The words of a server for TLS to it, without those of its health check. */
export function memberTlsWords(
  folder: string,
  { authority, serverName, certificate, versions, ciphers = [] }: MemberTls,
): readonly string[] {
  const words = ['ssl'];
  if (authority === undefined) words.push('verify', 'none');
  else
    words.push('verify', 'required', 'ca-file', authorityFile(folder, authority), 'verifyhost', serverName);
  if (versions !== undefined)
    words.push('ssl-min-ver', `TLSv${versions.min}`, 'ssl-max-ver', `TLSv${versions.max}`);
  words.push(...cipherWords(ciphers));
  if (certificate !== undefined) words.push('crt', certificateFile(folder, certificate.name));
  // Without it HAProxy 3.3 and newer would ask for the name in the request.
  if (serverName !== '') words.push('sni', `str(${serverName})`);
  return words;
}

/** All of TLS to members that only a reload can change: commands change the content of the certificate. */
export function memberTlsStructure({ tls }: Pool): unknown {
  if (tls?.certificate === undefined) return tls ?? null;
  return { ...tls, certificate: tls.certificate.name };
}

/** The certificates for its clients and the one for its members. */
export function allCertificates({ tls, pool }: Pick<Listener, 'tls' | 'pool'>): readonly Certificate[] {
  const ofMembers = pool.tls?.certificate;
  const ofClients = tls === undefined ? [] : certificatesOf(tls);
  return ofMembers === undefined ? ofClients : [...ofClients, ofMembers];
}

/** The file with the authorities of members, which a server that is added at runtime can use only if the file has it before. */
export function memberAuthority(folder: string, { tls }: Pool): string {
  return tls?.authority === undefined ? '' : authorityFile(folder, tls.authority);
}

function isOfTls13(cipher: string): boolean {
  return cipher.startsWith('TLS_');
}

/** A hash for a text that is too long for the name of a file. */
export function fileName(text: string): string {
  return text.length <= MAX_NAME_CHARACTERS ? text : createHash('sha256').update(text).digest('hex');
}
