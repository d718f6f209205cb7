// Compares two pushed texts by meaning: what differs in their servers, and the first other difference in words. Pure.
// The order of frontends, backends and servers means nothing, because Octavia's database has none.

import type { PushedText, Section } from './pushed-text.ts';
import type { ServerLine } from './server-line.ts';

export type MemberChange =
  | { readonly kind: 'added'; readonly backend: Section; readonly server: ServerLine }
  | { readonly kind: 'removed'; readonly backend: Section; readonly server: ServerLine }
  /** Only weight or `disabled` differ. */
  | {
      readonly kind: 'changed';
      readonly backend: Section;
      readonly before: ServerLine;
      readonly server: ServerLine;
    };

export interface Comparison {
  /** The first difference that is none of members, such as `bind of frontend LI differs`; '' if there is none. */
  readonly other: string;
  /** In the order of the next text; removed ones last. */
  readonly members: readonly MemberChange[];
}

export function compareTexts(running: PushedText, next: PushedText): Comparison {
  const doubt = running.doubt || next.doubt;
  if (doubt !== '') {
    const isSame = linesOf(running) === linesOf(next);
    return { other: isSame ? '' : `the text differs, and ${doubt}`, members: [] };
  }
  const members: MemberChange[] = [];
  const removed: MemberChange[] = [];
  for (const key of running.sections.keys())
    if (!next.sections.has(key)) return { other: `${key} is gone`, members: [] };
  for (const [key, after] of next.sections) {
    const before = running.sections.get(key);
    if (before === undefined) return { other: `${key} is new`, members: [] };
    const line = firstDifference(before.lines, after.lines);
    if (line !== undefined) return { other: `${subjectOf(line)} of ${key} differs`, members: [] };
    for (const server of after.servers.values()) {
      const known = before.servers.get(server.name);
      if (known === undefined) members.push({ kind: 'added', backend: after, server });
      else if (!isSameMember(known, server))
        return { other: `server ${server.name} of ${key} differs in more than its weight`, members: [] };
      else if (known.weight !== server.weight || known.isDisabled !== server.isDisabled)
        members.push({ kind: 'changed', backend: after, before: known, server });
    }
    for (const server of before.servers.values())
      if (!after.servers.has(server.name)) removed.push({ kind: 'removed', backend: after, server });
  }
  return { other: '', members: [...members, ...removed] };
}

/** True if only weight and `disabled` may differ. */
export function isSameMember(one: ServerLine, other: ServerLine): boolean {
  if (one.fault !== '' || other.fault !== '') return one.line === other.line;
  return (
    one.address === other.address &&
    one.port === other.port &&
    one.words.length === other.words.length &&
    one.words.every((word, at) => word === other.words[at])
  );
}

function firstDifference(before: readonly string[], after: readonly string[]): string | undefined {
  for (let at = 0; at < Math.max(before.length, after.length); at++)
    if (before[at] !== after[at]) return after[at] ?? before[at];
  return undefined;
}

/** `bind`, `option httpchk`, `timeout client`. */
function subjectOf(line: string): string {
  const [word = '', second = ''] = line.split(/\s+/);
  return /^(?:no|option|timeout|http-check|http-request|http-response|stick|tcp-request)$/.test(word)
    ? `${word} ${second}`
    : word;
}

function linesOf({ text }: PushedText): string {
  return text.replaceAll(/^\s+|\s+$/gm, '');
}
