// Runs a real HAProxy with what the agent renders, started as the agent does it, on loopback addresses.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { HeadgateError } from '../../../agent/base/errors.ts';
import { AclIds } from '../../../agent/haproxy/config/acl-ids.ts';
import { configText } from '../../../agent/haproxy/config/config-text.ts';
import { descriptionOf } from '../../../agent/haproxy/config/render.ts';
import { type RenderContext, renderContext } from '../../../agent/haproxy/config/render-context.ts';
import {
  type HaproxyPaths,
  haproxyPaths,
  masterPid,
  startHaproxy,
  stopHaproxy,
} from '../../../agent/haproxy/process/process.ts';
import { Running } from '../../../agent/haproxy/running.ts';
import { reload } from '../../../agent/haproxy/socket/master.ts';
import { Runtime } from '../../../agent/haproxy/socket/runtime.ts';
import type { Worker } from '../../../agent/haproxy/worker.ts';
import type { LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { endWithUs } from '../basics/leftovers.ts';
import { freePort, haproxyExecutable } from './haproxy.ts';

export interface RenderedHaproxy {
  readonly paths: HaproxyPaths;
  readonly context: RenderContext;
  /** The worker that booted from the given load balancers. */
  readonly worker: Worker;
  /** Loads other ones and gives the new worker. */
  reload(loadBalancers: readonly LoadBalancer[]): Promise<Worker>;
}

/** Stops with the test. `loadBalancers` in the order of the file, with addresses that can be bound. */
export async function startRendered(
  t: ExecutionContext,
  loadBalancers: readonly LoadBalancer[],
  { executable = haproxyExecutable, maxConnections = 500 } = {},
): Promise<RenderedHaproxy> {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-'));
  const paths = haproxyPaths(directory, directory);
  t.teardown(async () => {
    await stopHaproxy(paths, 0);
    await rm(directory, { recursive: true, force: true });
  });
  for (const path of [paths.config, paths.adminSocket]) await mkdir(dirname(path), { recursive: true });
  const settings = { threads: 1, hardStopAfter: 3_000, maxOldWorkers: 4, haproxyUser: '', haproxyGroup: '' };
  const context = renderContext(settings, paths, maxConnections, new AclIds().idOf);

  /** The worker that says it booted from these, and is not the one that is replaced by one of the same. */
  const find = async (wanted: readonly LoadBalancer[], structure: string): Promise<Worker | undefined> => {
    const runtime = await Runtime.connect({ socketPath: paths.adminSocket }).catch(() => undefined);
    if (runtime?.worker.description === descriptionOf(structure) && !runtime.worker.stopping) {
      t.teardown(() => runtime.close());
      return { runtime, running: Running.booted(wanted, context.aclId) };
    }
    runtime?.close();
    return undefined;
  };

  const write = async (wanted: readonly LoadBalancer[]): Promise<string> => {
    const { chunks, structure } = await configText(wanted, context);
    await writeFile(paths.config, chunks.join(''));
    return structure;
  };

  const structure = await write(loadBalancers);
  const found = await startHaproxy(executable, paths, () => find(loadBalancers, structure), 20_000);
  endWithUs((await masterPid(paths)) ?? 0, directory);
  return {
    paths,
    context,
    worker: found,
    async reload(wanted) {
      const next = await write(wanted);
      // Right after its start the master of HAProxy 2.6 executes itself afresh and binds its socket anew.
      const { ok } = await untilDefined('The master answers', () =>
        reload(paths.masterSocket).catch((error) => {
          if (error instanceof HeadgateError && error.code.startsWith('RUNTIME_')) return undefined;
          throw error;
        }),
      );
      if (!ok) throw new Error('HAProxy has refused the file');
      // The old one may still take a connection.
      return untilDefined('The new worker answers', () => find(wanted, next));
    },
  };
}

/** Gives load balancers addresses and ports of loopback that nothing else uses, the same one for the same one. */
export class Loopback {
  readonly #network = `127.${octet()}.${octet()}`;
  /** `address port` to those in its place. */
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
      // IPv6 has one loopback address only. Above 1024, so that it needs no root, and below the ephemeral ports.
      place = address.includes(':')
        ? { address: '::1', port: await freePort() }
        : { address: `${this.#network}.${address.split('.')[3]}`, port: 20_000 + (port % 10_000) };
      this.#places.set(key, place);
    }
    return place;
  }
}

async function untilDefined<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
  for (const end = performance.now() + 20_000; performance.now() < end; await delay(10)) {
    const value = await ask();
    if (value !== undefined) return value;
  }
  throw new Error(`Not within 20 s: ${what}`);
}

function octet(): number {
  return 1 + Math.floor(Math.random() * 253);
}
