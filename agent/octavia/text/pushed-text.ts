// Reads from a pushed haproxy.cfg what the agent reports: listeners, pools with members, and the files that the text names.
// Whether the text is valid is HAProxy's to say. Pure.

export interface PushedText {
  readonly listeners: readonly TextListener[];
  readonly pools: readonly TextPool[];
  /** Paths of certificates, lists of certificates, authorities and CRLs. */
  readonly files: ReadonlySet<string>;
}

export interface TextListener {
  readonly id: string;
  readonly type: 'HTTP' | 'TCP' | 'TERMINATED_HTTPS';
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

export function readPushedText(text: string): PushedText {
  const listeners: TextListener[] = [];
  const pools: TextPool[] = [];
  const files = new Set<string>();
  for (const { kind, name, lines } of sectionsOf(text)) {
    for (const line of lines) for (const file of filesOf(line)) files.add(file);
    if (isInternal(name)) continue;
    if (kind === 'frontend') listeners.push({ id: name, type: typeOf(lines) });
    if (kind !== 'backend') continue;
    const [pool = '', listener = ''] = name.split(':');
    const members = lines.flatMap((line) => /^server (\S+)/.exec(line)?.[1] ?? []);
    pools.push({ name, pool, listener, members });
  }
  return { listeners, pools, files };
}

interface Section {
  readonly kind: string;
  readonly name: string;
  readonly lines: string[];
}

const SECTION = /^(global|defaults|peers|frontend|backend|listen)\b\s*(\S*)/;

function sectionsOf(text: string): readonly Section[] {
  const sections: Section[] = [];
  for (const raw of text.split('\n')) {
    const line = raw.trim();
    const [, kind, name = ''] = SECTION.exec(line) ?? [];
    if (kind !== undefined && !/^\s/.test(raw)) sections.push({ kind, name, lines: [] });
    else if (line !== '') sections.at(-1)?.lines.push(line);
  }
  return sections;
}

/** As Octavia's agent: a frontend with a certificate is TERMINATED_HTTPS, whatever its mode. */
function typeOf(lines: readonly string[]): TextListener['type'] {
  if (lines.some((line) => /^bind .*\bcrt(-list)?\b/.test(line))) return 'TERMINATED_HTTPS';
  return lines.includes('mode http') ? 'HTTP' : 'TCP';
}

function filesOf(line: string): readonly string[] {
  if (!/^(bind|server|default-server) /.test(line)) return [];
  return [...line.matchAll(/ (?:crt|crt-list|ca-file|crl-file) (\/\S+)/g)].map(([, file = '']) => file);
}
