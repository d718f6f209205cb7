// Reads `show stat LISTENER 7 -1`: what one listener and its members do now, as HAProxy sees it. Pure.

import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';

export interface ListenerStats {
  /** Sessions now, and new ones in the last second. */
  readonly sessions: number;
  readonly sessionRate: number;
  /** By the server's name. */
  readonly servers: ReadonlyMap<string, ServerStats>;
}

export interface ServerStats {
  readonly sessions: number;
  readonly sessionRate: number;
}

const COLUMNS = ['svname', 'type', 'scur', 'rate'] as const;
/** Of the column `type`. */
const FRONTEND = '0';
const BACKEND = '1';
const SERVER = '2';

/** Errors: RUNTIME_REPLY with HAProxy's words, such as "No such proxy." */
export function parseListenerStats(text: string): ListenerStats {
  const [header = '', ...rows] = text.split('\n');
  const names = header.replace(/^# /, '').split(',');
  const at = COLUMNS.map((name) => names.indexOf(name));
  if (at.includes(-1))
    throw new HeadgateError('RUNTIME_REPLY', `Cannot read HAProxy's statistics: ${quote(text.trim())}`);
  let [sessions, sessionRate, hasFrontend] = [0, 0, false];
  const servers = new Map<string, ServerStats>();
  for (const row of rows) {
    const fields = fieldsOf(row);
    const [name = '', type, current, rate] = at.map((index) => fields[index]);
    // Before 2.8 a listener is a backend and a frontend of one name, of which HAProxy tells the first one only.
    if (type === FRONTEND || (type === BACKEND && !hasFrontend))
      [sessions, sessionRate, hasFrontend] = [Number(current), Number(rate), type === FRONTEND];
    if (type !== SERVER) continue;
    servers.set(name, { sessions: Number(current), sessionRate: Number(rate) });
  }
  return { sessions, sessionRate, servers };
}

/** Of a line of CSV, in which a text may stand in quotes that are doubled inside it. */
function fieldsOf(row: string): readonly string[] {
  if (!row.includes('"')) return row.split(',');
  const fields = row.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g);
  return [...fields].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '');
}
