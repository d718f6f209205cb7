// Decides how a worker gets from the text that it runs to the next one: by nothing, by commands, or by a reload. Only what
// was tried on HAProxy is a command; everything else, and every doubt, is a reload. Pure.
// Why: docs/design/decisions/0086-a-pushed-text-is-the-truth.md

import type { Command, SetServerState } from '../../haproxy/socket/commands.ts';
import { compareTexts, isSameMember, type MemberChange } from './compare.ts';
import type { PushedText, Section } from './pushed-text.ts';
import { SERVER_NAME, type ServerLine } from './server-line.ts';

/** A text and the files that it names. */
export interface TextWithFiles {
  readonly text: PushedText;
  /** MD5 by path; '' for a file that cannot be read. */
  readonly files: ReadonlyMap<string, string>;
}

export interface RunningText extends TextWithFiles {
  /** Removed servers that HAProxy still lists, in maintenance, by backend and name. */
  readonly leaving: ReadonlyMap<string, ReadonlyMap<string, ServerLine>>;
  /** A new server may have a cookie; older versions of HAProxy refuse it. */
  readonly takesCookies: boolean;
}

export type PushPlan =
  | { readonly kind: 'none' }
  | { readonly kind: 'commands'; readonly commands: readonly Command[] }
  /** `cause`: a phrase for the log and the status. */
  | { readonly kind: 'reload'; readonly cause: string };

/** Lines of a backend with which a server that was added behaves as one of the file: tried on 2.6.12, 3.0, 3.2 and 3.4. */
const TRIED: readonly RegExp[] = [
  /^mode (?:tcp|http)$/,
  /^http-reuse safe$/,
  /^balance (?:roundrobin|leastconn)$/,
  /^stick-table type (?:ip|ipv6|string) /,
  /^stick (?:on src$|store-response res\.cook\(|match req\.cook\()/,
  /^load-server-state-from-file global$/,
  /^timeout (?:check|connect|server) /,
  /^option (?:allbackups|forwardfor)$/,
  /^option httpchk /,
  /^http-check (?:send|expect) /,
  /^http-request set-header /,
  /^fullconn \d+$/,
  /^(?:no log|log global)$/,
];

/** Tried from 3.0 on. */
const COOKIE = /^cookie SRV insert indirect nocache$/;

export function planPush(running: RunningText, next: TextWithFiles): PushPlan {
  const { other, members } = compareTexts(running.text, next.text);
  if (other !== '') return reload(other);
  const file = changedFile(running.files, next.files);
  if (file !== undefined) return reload(`the content of ${file} differs`);
  if (members.length === 0) return { kind: 'none' };
  const commands: Command[] = [];
  for (const member of members) {
    const change = commandsFor(member, running);
    if (typeof change === 'string')
      return reload(
        `server ${member.server.name} of ${member.backend.name} is ${WORD[member.kind]}: ${change}`,
      );
    commands.push(...change);
  }
  return { kind: 'commands', commands };
}

const WORD = { added: 'new', removed: 'gone', changed: 'changed' } as const;

function reload(cause: string): PushPlan {
  return { kind: 'reload', cause };
}

function changedFile(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): string | undefined {
  for (const [path, digest] of after) if (before.get(path) !== digest) return path;
  return undefined;
}

/** The commands, or why they need a reload. */
function commandsFor(
  change: MemberChange,
  { leaving, takesCookies }: RunningText,
): readonly Command[] | string {
  const { backend, server } = change;
  if (!SERVER_NAME.test(backend.name)) return 'the name of its backend has a character that no pool has';
  if (server.fault !== '') return server.fault;
  if (backend.kind !== 'backend') return `it is in a section ${backend.kind}`;
  const at = { backend: backend.name, server: server.name };
  if (change.kind === 'removed') return [{ kind: 'SetServerState', ...at, state: 'maint' }];
  if (change.kind === 'changed') return updates(change.before, server, backend);
  const listed = leaving.get(backend.name)?.get(server.name);
  if (listed === undefined) return additions(server, backend, takesCookies);
  if (!isSameMember(listed, server)) return 'HAProxy still has another one of this name';
  // In maintenance whatever the text said of it.
  return updates({ ...listed, isDisabled: true }, server, backend);
}

function updates(
  before: ServerLine,
  after: ServerLine,
  { name: backend, lines }: Section,
): readonly Command[] | string {
  const at = { backend, server: after.name };
  const commands: Command[] = [];
  if (before.weight !== after.weight) {
    const balance = lines.find((line) => line.startsWith('balance '));
    const isStatic = balance === 'balance source' && after.weight !== 0;
    if (isStatic || !/^balance (?:roundrobin|leastconn|source)$/.test(balance ?? ''))
      return `its weight cannot be set with "${balance ?? 'no balance'}"`;
    commands.push({ kind: 'SetServerWeight', ...at, weight: after.weight });
  }
  if (before.isDisabled && !after.isDisabled) commands.push(...readied(after, at));
  if (!before.isDisabled && after.isDisabled)
    commands.push({ kind: 'SetServerState', ...at, state: 'maint' });
  return commands;
}

function additions(
  server: ServerLine,
  { name: backend, lines }: Section,
  takesCookies: boolean,
): readonly Command[] | string {
  // With `option external-check` it would kill the worker, with `balance source` it is refused.
  const tried = takesCookies ? [...TRIED, COOKIE] : TRIED;
  const untried = lines.find((line) => !tried.some((known) => known.test(line)));
  if (untried !== undefined) return `"${untried}" was not tried with a new server`;
  if (!lines.some((line) => line.startsWith('balance '))) return 'its backend has no balance';
  if (server.words.includes('cookie') && !takesCookies) return 'this HAProxy takes no cookie of a new server';
  const words = wordsAtRuntime(server.words);
  const at = { backend, server: server.name };
  const keywords = ['weight', String(server.weight), ...words];
  return [
    { kind: 'AddServer', ...at, address: server.address, port: server.port, keywords },
    ...(server.isDisabled ? [] : readied(server, at)),
  ];
}

/** The check of a server that was added is off until then; for others the command changes nothing. */
function readied({ words }: ServerLine, at: Pick<SetServerState, 'backend' | 'server'>): readonly Command[] {
  const ready: Command = { kind: 'SetServerState', ...at, state: 'ready' };
  return words.includes('check') ? [ready, { kind: 'EnableHealth', ...at }] : [ready];
}

/**
 * The words with which a server at runtime is checked as one of the file is: there, without an own address or port of the
 * check, `ssl` and `send-proxy` hold for the check as well.
 */
function wordsAtRuntime(words: readonly string[]): readonly string[] {
  if (!words.includes('check') || words.includes('addr') || words.includes('port')) return words;
  const more: string[] = [];
  if (words.includes('ssl') && !words.includes('check-ssl')) more.push('check-ssl');
  if (words.some((word) => word.startsWith('send-proxy'))) more.push('check-send-proxy');
  return [...words, ...more];
}
