// Lets HAProxy check a file, and finds out from its alerts, or by further checks, which part of the file is at fault.
// Why: docs/design/decisions/0018-check-what-is-new.md

import { runCommand } from '../../host/run-command.ts';
import { listenersIn } from '../../model/names.ts';
import { whyUnbindable } from './bind-probe.ts';

export interface CheckResult {
  readonly ok: boolean;
  /** The alerts, without HAProxy's prefix. */
  readonly alerts: readonly string[];
  /** Names of the listeners that the alerts name, or in whose sections their lines are. */
  readonly listeners: ReadonlySet<string>;
}

const TIMEOUT_MS = 60_000;
/** Niceness: the check must not delay traffic. */
const NICE = 10;

/** `text`: the content of the file, for alerts that name only a line. Errors: COMMAND_FAILED. */
export async function checkConfig(executable: string, path: string, text: string): Promise<CheckResult> {
  const { exitCode, stderr } = await runCommand(executable, ['-c', '-f', path], {
    timeout: TIMEOUT_MS,
    nice: NICE,
  });
  return exitCode === 0 ? { ok: true, alerts: [], listeners: new Set() } : readAlerts(stderr, text);
}

/** Reads the output of a failed check, start or reload. */
export function readAlerts(output: string, text: string): CheckResult {
  const alerts = output
    .split('\n')
    .filter((line) => line.startsWith('[ALERT]'))
    .map((line) => line.replace(/^\[ALERT\]\s*(\(\d+\))?\s*:\s*/, ''));
  const listeners = new Set<string>();
  for (const alert of alerts) {
    for (const name of listenersIn(alert)) listeners.add(name);
    const line = /parsing \[[^\]]*:(\d+)\]/i.exec(alert)?.[1];
    if (line !== undefined) {
      const section = sectionAt(text, Number(line));
      if (section !== undefined) listeners.add(section);
    }
  }
  return { ok: false, alerts, listeners };
}

export interface BindFailure {
  readonly address: string;
  readonly port: number;
  /** A phrase without a full stop. */
  readonly reason: string;
}

/**
 * The addresses for which HAProxy could not have a socket, and the rest of its output, without lines by which the system had
 * nothing left for a socket: these name a listener that is not at fault.
 */
export function splitBindFailures(output: string): {
  readonly failures: readonly BindFailure[];
  readonly rest: string;
} {
  const failures: BindFailure[] = [];
  const rest: string[] = [];
  for (const line of output.split('\n')) {
    const [, words, address, digits] = BIND_FAILURE.exec(line) ?? [];
    if (words === undefined || address === undefined) {
      rest.push(line);
      continue;
    }
    const port = Number(digits);
    const code = CODES[words];
    const reason = code === undefined ? `HAProxy reports: ${words}` : whyUnbindable(code, address, port);
    if (reason !== undefined) failures.push({ address, port, reason });
  }
  return { failures, rest: rest.join('\n') };
}

/** The C library's messages for the codes that probeBind() gets. */
const CODES: Readonly<Record<string, string>> = {
  'Address already in use': 'EADDRINUSE',
  'Cannot assign requested address': 'EADDRNOTAVAIL',
  'Permission denied': 'EACCES',
  'Address family not supported by protocol': 'EAFNOSUPPORT',
  'Protocol not supported': 'EPROTONOSUPPORT',
  'Too many open files': 'EMFILE',
  'Too many open files in system': 'ENFILE',
  'Cannot allocate memory': 'ENOMEM',
  'No buffer space available': 'ENOBUFS',
};

/** The same from 2.6 to 3.4; an IPv6 address has no further brackets. */
const BIND_FAILURE =
  /cannot (?:create receiving|bind|listen to) socket \(([^)]+)\) for \[([0-9a-f:.]+):(\d+)\]/;

/** The listener whose section has this line (from 1). */
function sectionAt(text: string, line: number): string | undefined {
  const lines = text.split('\n');
  for (let at = Math.min(line, lines.length) - 1; at >= 0; at--) {
    const name = /^(?:listen|frontend|backend|global|defaults|peers)\s+(\S+)/.exec(lines[at] ?? '')?.[1];
    if (name !== undefined) return listenersIn(name)[0];
  }
  return undefined;
}
