// Reads `show stat LISTENER 7 -1`: what one listener and its members do now, as HAProxy sees it, with what they do in the
// second backend that a listener may have.

import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import type { ListenerStats, ServerStats } from '../../dataplane/status.ts';
import { fallbackBackend } from '../../model/names.ts';
import type { Runtime } from './runtime.ts';

const COLUMNS = ['svname', 'type', 'scur', 'rate'] as const;
/** Of the column `type`. */
const FRONTEND = '0';
const BACKEND = '1';
const SERVER = '2';

/** Errors: as Runtime.ask(), and RUNTIME_REPLY where HAProxy has no such listener. */
export async function readListenerStats(
  runtime: Pick<Runtime, 'ask'>,
  listener: string,
): Promise<ListenerStats> {
  const ask = (name: string) => runtime.ask(`show stat ${name} 7 -1`, { lane: 'bulk' });
  const own = await ask(listener);
  // Where all members are down it is the second backend, if it has one, that has the connections.
  const fallback = await ask(fallbackBackend(listener));
  return parseListenerStats(own, ...(fallback.startsWith('#') ? [fallback] : []));
}

/** Of each backend of the listener its own text. Errors: RUNTIME_REPLY with HAProxy's words, such as "No such proxy." */
export function parseListenerStats(...texts: readonly string[]): ListenerStats {
  const servers = new Map<string, ServerStats>();
  let frontend: ServerStats | undefined;
  let backends: ServerStats = { sessions: 0, sessionRate: 0 };
  for (const { name, type, ...row } of texts.flatMap(rowsOf)) {
    if (type === FRONTEND) frontend = row;
    else if (type === BACKEND) backends = sum(backends, row);
    else if (type === SERVER) servers.set(name, sum(servers.get(name), row));
  }
  // Before 2.8 a listener is a backend and a frontend of one name, of which HAProxy tells the first one only.
  return { ...(frontend ?? backends), servers };
}

function sum(one: ServerStats = { sessions: 0, sessionRate: 0 }, other: ServerStats): ServerStats {
  return { sessions: one.sessions + other.sessions, sessionRate: one.sessionRate + other.sessionRate };
}

function rowsOf(text: string): readonly (ServerStats & { readonly name: string; readonly type: string })[] {
  const [header = '', ...rows] = text.split('\n');
  const names = header.replace(/^# /, '').split(',');
  const at = COLUMNS.map((name) => names.indexOf(name));
  if (at.includes(-1))
    throw new HeadgateError('RUNTIME_REPLY', `Cannot read HAProxy's statistics: ${quote(text.trim())}`);
  return rows.map((row) => {
    const fields = fieldsOf(row);
    const [name = '', type = '', current, rate] = at.map((index) => fields[index]);
    return { name, type, sessions: Number(current), sessionRate: Number(rate) };
  });
}

/** Of a line of CSV, in which a text may stand in quotes that are doubled inside it. */
function fieldsOf(row: string): readonly string[] {
  if (!row.includes('"')) return row.split(',');
  const fields = row.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g);
  return [...fields].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '');
}
