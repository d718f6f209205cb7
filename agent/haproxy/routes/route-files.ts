// The files of the maps, from which HAProxy boots, and the Lua file beside them, in the state directory: HAProxy serves the
// routes after a reboot without the agent. Owns the files.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { serial } from '../../base/serial.ts';
import { Slice } from '../../base/slice.ts';
import { KeptFile } from '../../host/kept-file.ts';
import { makeFolder } from '../../host/make-directory.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { MAPS, type MapName } from './maps.ts';
import type { Tables } from './patched-tables.ts';

export interface RouteFilesOptions {
  readonly folder: string;
  readonly fileMode: number;
  readonly folderMode: number;
  readonly tablesOf: (listener: Listener) => Tables;
}

/** What HAProxy loads beside the maps. */
export const LUA = readFileSync(new URL('../../../templates/haproxy/routes.lua', import.meta.url), 'utf8');

export function mapFile(folder: string, map: MapName): string {
  return join(folder, map);
}

/** By the name of the file: the maps and what HAProxy loads beside them; empty if no load balancer has routes. */
export async function routeTexts(
  loadBalancers: readonly LoadBalancer[],
  tablesOf: (listener: Listener) => Tables,
): Promise<ReadonlyMap<string, string>> {
  const routed = loadBalancers.flatMap(({ listeners }) =>
    listeners.filter(({ routing }) => routing !== undefined),
  );
  if (routed.length === 0) return new Map();
  const lines = new Map<MapName, string[]>(MAPS.map((map) => [map, []]));
  const slice = new Slice();
  for (const listener of routed)
    for (const rows of tablesOf(listener).values()) {
      for (const { map, key, value } of rows) lines.get(map)?.push(`${key} ${value}\n`);
      if (slice.isOver) await slice.breathe();
    }
  return new Map([
    ['routes.lua', LUA],
    ...Array.from(lines, ([map, texts]) => [map, texts.join('')] as const),
  ]);
}

export class RouteFiles {
  readonly #options: RouteFilesOptions;
  readonly #writes = serial();
  /** By path. */
  readonly #files = new Map<string, { readonly text: string; readonly file: KeptFile }>();

  constructor(options: RouteFilesOptions) {
    this.#options = options;
  }

  /** Brings the files to the routes of exactly these load balancers; none while none has routes. Errors: FILE_WRITE. */
  write(loadBalancers: Iterable<LoadBalancer>): Promise<void> {
    const { folder, folderMode, tablesOf } = this.#options;
    const some = [...loadBalancers];
    return this.#writes.run(async () => {
      const texts = await routeTexts(some, tablesOf);
      if (texts.size > 0) await makeFolder(folder, folderMode);
      for (const [name, text] of texts) await this.#write(join(folder, name), text);
    });
  }

  /** Writes files again that another process has removed or changed. Errors: FILE_WRITE. */
  async keep(): Promise<void> {
    await this.#writes.run(async () => {
      if (this.#files.size > 0) await makeFolder(this.#options.folder, this.#options.folderMode);
      for (const { file } of this.#files.values()) await file.keep();
    });
  }

  async #write(path: string, text: string): Promise<void> {
    if (this.#files.get(path)?.text === text) return;
    const file = new KeptFile(path, text, this.#options.fileMode);
    await file.keep();
    this.#files.set(path, { text, file });
  }
}
