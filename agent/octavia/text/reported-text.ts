// What the agent reports of a pushed haproxy.cfg: listeners, pools with members, and the files that the text names. Pure.

import { filesOf } from '../../pushed/text/named-files.ts';
import { readText } from '../../pushed/text/pushed-text.ts';

export interface ReportedText {
  readonly listeners: readonly TextListener[];
  readonly pools: readonly TextPool[];
  /** Paths of certificates, lists of certificates, authorities and CRLs. */
  readonly files: ReadonlySet<string>;
}

export interface TextListener {
  readonly id: string;
  readonly type: 'HTTP' | 'TCP' | 'TERMINATED_HTTPS';
  /** `ADDRESS:PORT`; '' if it has none. */
  readonly bind: string;
}

/** A backend: one pool of one listener. */
export interface TextPool {
  /** `POOL:LISTENER`. */
  readonly name: string;
  readonly pool: string;
  readonly listener: string;
  readonly members: readonly string[];
}

/** Octavia's own frontend and backend for its PROMETHEUS listeners are no listener and no pool of a user. */
export function isInternal(name: string): boolean {
  return name.includes('prometheus');
}

export function readReported(text: string): ReportedText {
  const listeners: TextListener[] = [];
  const pools: TextPool[] = [];
  for (const { kind, name, lines, servers } of readText(text).sections.values()) {
    if (isInternal(name)) continue;
    if (kind === 'frontend') listeners.push({ id: name, type: typeOf(lines), bind: bindOf(lines) });
    if (kind !== 'backend') continue;
    const [pool = '', listener = ''] = name.split(':');
    pools.push({ name, pool, listener, members: [...servers.keys()] });
  }
  return { listeners, pools, files: filesOf(text).files };
}

/** As Octavia's agent: a frontend with a certificate is TERMINATED_HTTPS, whatever its mode. */
function typeOf(lines: readonly string[]): TextListener['type'] {
  if (lines.some((line) => /^bind .*\bcrt(-list)?\b/.test(line))) return 'TERMINATED_HTTPS';
  return lines.includes('mode http') ? 'HTTP' : 'TCP';
}

function bindOf(lines: readonly string[]): string {
  const bind = lines.find((line) => line.startsWith('bind '));
  return bind?.split(/\s+/)[1]?.replace(/,$/, '') ?? '';
}
