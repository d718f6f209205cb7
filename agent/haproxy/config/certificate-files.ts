// The certificates and crt-lists of one HAProxy's listeners, the certificates for members, and the users of routes, in a folder of the runtime
// directory, which is in memory, so that no key reaches a disk. Files are written before HAProxy reads them or gets their content
// by commands.
// Owns the files, and remembers the certificates that HAProxy has refused.
// Why: docs/design/decisions/0043-certificates.md

import { FileSet, type NamedText } from '../../host/file-set.ts';
import { contentOf } from '../../model/client-guards.ts';
import type {
  Authority,
  Certificate,
  Listener,
  LoadBalancer,
  Problem,
  Tls,
  UserList,
} from '../../model/load-balancer.ts';
import { objectOf } from '../../model/names.ts';
import { hasSection, isForHaproxy } from './listener-config.ts';
import type { PagesText } from './page-files.ts';
import {
  allCertificates,
  authorityFile,
  certificateFile,
  clientAuthorities,
  clientCrls,
  crlFile,
  crtListFile,
  crtListText,
  secretOf,
  usersFile,
} from './tls-config.ts';
import { NO_USERS, type UsersText } from './user-lists.ts';

/** PEM texts by name and fingerprint; undefined if one is no longer known. */
export interface PemTexts {
  readonly certificate: (name: string, fingerprint: string) => string | undefined;
  readonly authority: (name: string, fingerprint: string, depth?: number) => string | undefined;
  readonly crl: (name: string, fingerprint: string) => string | undefined;
  readonly users?: UsersText;
  readonly pages?: PagesText;
}

export interface CertificateFilesOptions {
  readonly folder: string;
  readonly fileMode: number;
  readonly folderMode: number;
  readonly pems: PemTexts;
}

export class CertificateFiles {
  readonly #options: CertificateFilesOptions;
  readonly #files: FileSet;
  /** Key: a fingerprint; value: HAProxy's reply. */
  readonly #refused = new Map<string, string>();

  constructor(options: CertificateFilesOptions) {
    this.#options = options;
    this.#files = new FileSet({ ...options, isInMemory: true });
  }

  /** Brings the files of these load balancers to their present content. Errors: FILE_WRITE. */
  write(loadBalancers: Iterable<LoadBalancer>): Promise<void> {
    return this.#files.write(this.#textsOf([...loadBalancers]));
  }

  /** Writes files again that another process has removed. Errors: FILE_WRITE. */
  keep(): Promise<void> {
    return this.#files.keep();
  }

  /** Removes the files that none of these load balancers has, also those of an earlier agent. */
  keepOnly(loadBalancers: Iterable<LoadBalancer>): Promise<void> {
    const used = Array.from(this.#textsOf([...loadBalancers]), ({ path }) => path);
    return this.#files.keepOnly(new Set(used));
  }

  /** HAProxy refuses the certificate: the file gets the content back that its worker has. Errors: FILE_WRITE. */
  async refuse(
    { name, fingerprint }: Certificate,
    reply: string,
    served: Certificate | undefined,
  ): Promise<void> {
    this.#refused.set(fingerprint, reply);
    if (served?.name === name) await this.#files.write([this.#certificate(served)]);
  }

  readonly isRefused = ({ fingerprint }: Certificate): boolean => this.#refused.has(fingerprint);

  problemsOf({ key, listeners }: LoadBalancer): readonly Problem[] {
    if (this.#refused.size === 0) return [];
    return listeners.filter(hasSection).flatMap((listener) => {
      const { protocol, port } = listener;
      return allCertificates(listener)
        .filter(this.isRefused)
        .map(({ name, fingerprint }): Problem => {
          const why = this.#refused.get(fingerprint);
          const message = `HAProxy refuses the certificate in Secret "${secretOf(name)}", and uses the one before: ${why}`;
          return { object: objectOf(key), reason: 'InvalidCertificate', message, port: { protocol, port } };
        });
    });
  }

  *#textsOf(loadBalancers: readonly LoadBalancer[]): Generator<NamedText, void, void> {
    const { folder, pems } = this.#options;
    for (const authority of authoritiesOf(loadBalancers))
      yield {
        path: authorityFile(folder, authority),
        id: contentOf(authority),
        text: () => pems.authority(authority.name, authority.fingerprint, authority.depth),
      };
    for (const list of userListsOf(loadBalancers))
      yield {
        path: usersFile(folder, list),
        id: list.fingerprint,
        text: () => (pems.users ?? NO_USERS)(list.name, list.fingerprint),
      };
    for (const certificate of certificatesIn(loadBalancers)) yield this.#certificate(certificate);
    for (const { name, tls } of tlsListeners(loadBalancers)) {
      for (const crl of clientCrls(tls))
        yield {
          path: crlFile(folder, crl),
          id: crl.fingerprint,
          text: () => pems.crl(crl.name, crl.fingerprint),
        };
      const text = crtListText(folder, tls);
      yield { path: crtListFile(folder, name), id: text, text: () => text };
    }
  }

  /** The file of a refused certificate keeps its content. */
  #certificate(certificate: Certificate): NamedText {
    const { folder, pems } = this.#options;
    const { name, fingerprint } = certificate;
    return {
      path: certificateFile(folder, name),
      id: fingerprint,
      text: () => (this.isRefused(certificate) ? undefined : pems.certificate(secretOf(name), fingerprint)),
    };
  }
}

export type TlsListener = Listener & { readonly tls: Tls };

/** The listeners of HAProxy that end TLS. */
export function* tlsListeners(
  loadBalancers: Iterable<Pick<LoadBalancer, 'listeners'>>,
): Generator<TlsListener, void, void> {
  for (const { listeners } of loadBalancers)
    for (const listener of listeners) if (isTlsListener(listener)) yield listener;
}

/** The certificates of listeners and of members. */
export function certificatesIn(
  loadBalancers: readonly Pick<LoadBalancer, 'listeners'>[],
): readonly Certificate[] {
  return loadBalancers.flatMap(({ listeners }) => listeners.filter(hasSection).flatMap(allCertificates));
}

/** The authorities of clients and of members. */
function authoritiesOf(loadBalancers: readonly LoadBalancer[]): readonly Authority[] {
  return loadBalancers
    .flatMap(({ listeners }) => listeners.filter(hasSection))
    .flatMap(({ tls, pool }) => [
      ...(tls === undefined ? [] : clientAuthorities(tls).flatMap(withSource)),
      ...(pool.tls?.authority === undefined ? [] : withSource(pool.tls.authority)),
    ]);
}

/** The next agent reads the list as it is in its object. */
function withSource(authority: Authority): readonly Authority[] {
  const { depth, ...source } = authority;
  return depth === undefined ? [authority] : [source, authority];
}

function userListsOf(loadBalancers: readonly LoadBalancer[]): readonly UserList[] {
  return loadBalancers.flatMap(({ listeners }) => listeners.flatMap(({ userLists = [] }) => userLists));
}

function isTlsListener(listener: Listener): listener is TlsListener {
  return listener.tls !== undefined && isForHaproxy(listener);
}
