// Reads the answers to `show info`, `show acl`, `show sess` and the master's `show proc`. Pure. An answer that is
// something else throws RUNTIME_REPLY with its text.

import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import type { Load } from '../../dataplane/status.ts';
import { parseVersion, type Version } from './version.ts';

export interface Info {
  readonly pid: number;
  /** Pid and start time: no two workers have the same. */
  readonly id: string;
  readonly version: Version;
  /** An old worker that only waits for its connections to end. */
  readonly stopping: boolean;
  /** `description` of the global section; '' for none. */
  readonly description: string;
  /** A field by its name; NaN if this version does not have it. */
  readonly number: (name: string) => number;
}

/** Parses `show info`. */
export function parseInfo(text: string): Info {
  const fields = new Map(
    text.split('\n').map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    }),
  );
  const field = (name: string): string => {
    const value = fields.get(name);
    if (value === undefined) throw unreadable('info', text, `no "${name}"`);
    return value;
  };
  const pid = integer('info', text, field('Pid'));
  const number = (name: string): number => Number.parseInt(fields.get(name) ?? '', 10);
  return {
    pid,
    id: `${pid} ${number('Start_time_sec')}`,
    version: parseVersion(field('Version')),
    stopping: field('Stopping') !== '0',
    description: fields.get('description') ?? '',
    number,
  };
}

/** 0 for what this version does not report. */
export function loadOf({ number }: Info): Load {
  const idlePercent = number('Idle_pct');
  return { busy: Number.isNaN(idlePercent) ? 0 : 100 - idlePercent };
}

/** Parses `show acl #ID`: the patterns, in order. A line has the entry's address in memory and the pattern. */
export function parseAcl(text: string): readonly string[] {
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [, pattern] = /^0x[0-9a-f]+ (.+)$/.exec(line) ?? [];
      if (pattern === undefined) throw unreadable('ACL', line);
      return pattern;
    });
}

export interface AclPosition {
  /** The number after `-u` in the file, or HAProxy's own. */
  readonly id: number;
  /** The ACL's line in the file. */
  readonly line: number;
}

/** Parses `show acl`: the position of each ACL. A generator, because there may be thousands. */
export function* parseAclList(text: string): Generator<AclPosition, void, void> {
  const rows = linesOf(text);
  if (rows.next().value !== '# id (file) description') throw unreadable('ACLs', text);
  for (const row of rows) {
    const [, id, line] = /^(\d{1,10}) \(.*\bline (\d{1,10})\b/.exec(row) ?? [];
    if (row !== '' && (id !== undefined || line !== undefined)) yield { id: Number(id), line: Number(line) };
  }
}

/** A certificate as HAProxy shows it. */
export interface ShownCertificate {
  readonly sha1: string;
  readonly chainLength: number;
}

/** Parses `show ssl cert FILE`; undefined if the worker has none of that file. */
export function parseCertificate(text: string): ShownCertificate | undefined {
  const sha1 = /^SHA1 FingerPrint: ([0-9A-F]{40})$/m.exec(text)?.[1];
  if (sha1 === undefined) return undefined;
  return { sha1, chainLength: text.match(/^Chain Subject: /gm)?.length ?? 0 };
}

/** Parses `show ssl crt-list FILE`: the files of certificates, in order; none for an unknown list. */
export function parseCrtList(text: string): readonly string[] {
  const [title = '', ...lines] = text.split('\n');
  if (!title.startsWith('# ')) return [];
  return lines.map((line) => line.split(' ')[0] ?? '').filter((file) => file !== '');
}

/**
 * Parses `show map FILE`: an address in memory, the key, the value. None for a map that no rule reads. A generator, because
 * there may be very many.
 */
export function* parseMap(
  text: string,
): Generator<{ readonly key: string; readonly value: string }, void, void> {
  if (text.startsWith('Unknown map identifier')) return;
  for (const line of linesOf(text)) {
    if (line === '') continue;
    const [, key, value] = /^0x[0-9a-f]+ (\S+) (.*)$/.exec(line) ?? [];
    if (key === undefined || value === undefined) throw unreadable('map', line);
    yield { key, value };
  }
}

/** Parses `show stat -1 1 -1`: the frontends that an order has disabled. */
export function disabledFrontends(text: string): ReadonlySet<string> {
  const [header = '', ...rows] = text.split('\n');
  const status = header.split(',').indexOf('status');
  if (status === -1) throw unreadable('frontends', text.slice(0, 200));
  return new Set(
    rows
      .map((row) => row.split(',', status + 1))
      .flatMap((fields) => (fields[status] === 'PAUSED' ? fields.slice(0, 1) : [])),
  );
}

export interface Session {
  /** HAProxy's name for the session in commands. */
  readonly pointer: string;
  readonly backend: string;
  readonly server: string;
}

/** Parses `show sess`: the sessions that have a server. A generator, because there may be very many. */
export function* parseSessions(text: string): Generator<Session, void, void> {
  for (const row of linesOf(text)) {
    const [, pointer, backend, server] = /^(0x[0-9a-f]{1,16}): .* be=(\S+) srv=([^\s<]\S*) /.exec(row) ?? [];
    if (pointer !== undefined && backend !== undefined && server !== undefined)
      yield { pointer, backend, server };
  }
}

export interface Process {
  readonly pid: number;
  /** Reloads since it started. */
  readonly reloads: number;
}

export interface Processes {
  /** `failed`: failed reloads since the last successful one. */
  readonly master: Process & { readonly failed: number };
  /** Empty on 3.1 and newer after a failed reload: the worker that serves is then in `oldWorkers`. */
  readonly workers: readonly Process[];
  readonly oldWorkers: readonly Process[];
}

/** Pid, type, reloads, failed, the begin of the uptime. The uptime of 2.6 is negative after the clock was set back. */
const PROCESS = /^(\d{1,10}) +(\S+) +(\d{1,10})(?: \[failed: (\d{1,10})\])? +-?\d{1,10}d/;

/** Parses the master's `show proc`. */
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

/** The entries of `show table` that have a server. */
export function parseTable(text: string): readonly { readonly address: string; readonly memberId: number }[] {
  return Array.from(
    text.matchAll(/^0x[0-9a-f]{1,16}: key=([0-9a-f.:]{2,45}) .*\bserver_id=([1-9]\d{0,9})\b/gm),
    ([, address = '', id]) => ({ address, memberId: Number(id) }),
  );
}

function* linesOf(text: string): Generator<string, undefined, void> {
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf('\n', from);
    yield end === -1 ? text.slice(from) : text.slice(from, end);
    if (end === -1) return;
    from = end + 1;
  }
}

function integer(what: string, text: string, value: string): number {
  if (!/^-?\d{1,15}$/.test(value)) throw unreadable(what, text, `${quote(value)} is not a number`);
  return Number(value);
}

export function unreadable(what: string, text: string, detail?: string): HeadgateError {
  const why = detail === undefined ? '' : `: ${detail}`;
  return new HeadgateError('RUNTIME_REPLY', `Cannot read HAProxy's ${what}${why}: ${quote(text.trim())}`);
}
