// The certificates and crt-lists of one HAProxy's listeners, the certificates for members, and the users of routes, in a folder of the runtime
// directory, which is in memory, so that no key reaches a disk. Files are written before HAProxy reads them or gets their content
// by commands.
// Owns the files, and the memory of certificates that HAProxy has refused.
// Why: docs/design/decisions/0043-certificates.md

import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { serial } from '../../base/serial.ts';
import { Slice } from '../../base/slice.ts';
import { replaceInMemory } from '../../host/atomic-file.ts';
import { type FileIdentity, identityOf, isSameFile } from '../../host/file-identity.ts';
import { makeFolder } from '../../host/make-directory.ts';
import type {
  Authority,
  Certificate,
  Crl,
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
  readonly authority: (name: string, fingerprint: string) => string | undefined;
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

interface Content {
  /** Equal ids have equal texts. */
  readonly id: string;
  readonly text: string;
}

export class CertificateFiles {
  readonly #options: CertificateFilesOptions;
  readonly #writes = serial();
  /** By path: the present content. */
  readonly #files = new Map<string, Content>();
  /** By name of a certificate: the fingerprint in its file, as far as it is certain. */
  readonly #written = new Map<string, string>();
  /** Of the folder after the last write: another one shows that another process has added or removed files. */
  #folder: FileIdentity | undefined;
  /** Fingerprint to HAProxy's reply. */
  readonly #refused = new Map<string, string>();

  constructor(options: CertificateFilesOptions) {
    this.#options = options;
  }

  /** Brings the files of these load balancers to their present content. Errors: FILE_WRITE. */
  write(loadBalancers: Iterable<LoadBalancer>): Promise<void> {
    const { folder, folderMode, pems } = this.#options;
    const some = [...loadBalancers];
    const listeners = [...tlsListeners(some)];
    const certificates = certificatesIn(some);
    const authorities = authoritiesOf(some);
    const lists = userListsOf(some);
    return this.#change(async () => {
      const slice = new Slice();
      if (certificates.length + authorities.length + lists.length > 0) await makeFolder(folder, folderMode);
      for (const each of authorities) this.#writeList(authorityFile(folder, each), each, pems.authority);
      for (const each of lists) this.#writeList(usersFile(folder, each), each, pems.users ?? NO_USERS);
      for (const certificate of certificates) {
        this.#writeCertificate(certificate);
        if (slice.isOver) await slice.breathe();
      }
      for (const { name, tls } of listeners) {
        for (const crl of clientCrls(tls)) this.#writeList(crlFile(folder, crl), crl, pems.crl);
        const text = crtListText(folder, tls);
        this.#write(crtListFile(folder, name), { id: text, text });
        if (slice.isOver) await slice.breathe();
      }
    });
  }

  /** Writes files again that another process has removed. Errors: FILE_WRITE. */
  async keep(): Promise<void> {
    const { folder, folderMode } = this.#options;
    if (this.#files.size === 0 || isSameFile(identityOf(folder), this.#folder)) return;
    await this.#change(async () => {
      await makeFolder(folder, folderMode);
      for (const [path, content] of [...this.#files]) {
        if (identityOf(path) !== undefined) continue;
        this.#files.delete(path);
        this.#write(path, content);
      }
    });
  }

  /** Removes the files that none of these load balancers has, also those of an earlier agent. */
  keepOnly(loadBalancers: Iterable<LoadBalancer>): Promise<void> {
    const { folder } = this.#options;
    const all = [...loadBalancers];
    const used = new Set(authoritiesOf(all).map((authority) => authorityFile(folder, authority)));
    for (const list of userListsOf(all)) used.add(usersFile(folder, list));
    for (const { name, tls } of tlsListeners(all)) {
      used.add(crtListFile(folder, name));
      for (const crl of clientCrls(tls)) used.add(crlFile(folder, crl));
    }
    for (const { name } of certificatesIn(all)) used.add(certificateFile(folder, name));
    return this.#change(async () => {
      for (const file of await readdir(folder).catch(() => [])) {
        const path = join(folder, file);
        if (used.has(path)) continue;
        this.#files.delete(path);
        this.#written.clear();
        await rm(path, { force: true });
      }
    });
  }

  /** HAProxy refuses the certificate: the file gets the content back that its worker has. Errors: FILE_WRITE. */
  refuse({ name, fingerprint }: Certificate, reply: string, served: Certificate | undefined): Promise<void> {
    this.#refused.set(fingerprint, reply);
    return this.#change(async () => {
      if (served?.name === name) this.#writeCertificate(served);
    });
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

  /** One change at a time. */
  #change(work: () => Promise<void>): Promise<void> {
    return this.#writes.run(async () => {
      try {
        await work();
      } finally {
        this.#folder = identityOf(this.#options.folder);
      }
    });
  }

  #writeCertificate(certificate: Certificate): void {
    const { folder, pems } = this.#options;
    const { name, fingerprint } = certificate;
    if (this.#written.get(name) === fingerprint || this.isRefused(certificate)) return;
    const text = pems.certificate(secretOf(name), fingerprint);
    // Only an earlier agent had it: its file stays.
    if (text === undefined) return;
    this.#write(certificateFile(folder, name), { id: fingerprint, text });
    this.#written.set(name, fingerprint);
  }

  /** `path`: named by the content. */
  #writeList(path: string, { name, fingerprint }: Authority | Crl, pem: PemTexts['authority']): void {
    if (this.#files.has(path)) return;
    const text = pem(name, fingerprint);
    if (text !== undefined) this.#write(path, { id: fingerprint, text });
  }

  #write(path: string, content: Content): void {
    if (this.#files.get(path)?.id === content.id) return;
    replaceInMemory(path, content.text, this.#options.fileMode);
    this.#files.set(path, content);
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

/** Those of listeners and of members. */
export function certificatesIn(
  loadBalancers: readonly Pick<LoadBalancer, 'listeners'>[],
): readonly Certificate[] {
  return loadBalancers.flatMap(({ listeners }) => listeners.filter(hasSection).flatMap(allCertificates));
}

/** Those of clients and of members. */
function authoritiesOf(loadBalancers: readonly LoadBalancer[]): readonly Authority[] {
  return loadBalancers
    .flatMap(({ listeners }) => listeners.filter(hasSection))
    .flatMap(({ tls, pool }) => [
      ...(tls === undefined ? [] : clientAuthorities(tls)),
      ...(pool.tls?.authority === undefined ? [] : [pool.tls.authority]),
    ]);
}

function userListsOf(loadBalancers: readonly LoadBalancer[]): readonly UserList[] {
  return loadBalancers.flatMap(({ listeners }) => listeners.flatMap(({ userLists = [] }) => userLists));
}

function isTlsListener(listener: Listener): listener is TlsListener {
  return listener.tls !== undefined && isForHaproxy(listener);
}
