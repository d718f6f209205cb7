// Reads what HAProxy says about itself: the texts of `show info`, `show acl`, `show sess` and the master's `show proc`.
// Pure. A text that is not what it should be throws RUNTIME_REPLY with its words.

import type { Load } from '../../dataplane/status.ts';
import { integer, linesOf, unreadable } from './answer-text.ts';
import { parseVersion, type Version } from './version.ts';

export interface Info {
  readonly pid: number;
  readonly version: Version;
  /** An old worker that only waits for its connections to end. */
  readonly stopping: boolean;
  /** `description` of the global section, '' where it has none. */
  readonly description: string;
}

/** Of `show info`. */
export function parseInfo(text: string): Info {
  const what = 'info';
  const field = (name: string): string => {
    const value = infoField(text, name);
    if (value === undefined) throw unreadable(what, text, `no "${name}"`);
    return value;
  };
  return {
    pid: integer(what, text, field('Pid')),
    version: parseVersion(field('Version')),
    stopping: field('Stopping') !== '0',
    description: infoField(text, 'description') ?? '',
  };
}

/** Looked for, not picked from all that are there: this is asked every second, and of a hundred fields a few are used. */
function infoField(text: string, name: string): string | undefined {
  const begin = `${name}:`;
  const at = text.startsWith(begin) ? 0 : text.indexOf(`\n${begin}`) + 1;
  if (at === 0 && !text.startsWith(begin)) return undefined;
  const end = text.indexOf('\n', at);
  return text.slice(at + begin.length, end === -1 ? text.length : end).trim();
}

/** Of `show info`; 0 for what a version does not say. */
export function parseLoad(text: string): Load {
  const count = (name: string, otherwise = 0): number => {
    const value = infoField(text, name) ?? '';
    return /^\d{1,15}$/.test(value) ? Number(value) : otherwise;
  };
  return {
    connections: count('CurrConns'),
    connectionRate: count('ConnRate'),
    busy: 100 - count('Idle_pct', 100),
  };
}

/** Of `show acl #ID`: the patterns, in order. Each line is the entry's address in memory, a blank, the pattern. */
export function parseAcl(text: string): readonly string[] {
  const patterns: string[] = [];
  for (const line of linesOf(text)) {
    if (line === '') continue;
    const [, pattern] = /^0x[0-9a-f]+ (.+)$/.exec(line) ?? [];
    if (pattern === undefined) throw unreadable('ACL', line);
    patterns.push(pattern);
  }
  return patterns;
}

export interface AclPlace {
  /** As `-u` in the file, or HAProxy's own. */
  readonly id: number;
  /** The line of the file that it stands in. */
  readonly line: number;
}

/** Of `show acl`: where each ACL stands. One by one, as there may be thousands. */
export function* parseAclList(text: string): Generator<AclPlace, void, void> {
  const rows = linesOf(text);
  if (rows.next().value !== '# id (file) description') throw unreadable('ACLs', text);
  for (const row of rows) {
    const [, id, line] = /^(\d{1,10}) \(.*\bline (\d{1,10})\b/.exec(row) ?? [];
    if (row !== '' && (id !== undefined || line !== undefined)) yield { id: Number(id), line: Number(line) };
  }
}

export interface Session {
  /** By which HAProxy is told of it. */
  readonly pointer: string;
  readonly backend: string;
  readonly server: string;
}

/** Of `show sess`: those that have a server. One by one, as there may be very many. */
export function* parseSessions(text: string): Generator<Session, void, void> {
  for (const row of linesOf(text)) {
    const [, pointer, backend, server] = /^(0x[0-9a-f]{1,16}): .* be=(\S+) srv=([^\s<]\S*) /.exec(row) ?? [];
    if (pointer !== undefined && backend !== undefined && server !== undefined)
      yield { pointer, backend, server };
  }
}

export interface Process {
  readonly pid: number;
  /** How many reloads it has seen. */
  readonly reloads: number;
}

export interface Processes {
  /** `failed`: reloads that failed since the last one that did not. */
  readonly master: Process & { readonly failed: number };
  /** Empty on 3.1 and newer after a failed reload: then the one that serves is among `oldWorkers`. */
  readonly workers: readonly Process[];
  readonly oldWorkers: readonly Process[];
}

/** Pid, type, reloads, failed; the uptime, which 2.6 lets go below zero when the clock was set back, be it by days, is only begun. */
const PROCESS = /^(\d{1,10}) +(\S+) +(\d{1,10})(?: \[failed: (\d{1,10})\])? +-?\d{1,10}d/;

/** Of the master's `show proc`. */
export function parseShowProc(text: string): Processes {
  let master: Processes['master'] | undefined;
  let section: Process[] | undefined;
  const workers: Process[] = [];
  const oldWorkers: Process[] = [];
  for (const line of linesOf(text)) {
    if (line.startsWith('#')) {
      section = { '# workers': workers, '# old workers': oldWorkers }[line.trimEnd()];
      continue;
    }
    if (line === '') continue;
    const row = PROCESS.exec(line);
    if (row === null) throw unreadable('processes', line);
    const [, pid, type, reloads, failed] = row;
    const process = { pid: Number(pid), reloads: Number(reloads) };
    if (type === 'master') master = { ...process, failed: Number(failed ?? 0) };
    else section?.push(process);
  }
  if (master === undefined) throw unreadable('processes', text, 'no master');
  return { master, workers, oldWorkers };
}
