// Runs a real HAProxy with the agent's rendered configuration on loopback addresses, started as the agent starts it.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { HeadgateError } from '../../../agent/base/errors.ts';
import { parseLogTarget } from '../../../agent/base/log-target.ts';
import type { Worker } from '../../../agent/haproxy/booted-worker.ts';
import { AclIds } from '../../../agent/haproxy/config/acl-ids.ts';
import { CertificateFiles, type PemTexts } from '../../../agent/haproxy/config/certificate-files.ts';
import { configText } from '../../../agent/haproxy/config/config-text.ts';
import { needsOf } from '../../../agent/haproxy/config/limits.ts';
import { pagesOf, pageTexts } from '../../../agent/haproxy/config/page-files.ts';
import { descriptionOf } from '../../../agent/haproxy/config/render.ts';
import {
  type AmbiguousPaths,
  type DotSegments,
  type RenderContext,
  renderContext,
} from '../../../agent/haproxy/config/render-context.ts';
import { tokenKeysOf, tokenKeyTexts } from '../../../agent/haproxy/config/token-key-files.ts';
import { masterPid, startHaproxy, stopHaproxy } from '../../../agent/haproxy/instance/process.ts';
import { type HaproxyPaths, haproxyPaths } from '../../../agent/haproxy/paths.ts';
import { routeTexts } from '../../../agent/haproxy/routes/route-files.ts';
import { tablesOf } from '../../../agent/haproxy/routes/tables.ts';
import { Running } from '../../../agent/haproxy/running.ts';
import { reload } from '../../../agent/haproxy/socket/master.ts';
import { Runtime } from '../../../agent/haproxy/socket/runtime.ts';
import { FileSet } from '../../../agent/host/file-set.ts';
import type { LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { Deadline } from '../basics/deadline.ts';
import { freePort } from '../basics/free-port.ts';
import { endWithUs } from '../basics/leftovers.ts';
import { RENDER_SETTINGS } from '../values/render-settings.ts';
import { haproxyExecutable } from './haproxy.ts';

const NO_TEXTS: PemTexts = { certificate: () => undefined, authority: () => undefined, crl: () => undefined };

export interface RenderedHaproxy {
  readonly paths: HaproxyPaths;
  /** The files of the given certificates. */
  readonly certificates: CertificateFiles;
  readonly context: RenderContext;
  /** The worker that started with the given load balancers. */
  readonly worker: Worker;
  /** Reloads with other load balancers; resolves with the new worker. */
  reload(loadBalancers: readonly LoadBalancer[]): Promise<Worker>;
}

/** HAProxy stops with the test. `loadBalancers` are in the order of the file, with local addresses. */
export async function startRendered(
  t: ExecutionContext,
  loadBalancers: readonly LoadBalancer[],
  {
    executable = haproxyExecutable,
    maxConnections = 500,
    pems = NO_TEXTS,
    dotSegments = 'reject',
    ambiguousPaths = 'reject-where-guarded',
    routeMetrics = false,
    hardStopAfter = 3_000,
    logTarget = 'journald',
  }: {
    readonly executable?: string;
    readonly maxConnections?: number;
    readonly pems?: PemTexts;
    readonly dotSegments?: DotSegments;
    readonly ambiguousPaths?: AmbiguousPaths;
    readonly routeMetrics?: boolean;
    readonly hardStopAfter?: number;
    /** The target of the connection log. */
    readonly logTarget?: string;
  } = {},
): Promise<RenderedHaproxy> {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-'));
  const paths = haproxyPaths(directory, directory);
  t.teardown(async () => {
    await stopHaproxy(paths, 0);
    await rm(directory, { recursive: true, force: true });
  });
  for (const path of [paths.config, paths.adminSocket]) await mkdir(dirname(path), { recursive: true });
  const settings = {
    ...RENDER_SETTINGS,
    dotSegments,
    ambiguousPaths,
    hardStopAfter,
    routeMetrics,
    connectionLogTarget: parseLogTarget(logTarget) ?? RENDER_SETTINGS.connectionLogTarget,
  };
  const { hasTls, hasRoutes, asksServers, verifiesTokens, reportsErrors } = needsOf(loadBalancers);
  const context = renderContext(settings, paths, maxConnections, new AclIds().idOf, {
    hasTls,
    hasRoutes,
    asksServers,
    verifiesTokens,
    reportsErrors,
    ...(pems.users && { users: pems.users }),
  });

  /** The worker that reports these load balancers as its file, and is not the replaced worker. */
  const find = async (wanted: readonly LoadBalancer[], structure: string): Promise<Worker | undefined> => {
    const runtime = await Runtime.connect({ socketPath: paths.adminSocket }).catch(() => undefined);
    if (runtime?.worker.description === descriptionOf(structure) && !runtime.worker.stopping) {
      t.teardown(() => runtime.close());
      return { runtime, running: Running.booted(wanted, context.aclId) };
    }
    runtime?.close();
    return undefined;
  };

  const { certificates: folder, fileMode, certificatesMode: folderMode } = paths;
  const certificates = new CertificateFiles({ folder, fileMode, folderMode, pems });
  const routes = new FileSet({ folder: paths.routes, fileMode, folderMode });
  const pages = new FileSet({ folder: paths.pages, fileMode, folderMode });
  const keys = new FileSet({ folder: paths.keys, fileMode, folderMode });

  const write = async (wanted: readonly LoadBalancer[]): Promise<string> => {
    await certificates.write(wanted);
    await routes.write(routeTexts(wanted, paths.routes, tablesOf));
    await pages.write(pageTexts(pagesOf(wanted), paths.pages, pems.pages ?? (() => undefined)));
    await keys.write(tokenKeyTexts(tokenKeysOf(wanted), paths.keys));
    const { chunks, structure } = await configText(wanted, context);
    await writeFile(paths.config, chunks.join(''));
    return structure;
  };

  const structure = await write(loadBalancers);
  const found = await startHaproxy(executable, paths, () => find(loadBalancers, structure), 20_000);
  endWithUs((await masterPid(paths)) ?? 0, directory);
  return {
    paths,
    certificates,
    context,
    worker: found,
    async reload(wanted) {
      const next = await write(wanted);
      // After its start the master of HAProxy 2.6 executes itself again and binds its socket again.
      const { ok } = await untilDefined('The master answers', () =>
        reload(paths.masterSocket).catch((error) => {
          if (error instanceof HeadgateError && error.code.startsWith('RUNTIME_')) return undefined;
          throw error;
        }),
      );
      if (!ok) throw new Error('HAProxy has refused the file');
      // The replaced worker may still accept a connection.
      return untilDefined('The new worker answers', () => find(wanted, next));
    },
  };
}

/** Maps the addresses and ports of load balancers to unused ones of loopback. */
export class Loopback {
  readonly #network = `127.${octet()}.${octet()}`;
  /** `address port` → the loopback address and port. */
  readonly #places = new Map<string, { readonly address: string; readonly port: number }>();

  async bindable(loadBalancer: LoadBalancer): Promise<LoadBalancer> {
    const listeners = [];
    for (const listener of loadBalancer.listeners) {
      const addresses = [];
      let { port } = listener;
      for (const address of listener.addresses) {
        const place = await this.place(address, listener.port);
        addresses.push(place.address);
        port = place.port;
      }
      listeners.push({ ...listener, addresses, port });
    }
    return { ...loadBalancer, listeners };
  }

  async place(address: string, port: number): Promise<{ readonly address: string; readonly port: number }> {
    const key = `${address} ${port}`;
    let place = this.#places.get(key);
    if (place === undefined) {
      // IPv6 has only one loopback address, so the port differs: above 1024, which needs no root, and below ephemeral ports.
      place = address.includes(':')
        ? { address: '::1', port: await freePort('::1') }
        : { address: `${this.#network}.${address.split('.')[3]}`, port: 20_000 + (port % 10_000) };
      this.#places.set(key, place);
    }
    return place;
  }
}

async function untilDefined<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
  for (const deadline = new Deadline(20_000, 30); ; await deadline.pause()) {
    const value = await ask();
    if (value !== undefined) return value;
    if (deadline.isOver) throw new Error(`Not within 20 s: ${what}`);
  }
}

function octet(): number {
  return 1 + Math.floor(Math.random() * 253);
}
