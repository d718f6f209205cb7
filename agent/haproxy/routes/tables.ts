// The rows of a listener with routes as row tables: one for each hostname of each section, and one that maps each hostname to
// its table. A table keeps its rows while the routes of its hostname stay the same value, so that a change of one hostname
// costs nothing for the others. Pure.

import { memoByIdentity } from '../../base/memo.ts';
import { asksForCertificates, guardWord } from '../../model/client-guards.ts';
import type { Listener, Tls } from '../../model/load-balancer.ts';
import { dispatcher } from '../../model/names.ts';
import type {
  HostPattern,
  HostRoutes,
  HttpRouting,
  RouteSection,
  Routing,
  TlsHost,
} from '../../model/routes.ts';
import { digest, hostText, locationText, patternText } from './encode.ts';
import type { MapRow } from './maps.ts';
import { patchedTables, type RowTables } from './patched-tables.ts';
import { pathRows } from './path-rows.ts';
import { weightedTarget } from './rule-rows.ts';

/** No request has a longer one. */
const MAX_HOST = 253;
const NONE: RowTables = new Map();
/** By listener, because those of both families have the same routes. */
const known = new WeakMap<Routing, Map<string, Known>>();
/** What each listener was last asked for; alive as long as its routes. */
const latest = new Map<string, WeakRef<Known>>();
/** For tables that were made from others: which of them differ. */
const changes = new WeakMap<RowTables, TablesChange>();

interface Known {
  readonly routing: Routing;
  readonly tables: RowTables;
}

interface TablesChange {
  readonly from: RowTables;
  readonly names: readonly string[];
}

export function tablesOf({
  name,
  routing,
  dispatch,
  tls,
}: Pick<Listener, 'name' | 'routing' | 'dispatch' | 'tls'>): RowTables {
  if (routing === undefined) return NONE;
  if (dispatch !== undefined) {
    const before = tablesOf({ name: dispatcher(name), routing: dispatch, tls: undefined });
    return new Map([...before, ...tablesOf({ name, routing, tls })]);
  }
  const byListener = known.get(routing) ?? new Map<string, Known>();
  known.set(routing, byListener);
  let own = byListener.get(name);
  if (own === undefined) {
    const before = latest.get(name)?.deref();
    own = { routing, tables: (before && changedTables(name, before, routing)) ?? makeTables(name, routing) };
    byListener.set(name, own);
    latest.set(name, new WeakRef(own));
  }
  return tls === undefined ? own.tables : guarded(own.tables, name, routing, tls);
}

/** undefined unless the tables were made from others of the same listener. */
export function changeOf(tables: RowTables): TablesChange | undefined {
  return changes.get(tables);
}

/** Tables for routes that differ from the last ones in some hostnames only, without reading all others; else undefined. */
function changedTables(listener: string, { routing, tables }: Known, next: Routing): RowTables | undefined {
  if (routing.kind !== 'http' || next.kind !== 'http' || routing.sections.length !== next.sections.length)
    return undefined;
  const patches = new Map<string, readonly MapRow[]>();
  for (const [at, section] of next.sections.entries()) {
    const before = routing.sections[at];
    if (before === section) continue;
    if (before === undefined || !isAlike(before, section)) return undefined;
    const id = sectionId(listener, section.name);
    for (const [position, host] of section.hosts.entries()) {
      const old = before.hosts[position];
      if (old === host || old === undefined) continue;
      if (
        textOf(old.host) !== textOf(host.host) ||
        (old.entries.length === 0) !== (host.entries.length === 0)
      )
        return undefined;
      const table = knownTable(old, id);
      // The hostname may belong to another section.
      if (table === undefined || !tables.has(table.name)) continue;
      patches.set(table.name, tableOf(host, id, table.wider, listener).rows);
    }
  }
  return patches.size === 0 ? tables : changed(tables, patches);
}

function isAlike(a: RouteSection, b: RouteSection): boolean {
  return a.name === b.name && textOf(a.hostname) === textOf(b.hostname) && a.hosts.length === b.hosts.length;
}

/** Key: the tables before guards were added. */
const withGuards = new WeakMap<RowTables, { readonly text: string; readonly tables: RowTables }>();

/** With a table for the sections that want certificates of clients. */
function guarded(tables: RowTables, listener: string, routing: Routing, tls: Tls): RowTables {
  if (routing.kind !== 'http' || !asksForCertificates(tls)) return tables;
  const guards = routing.sections.flatMap(({ name, hostname }): readonly MapRow[] => {
    const clients = clientsOf(hostname, tls);
    if (clients === undefined) return [];
    const key = sectionId(listener, name);
    const guard: MapRow = { map: 'guarded', key, value: guardWord(clients) };
    if (clients.errorPage === undefined) return [guard];
    return [guard, { map: 'redirect', key, value: `302|location|${locationText(clients.errorPage)}` }];
  });
  const text = guards.map(({ key, value }) => `${key} ${value}`).join();
  const known = withGuards.get(tables);
  if (known?.text === text) return known.tables;
  const change = changes.get(tables);
  const before = change && withGuards.get(change.from);
  const withGuard =
    before?.text === text && change !== undefined
      ? changed(before.tables, new Map(change.names.map((each) => [each, tables.get(each) ?? []])))
      : new Map([...tables, ['guards', guards]]);
  withGuards.set(tables, { text, tables: withGuard });
  return withGuard;
}

/** What clients of a section must prove; names that no section has are those of the section for any name. */
function clientsOf(hostname: HostPattern, { clients, sections = [] }: Tls): Tls['clients'] {
  const text = patternText(hostname);
  const section = sections.find((each) => patternText(each.hostname) === text);
  return section === undefined && hostname.kind === 'any' ? clients : section?.clients;
}

function changed(tables: RowTables, patches: ReadonlyMap<string, readonly MapRow[]>): RowTables {
  const patched = patchedTables(tables, patches);
  changes.set(patched, { from: tables, names: [...patches.keys()] });
  // So that no tables keep all those before them in memory.
  changes.delete(tables);
  return patched;
}

function makeTables(listener: string, routing: Routing): RowTables {
  if (routing.kind === 'http') return httpTables(listener, routing);
  const hosts = routing.kind === 'tls' ? routing.hosts : [{ host: ANY, backends: routing.backends }];
  return new Map(
    hosts.map(({ host, backends, isEnded }: TlsHost) => {
      const table = `${sectionId(listener, '')}.${patternText(host)}`;
      const { target, rows } = isEnded ? ENDED : weightedTarget(backends, table);
      return [table, [...rows, ...hostRows(host, listener, target)]];
    }),
  );
}

const ANY: HostPattern = { kind: 'any', suffix: '' };
/** A target of templates/haproxy/connection-routes.mustache. */
const ENDED = { target: 'ended', rows: [] } as const;

function httpTables(listener: string, { sections }: HttpRouting): RowTables {
  const tables = new Map<string, readonly MapRow[]>();
  /** In tables of their own, because a hostname may move to another section. */
  const hostTables: Table[] = [];
  const owners = new Map(sections.map((section) => [textOf(section.hostname), section]));
  const findOwner = finder((text) => owners.get(text));
  for (const section of sections) {
    const id = sectionId(listener, section.name);
    const wilds = wildcardsOf(section);
    const findWider = finder((text) => (wilds.has(text) ? text : undefined));
    for (const host of withOwnHostname(section)) {
      if (host.host.suffix.length > MAX_HOST) continue;
      // A request for this hostname belongs to the section with the most specific hostname.
      const isOwner =
        owners.size === 1 || (owners.get(textOf(host.host)) ?? findOwner(host.host)) === section;
      if (!isOwner) continue;
      const wider = wilds.size === 0 ? undefined : findWider(host.host);
      const table = tableOf(host, id, wider, listener);
      tables.set(table.name, table.rows);
      hostTables.push(table);
    }
  }
  for (const { hostname, way } of hostTables) tables.set(hostname, way);
  return tables;
}

const textOf = memoByIdentity(patternText);

/** The hostnames that a request for another one can fall back to. */
function wildcardsOf({ hosts }: RouteSection): ReadonlySet<string> {
  const wilds = new Set<string>();
  for (const { host, entries } of hosts)
    if (host.kind !== 'exact' && entries.length > 0) wilds.add(textOf(host));
  return wilds;
}

/** Even without routes a section owns its hostname. */
function withOwnHostname({ hostname, hosts }: RouteSection): readonly HostRoutes[] {
  const { kind, suffix } = hostname;
  const isThere = hosts.some(({ host }) => host.kind === kind && host.suffix === suffix);
  return isThere ? hosts : [...hosts, withoutRoutes(hostname)];
}

const withoutRoutes = memoByIdentity((host: HostPattern): HostRoutes => ({ host, entries: [] }));

interface Table {
  readonly name: string;
  readonly hostname: string;
  readonly wider: string | undefined;
  readonly rows: readonly MapRow[];
  /** The rows that lead to it. */
  readonly way: readonly MapRow[];
}

/** By hostname, then by section. */
const tablesByHost = new WeakMap<HostRoutes, Map<string, Table>>();

function knownTable(host: HostRoutes, section: string): Table | undefined {
  return tablesByHost.get(host)?.get(section);
}

function tableOf(host: HostRoutes, section: string, wider: string | undefined, listener: string): Table {
  const bySection = tablesByHost.get(host) ?? new Map<string, Table>();
  tablesByHost.set(host, bySection);
  const before = bySection.get(section);
  if (before !== undefined && before.wider === wider) return before;
  const hostname = textOf(host.host);
  const name = `${section}.${hostname}`;
  const rows: MapRow[] = [...pathRows(host, name)];
  if (wider !== undefined) rows.push({ map: 'wider', key: name, value: `${section}.${wider}` });
  const table = { name, hostname, wider, rows, way: before?.way ?? hostRows(host.host, listener, name) };
  bySection.set(section, table);
  return table;
}

/** The last keys that the rules look up for a wildcard have `**`: it covers any number of labels. */
function hostRows({ kind, suffix }: HostPattern, listener: string, value: string): readonly MapRow[] {
  const stars = { exact: [''], 'one-label': ['*'], labels: ['*', '**'], any: ['*'] }[kind];
  const host = kind === 'any' ? '' : hostText(suffix);
  return stars.map((star) => ({ map: 'hosts', key: `${host}|${star}${listener}`, value }));
}

/** Finds the first that `get` has of the patterns that are wider than one, by their texts. */
function finder<T>(get: (text: string) => T | undefined): (pattern: HostPattern) => T | undefined {
  return ({ kind, suffix }) => {
    if (kind === 'any') return undefined;
    let rest = kind === 'one-label' ? hostText(suffix) : parentOf(hostText(suffix));
    const one = kind === 'exact' && rest !== '' ? get(`*.${rest}`) : undefined;
    if (one !== undefined) return one;
    for (; rest !== ''; rest = parentOf(rest)) {
      const found = get(`**.${rest}`);
      if (found !== undefined) return found;
    }
    return get('*');
  };
}

/** '' for a host of one label. */
function parentOf(host: string): string {
  const dot = host.indexOf('.');
  return dot === -1 ? '' : host.slice(dot + 1);
}

/** Not the name itself, which could be long, in each row. */
function sectionId(listener: string, section: string): string {
  return digest(`${listener} ${section}`, 10);
}
