// The current contents of haproxy.cfg besides the load balancers: settings, the number of connections that the limit of
// open files allows, the stick tables that the peer shares, and the ids of ACLs.

import { dirname } from 'node:path';
import { HeadgateError } from '../../base/errors.ts';
import { fileLimit } from '../../host/file-limit.ts';
import type { KeptFile } from '../../host/kept-file.ts';
import type { Log } from '../../host/log.ts';
import { makeFolder } from '../../host/make-directory.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import type { HaproxyPaths } from '../paths.ts';
import { AclIds } from './acl-ids.ts';
import { probeBind } from './bind-probe.ts';
import { maxConnections, namespaceConnections, needsOf } from './limits.ts';
import { type RenderContext, type RenderSettings, renderContext } from './render-context.ts';
import {
  credentialFiles,
  isShared,
  type SharedTables,
  sharedTables,
  type TablesCredentials,
  type TablesSettings,
} from './shared-tables.ts';
import type { UsersText } from './user-lists.ts';

export interface GlobalSectionOptions {
  readonly paths: HaproxyPaths;
  readonly settings: () => RenderSettings & { readonly maxConnections: number; readonly netns: string };
  /** True if a HAProxy answers at the sockets. */
  readonly isRunning: () => Promise<boolean>;
  /** Users of routes, for the file. */
  readonly users?: UsersText;
  readonly log: Log;
}

export class GlobalSection {
  readonly aclIds = new AclIds();
  readonly #options: GlobalSectionOptions;
  readonly #fileLimit = fileLimit();
  #tables: SharedTables | undefined;
  /** The files of the shared tables. */
  #credentials: readonly KeptFile[] = [];
  #limit: { readonly value: number; readonly problem: string | undefined } = { value: 0, problem: undefined };

  constructor(options: GlobalSectionOptions) {
    this.#options = options;
  }

  /** As last rendered. */
  get maxConnections(): number {
    return this.#limit.value;
  }

  /** As last rendered. */
  get namespaceConnections(): number {
    return namespaceConnections(this.#options.settings().maxConnectionsPerNamespace, this.#limit.value);
  }

  /** Why HAProxy accepts fewer connections than configured; '' if it does not. */
  get fault(): string {
    return this.#limit.problem ?? '';
  }

  readonly context = (loadBalancers: ReadonlyMap<string, LoadBalancer>): RenderContext => {
    const { paths, users, log } = this.#options;
    const settings = this.#options.settings();
    const before = this.#limit.problem;
    const needs = needsOf(loadBalancers.values());
    this.#limit = maxConnections(settings.maxConnections, this.#fileLimit, needs);
    const { value, problem } = this.#limit;
    if (problem !== undefined && problem !== before) log.error(problem);
    const { listeners: _, checks: __, ...has } = needs;
    const more = { sharedTables: this.#tables, ...has, ...(users && { users }) };
    return renderContext(settings, paths, value, this.aclIds.idOf, more);
  };

  /**
   * The directory of haproxy.cfg, and the files in it that HAProxy needs to read haproxy.cfg: made again if another
   * process has removed or changed them. Errors: FILE_WRITE.
   */
  readonly keepFiles = async (): Promise<void> => {
    await makeFolder(dirname(this.#options.paths.config), 0o700);
    for (const file of this.#credentials) await file.keep();
  };

  /** Errors: FILE_WRITE, and HAPROXY_REJECTED if the address and port cannot be bound. */
  async shareTables(settings: TablesSettings, credentials: TablesCredentials): Promise<void> {
    const { paths, isRunning } = this.#options;
    const tables = sharedTables(settings, credentials.fingerprint, paths.config);
    const { address, port } = settings;
    // In another network namespace only HAProxy can try the address.
    const canProbe = this.#options.settings().netns === '';
    const why = canProbe ? await probeBind(address, port, false) : undefined;
    // The running HAProxy may hold the address already, for the same tables.
    const isHeld = why !== undefined && (await isShared(paths.config, tables)) && (await isRunning());
    if (why !== undefined && !isHeld)
      throw new HeadgateError('HAPROXY_REJECTED', `Cannot share the stick tables: ${why}`);
    const files = credentialFiles(tables, credentials, paths.fileMode);
    for (const file of files) await file.write();
    this.#tables = tables;
    this.#credentials = files;
  }
}
