// The files of the maps, from which HAProxy boots, and the Lua file beside them, in the state directory: HAProxy serves the
// routes after a reboot without the agent. Pure.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Slice } from '../../base/slice.ts';
import type { NamedText } from '../../host/file-set.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { MAPS, type MapName } from './maps.ts';
import type { RowTables } from './patched-tables.ts';

/** What HAProxy loads beside the maps. */
export const LUA = templateText('routes.lua');
export const GROUPS_LUA = templateText('groups.lua');
export const ERRORS_LUA = templateText('custom-errors.lua');
/** The same if a route asks a service whether a request is let in, or for pages of errors. */
export const AUTH_LUA = templateText('external-auth.lua');
/** The same if a route verifies tokens. */
export const JWT_LUA = templateText('jwt.lua');

function templateText(name: string): string {
  return readFileSync(new URL(`../../../templates/haproxy/${name}`, import.meta.url), 'utf8');
}

export function mapFile(folder: string, map: MapName): string {
  return join(folder, map);
}

/** The maps and what HAProxy loads beside them; none if no load balancer has routes. */
export async function* routeTexts(
  loadBalancers: readonly LoadBalancer[],
  folder: string,
  tablesOf: (listener: Listener) => RowTables,
): AsyncGenerator<NamedText, void, void> {
  const routed = loadBalancers.flatMap(({ listeners }) =>
    listeners.filter(({ routing }) => routing !== undefined),
  );
  if (routed.length === 0) return;
  const lines = new Map<MapName, string[]>(MAPS.map((map) => [map, []]));
  const slice = new Slice();
  for (const listener of routed)
    for (const rows of tablesOf(listener).values()) {
      for (const { map, key, value } of rows) lines.get(map)?.push(`${key} ${value}\n`);
      if (slice.isOver) await slice.breathe();
    }
  yield { path: join(folder, 'routes.lua'), id: LUA, text: () => LUA };
  yield { path: join(folder, 'groups.lua'), id: GROUPS_LUA, text: () => GROUPS_LUA };
  yield { path: join(folder, 'custom-errors.lua'), id: ERRORS_LUA, text: () => ERRORS_LUA };
  if (routed.some(({ asksServers, replacesErrors }) => asksServers || replacesErrors))
    yield { path: join(folder, 'external-auth.lua'), id: AUTH_LUA, text: () => AUTH_LUA };
  if (routed.some(({ tokenKeys }) => tokenKeys !== undefined))
    yield { path: join(folder, 'jwt.lua'), id: JWT_LUA, text: () => JWT_LUA };
  for (const [map, all] of lines) {
    const text = all.join('');
    yield { path: mapFile(folder, map), id: text, text: () => text };
  }
}
