// Refuses what no template of Octavia writes and what would reach beyond the load balancer: the controller has passed on
// lines in values of its users before (CVE-2026-94571, CVE-2026-94572), and HAProxy starts as root. Pure.

import type { PushedText } from './pushed-text.ts';

const SECTIONS = new Set(['global', 'defaults', 'peers', 'frontend', 'backend']);
/** Lines of a global section, by their first word; others are tuning, which concerns only this HAProxy. */
const GLOBAL: Readonly<Record<string, RegExp>> = {
  user: /^user nobody$/,
  'external-check': /^external-check$/,
  'insecure-fork-wanted': /^insecure-fork-wanted$/,
};
const GLOBAL_TUNING =
  /^(?:daemon|log|log-tag|stats|server-state-file|no|max[a-z]+|nbthread|thread[a-z-]*|cpu-[a-z]+|numa-cpu-mapping|tune\.[a-z0-9.-]+|ssl-(?:default|dh)[a-z-]+|hard-stop-after|close-spread-time|spread-checks|busy-polling|h[12]-[a-z-]+)$/;
/** First words that no section of Octavia has. HAProxy takes a quoted word for a keyword as well. */
const FOREIGN =
  /^(?:[^a-z]|lua-|filter|errorfile|http-errors|email-alert|dispatch|use-fcgi-app|stats|source)/;
/** HAProxy reads `unix@`, `fd@` and others, and paths, as sockets of the host. */
const LOCAL_SOCKET = /^(?:bind|server \S+) +(?:["'\\/]|\S*@)/;
/** The program of the image that checks by ping, which is not below another base. */
const PING = '/var/lib/octavia/ping-wrapper.sh';
/** No more than HAProxy reads of a line (LINESIZE grows, MAX_LINE_ARGS does not). */
const MAX_LINE_BYTES = 16 * 1024;

/** Headers of the kinds that HAProxy knows: a second section of a name is not among the sections that were read. */
const HEADERS =
  /^[ \t]*(?:global|defaults|peers|frontend|backend|listen|userlist|resolvers|mailers|cache|program|http-errors|ring|log-forward|fcgi-app)(?=[ \t]|$)/gm;

/** Why the text is refused, with the line; '' if it is not. `base`: the folder of the controller's files. */
export function reachBeyond({ text, sections }: PushedText, base: string): string {
  for (const [at, line] of text.split('\n').entries()) {
    const fault = unprintable(line);
    if (fault !== '') return `line ${at + 1} ${fault}`;
  }
  if (text.match(HEADERS)?.length !== sections.size) return 'there are two sections of one name';
  for (const [key, { kind, lines, servers }] of sections) {
    if (!SECTIONS.has(kind)) return `the section "${key}" is none of Octavia's`;
    if (kind !== 'backend' && servers.size > 0) return `the section "${key}" has servers`;
    for (const line of lines) {
      const fault = kind === 'global' ? globalFault(line, base) : proxyFault(line, base);
      if (fault !== '') return `"${line.slice(0, 200)}" of ${key} ${fault}`;
    }
    for (const { line } of servers.values())
      if (LOCAL_SOCKET.test(line)) return `"${line.slice(0, 200)}" of ${key} is a socket of this host`;
  }
  return '';
}

function unprintable(line: string): string {
  // HAProxy ends a line at some of these, and the reader of texts would go on.
  if (/[^\P{Cc}\t\u0080-\u009f]/u.test(line)) return 'has a control character';
  return Buffer.byteLength(line) > MAX_LINE_BYTES ? `has more than ${MAX_LINE_BYTES} bytes` : '';
}

function globalFault(line: string, base: string): string {
  const [word = ''] = line.split(' ');
  if (GLOBAL[word] !== undefined) return GLOBAL[word].test(line) ? '' : "is none of Octavia's lines";
  if (!GLOBAL_TUNING.test(word)) return "is none of Octavia's lines";
  if (word === 'stats') return isSocketOf(line, base) ? '' : 'is another socket than that of level user';
  if (word === 'server-state-file')
    return isBelow(line.split(' ')[1] ?? '', base) ? '' : `is not below ${base}`;
  return '';
}

function proxyFault(line: string, base: string): string {
  if (FOREIGN.test(line)) return "is none of Octavia's lines";
  if (LOCAL_SOCKET.test(line)) return 'is a socket of this host';
  if (!/^external-check /.test(line)) return '';
  const program = /^external-check command (\S+)$/.exec(line)?.[1] ?? '';
  const isPing = program === PING || (isBelow(program, base) && program.endsWith('/ping-wrapper.sh'));
  return isPing ? '' : 'is no program of the image';
}

function isSocketOf(line: string, base: string): boolean {
  const path = /^stats socket (\S+) mode 0666 level user$/.exec(line)?.[1] ?? '';
  return isBelow(path, base) && path.endsWith('.sock');
}

function isBelow(path: string, base: string): boolean {
  return path.startsWith(`${base}/`) && !path.split('/').includes('..');
}
