// The maps that the rules of a frontend with routes read, each a file of that name, and one row of them.
// Why: docs/design/decisions/0049-routes-are-rows.md

/** `exact` and so on: how HAProxy looks a key up. */
export const MAPS = [
  /** What a request looks up first: listener and host, then table and path. */
  'hosts',
  'wider',
  /** Sections that want certificates of clients. */
  'guarded',
  /** Tables of hosts where a path that members could read otherwise is refused. */
  'strict',
  'exact',
  'prefix',
  /** Regular expressions as tables, by their ids. */
  'expressions',
  /** Candidates with conditions, by list. */
  'lists',
  /** What a rule does, by rule. */
  'timeout',
  'path',
  'host',
  'redirect',
  'cors',
  'origins',
  'request-headers',
  'response-headers',
  'mirrors',
  'cookie',
  'retry',
  'hash-by',
  'fallback',
  'custom-errors',
  'clients',
  'rate',
  'minute-rate',
  'at-once',
  'body',
  'certificate-name',
  'auth',
  'jwt',
  'external-auth',
  'backend',
  'weights',
  'shares',
  /** The spare backend of a pool, by the pool. */
  'spares',
] as const;

export type MapName = (typeof MAPS)[number];

export interface MapRow {
  readonly map: MapName;
  readonly key: string;
  readonly value: string;
}

/** Their keys stay while what they lead to changes; the keys of all other rows are hashes of what they belong to. */
const ENTRIES: ReadonlySet<MapName> = new Set<MapName>(['hosts', 'wider', 'exact', 'prefix']);

export function isEntry({ map }: Pick<MapRow, 'map'>): boolean {
  return ENTRIES.has(map);
}

/** What a path leads to. */
export function isPath({ map }: Pick<MapRow, 'map'>): boolean {
  return map === 'exact' || map === 'prefix';
}

/** Unique within a worker. */
export function rowId({ map, key }: Pick<MapRow, 'map' | 'key'>): string {
  return `${map} ${key}`;
}
