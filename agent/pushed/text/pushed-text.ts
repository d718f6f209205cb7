// Reads a pushed haproxy.cfg into its sections, as far as a comparison by meaning needs it: nothing is judged. Pure.

import { readServerLine, type ServerLine } from './server-line.ts';

export interface Section {
  /** `frontend`, `backend`, `global`, ... */
  readonly kind: string;
  /** '' for none. */
  readonly name: string;
  /** Trimmed, without comments, without lines that have no meaning for the worker, and without servers. */
  readonly lines: readonly string[];
  /** By name. */
  readonly servers: ReadonlyMap<string, ServerLine>;
}

export interface PushedText {
  /** What HAProxy gets. */
  readonly text: string;
  /** By kind and name: `backend PO:LI`. */
  readonly sections: ReadonlyMap<string, Section>;
  /** Why the order of its lines could matter, so that only the same lines in the same order mean the same; '' if it cannot. */
  readonly doubt: string;
}

const KINDS = new Set(
  'global defaults peers frontend backend listen userlist resolvers mailers cache program http-errors ring log-forward fcgi-app'.split(
    ' ',
  ),
);
const PROXIES = new Set(['frontend', 'backend', 'listen']);
/** Lines of controllers for older images: the group is that of the image, and HAProxy 2.6 refuses `http-use-htx`. */
const OBSOLETE = /^\s*(?:group(?:\s|$)|option\s+http-use-htx(?:\s|$))/;
/** From the memory that is free at the moment of the push. */
const CHANCE = /^tune\.ssl\.cachesize\s/;
/** HAProxy takes no other character for a blank. */
const BLANKS_AROUND = /^[ \t]+|[ \t]+$/g;
const STATUS_CODES = /^(http-check expect rstatus )(\d{3}(?:\|\d{3})+)$/;

/** The text as HAProxy gets it. */
export function strippedText(text: string): string {
  return text
    .split('\n')
    .filter((line) => !OBSOLETE.test(line))
    .join('\n');
}

export function readText(pushed: string): PushedText {
  const text = strippedText(pushed);
  const sections = new Map<string, Section>();
  let doubt = '';
  let lines: string[] = [];
  let servers = new Map<string, ServerLine>();
  let hasProxy = false;
  let defaults = 0;
  for (const raw of text.split('\n')) {
    const line = raw.replace(BLANKS_AROUND, '');
    if (line === '' || line.startsWith('#') || CHANCE.test(line)) continue;
    const words = line.split(/[ \t]+/);
    const [kind = '', name = ''] = words;
    if (KINDS.has(kind)) {
      lines = [];
      servers = new Map();
      const key = words.join(' ');
      if (kind === 'defaults') defaults++;
      if (kind === 'defaults' && (hasProxy || defaults > 1))
        doubt ||= 'sections of defaults apply to what follows';
      if (words.length > 2) doubt ||= `the section "${key}" has more than a name`;
      if (sections.has(key)) doubt ||= `there are two sections "${key}"`;
      hasProxy ||= PROXIES.has(kind);
      sections.set(key, { kind, name, lines, servers });
    } else if (kind === 'server' && !servers.has(name)) {
      servers.set(name, readServerLine(line));
    } else {
      if (kind === 'server') doubt ||= `there are two servers "${name}" in a section`;
      if (kind.startsWith('.')) doubt ||= `the text has the condition "${kind}"`;
      if (sections.size === 0) doubt ||= 'a line is outside of the sections';
      lines.push(line.replace(STATUS_CODES, (_, before, codes) => before + sorted(codes)));
    }
  }
  return { text, sections, doubt };
}

function sorted(codes: string): string {
  return codes.split('|').sort().join('|');
}
