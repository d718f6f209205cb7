// The rows that HAProxy has refused: they are left out of commands and files, so that each costs its route only. A rule without a
// row that restricts its clients is closed. Reports them, and routes that do not fit into rows.

import type { Listener, LoadBalancer, Problem } from '../../model/load-balancer.ts';
import { objectOf } from '../../model/names.ts';
import { GUARDS_OF_RULES } from './held-rows.ts';
import { isPath, type MapRow, rowId } from './maps.ts';
import type { RowTables } from './patched-tables.ts';
import { tablesOf } from './tables.ts';
import { faultsOf } from './unservable.ts';

const FORBIDDEN = 'e403';
const NO_MESSAGES: readonly string[] = [];

export class RefusedRows {
  /** Row and value → HAProxy's reply, by listener. */
  readonly #refused = new Map<string, Map<string, string>>();
  /** So that the rows of an unchanged listener keep their identity. */
  #tables = new WeakMap<RowTables, RowTables>();

  refuse(listener: string, row: MapRow, reply: string): void {
    const refused = this.#refused.get(listener) ?? new Map<string, string>();
    this.#refused.set(listener, refused);
    refused.set(contentOf(row), reply);
    this.#tables = new WeakMap();
  }

  /** The rows of a listener that HAProxy accepts, as far as it is known. */
  readonly tablesOf = (listener: Listener): RowTables => {
    const all = tablesOf(listener);
    const refused = this.#refused.get(listener.name);
    if (refused === undefined) return all;
    let tables = this.#tables.get(all);
    if (tables === undefined) {
      tables = new Map([...all].map(([name, rows]) => [name, without(rows, refused)]));
      this.#tables.set(all, tables);
    }
    return tables;
  };

  problemsOf({ key, listeners }: LoadBalancer): readonly Problem[] {
    return listeners.flatMap((listener) =>
      [...unservable(listener), ...this.#refusals(listener)].map((message): Problem => {
        const { protocol, port } = listener;
        return { object: objectOf(key), reason: 'ConfigurationRejected', message, port: { protocol, port } };
      }),
    );
  }

  #refusals(listener: Listener): readonly string[] {
    const refused = this.#refused.get(listener.name);
    if (refused === undefined) return [];
    return [...tablesOf(listener).values()].flat().flatMap((row) => {
      const reply = refused.get(contentOf(row));
      const closes = GUARDS_OF_RULES.has(row.map) ? '; the route is closed with status 403' : '';
      return reply === undefined
        ? []
        : `HAProxy refuses a row of a route, "${row.map} ${row.key}": ${reply}${closes}`;
    });
  }
}

function unservable({ routing }: Listener): readonly string[] {
  if (routing?.kind !== 'http') return NO_MESSAGES;
  const messages: string[] = [];
  for (const { hosts } of routing.sections) for (const host of hosts) messages.push(...faultsOf(host));
  return messages;
}

function contentOf(row: MapRow): string {
  return `${rowId(row)} ${row.value}`;
}

function without(rows: readonly MapRow[], refused: ReadonlyMap<string, string>): readonly MapRow[] {
  const rest = rows.filter((row) => !refused.has(contentOf(row)));
  if (rest.length === rows.length) return rows;
  const open = rows.filter((row) => GUARDS_OF_RULES.has(row.map) && refused.has(contentOf(row)));
  return open.reduce<readonly MapRow[]>((some, { key }) => closed(some, key), rest);
}

/** What leads to the rule leads to status 403. */
function closed(rows: readonly MapRow[], rule: string): readonly MapRow[] {
  return rows.map((row) =>
    isPath(row) || row.map === 'lists' ? { ...row, value: row.value.replaceAll(rule, FORBIDDEN) } : row,
  );
}
