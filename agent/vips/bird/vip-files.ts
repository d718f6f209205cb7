// The files with the routes of VIPs that BIRD includes: writes them, makes BIRD read them, and reads those of an agent before
// this one.

import { contentInMemory, contentOf, replaceInMemory } from '../../host/atomic-file.ts';
import type { Worn } from '../bgp.ts';
import type { AnchorRoute } from '../host-anchors.ts';
import type { BirdSocket } from './bird-socket.ts';
import type { BirdPaths } from './paths.ts';
import { isAnchorRoute, LAST, type RouteSpec, renderAnchors, renderVips } from './render.ts';

type Routes = ReadonlyMap<string, Worn>;

/** Without aggregates. */
const ROUTE = /^route (?:([0-9.]+)\/32|([0-9a-f:]+(?:[0-9.]+)?)\/128) blackhole( \{.*\})?;$/;

export class VipFiles {
  readonly #paths: BirdPaths;
  readonly #socket: Pick<BirdSocket, 'ask'>;
  readonly #routeSpec: RouteSpec;
  #desired: Routes = new Map();
  #anchors: readonly AnchorRoute[] = [];
  /** BIRD may have other routes than the files. */
  #isDue = true;

  constructor(paths: BirdPaths, socket: Pick<BirdSocket, 'ask'>, routeSpec: RouteSpec = () => undefined) {
    this.#paths = paths;
    this.#routeSpec = routeSpec;
    this.#socket = socket;
  }

  /** What BIRD gets, or has. */
  get routes(): Routes {
    return this.#desired;
  }

  /** The routes in the files of an agent before this one. */
  async read(): Promise<Routes> {
    const routes = new Map<string, Worn>();
    for (const path of Object.values(this.#paths.vips))
      for (const line of ((await contentOf(path)) ?? '').split('\n')) {
        const [, v4, v6, attributes = ''] = ROUTE.exec(line) ?? [];
        const address = v4 ?? v6;
        if (address !== undefined && !isAnchorRoute(line))
          routes.set(address, attributes.includes(LAST) ? 'last' : 'first');
      }
    return routes;
  }

  set(routes: Routes, anchors: readonly AnchorRoute[] = []): void {
    this.#desired = routes;
    this.#anchors = anchors;
  }

  /** Another process runs: it may have read the files before the last change. */
  processChanged(): void {
    this.#isDue = true;
  }

  /**
   * Writes what differs, also if another process has changed it. True if BIRD has other routes now. `isRunning`: false if
   * no BIRD runs: one that starts reads the files. Errors: FILE_WRITE; BIRD_SOCKET.
   */
  async apply(isRunning: boolean): Promise<boolean> {
    for (const family of ['v4', 'v6'] as const) {
      const text = renderVips(this.#desired, family, this.#routeSpec) + renderAnchors(this.#anchors, family);
      const path = this.#paths.vips[family];
      if (contentInMemory(path) === text) continue;
      this.#isDue = true;
      replaceInMemory(path, text, 0o600);
    }
    if (!this.#isDue || !isRunning) return false;
    await this.#socket.ask('configure soft');
    this.#isDue = false;
    return true;
  }
}
