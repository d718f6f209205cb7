// The agent's log: one line per event to stdout. JSON for machines, with journald's priority in front where journald
// reads it, short plain lines on a terminal. Secrets are blanked out; a call never throws.

import { fstatSync, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { HeadgateError, messageOf } from '../base/errors.ts';

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error';

/** Values that are errors are logged as their message, with the stack where the error is none of ours. */
export type LogFields = Readonly<Record<string, unknown>>;

export interface Log {
  trace(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A log whose every line has `fields`, too. */
  child(fields: LogFields): Log;
  /** Changes the least level that is logged, of this log, its parent and all its children. */
  setLevel(level: LogLevel): void;
}

/** `journal`: JSON without a time, a syslog priority in front. `terminal`: for people. */
export type LogFormat = 'json' | 'journal' | 'terminal';

/** Takes whole lines; may throw. */
export interface LogDestination {
  write(line: string): unknown;
}

export interface LogOptions {
  readonly level: LogLevel;
  readonly destination?: LogDestination;
  readonly format?: LogFormat;
}

/** Without a destination to stdout, in the format that suits what stdout is. */
export function createLog({ level, destination = descriptor(1), format = formatOf(1) }: LogOptions): Log {
  return logWith({ format, destination, least: LEVELS.indexOf(level) }, {});
}

/** What descriptor `fd` suggests; journald says which descriptor it reads: https://systemd.io/JOURNAL_NATIVE_PROTOCOL/ */
export function formatOf(fd: number, env: NodeJS.ProcessEnv = process.env): LogFormat {
  if (isatty(fd)) return 'terminal';
  try {
    const { dev, ino } = fstatSync(fd);
    return env.JOURNAL_STREAM === `${dev}:${ino}` ? 'journal' : 'json';
  } catch {
    return 'json';
  }
}

/** From the least to the most urgent. */
const LEVELS: readonly LogLevel[] = ['trace', 'debug', 'info', 'warn', 'error'];

/** What a log shares with its children. */
interface Root {
  readonly format: LogFormat;
  readonly destination: LogDestination;
  /** Index in LEVELS. */
  least: number;
}

function logWith(root: Root, bound: LogFields): Log {
  const at = (level: LogLevel) => (message: string, fields?: LogFields) => {
    if (LEVELS.indexOf(level) < root.least) return;
    try {
      root.destination.write(
        lineOf(root.format, level, blankKeys(message), { ...bound, ...readable(fields) }),
      );
    } catch {
      // The disk is full or the pipe is closed: the agent continues without the line.
    }
  };
  return {
    trace: at('trace'),
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => logWith(root, { ...bound, ...readable(fields) }),
    setLevel(level) {
      root.least = LEVELS.indexOf(level);
    },
  };
}

// Fields of these names are blank, `key` among them: a load balancer's key goes under `loadBalancer`.
const SECRET = /token|passw(or)?d|passphrase|secret|authorization|cookie|credential|certificate|key$|^pem$/i;
const BLANK = '[redacted]';
// Fields of ours are flat; deeper than this is somebody else's object.
const DEEPEST = 4;

function readable(fields: LogFields | undefined): LogFields {
  try {
    return presentable(fields);
  } catch (error) {
    return { fields: `Cannot read them: ${messageOf(error)}` };
  }
}

/** The fields as they may be shown. */
function presentable(fields: LogFields | undefined): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields ?? {})) {
    shown[name] = SECRET.test(name) ? BLANK : presentableValue(value, 0);
    if (!(value instanceof Error)) continue;
    if (value instanceof HeadgateError) shown.code = value.code;
    else if (value.stack !== undefined) shown.stack = blankKeys(value.stack);
  }
  return shown;
}

function presentableValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return blankKeys(value);
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Error) return blankKeys(messageOf(value));
  if (value instanceof Date) return value;
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  if (depth === DEEPEST) return '…';
  if (Array.isArray(value) || value instanceof Set)
    return [...value].map((one) => presentableValue(one, depth + 1));
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  return Object.fromEntries(
    entries.map(([name, inner]) => [
      name,
      SECRET.test(String(name)) ? BLANK : presentableValue(inner, depth + 1),
    ]),
  );
}

/** Blanks out what looks like a key or a token, wherever it stands in a text. */
function blankKeys(text: string): string {
  return text
    .replaceAll(/-----BEGIN [A-Z0-9 ]+-----[\s\S]*?(-----END [A-Z0-9 ]+-----|$)/g, BLANK)
    .replaceAll(/\bBearer\s+[\w.~+/=-]+/g, `Bearer ${BLANK}`);
}

// Syslog's severities, which journald strips from the line: sd-daemon(3).
const PRIORITIES = { trace: 7, debug: 7, info: 6, warn: 4, error: 3 } as const;

function lineOf(format: LogFormat, level: LogLevel, message: string, fields: LogFields): string {
  if (format === 'json') {
    const time = new Date().toISOString();
    return `${JSON.stringify({ level, time, ...fields, message })}\n`;
  }
  if (format === 'journal') return `<${PRIORITIES[level]}>${JSON.stringify({ level, ...fields, message })}\n`;
  const time = new Date().toTimeString().slice(0, 8);
  const details = Object.entries(fields).map(([name, value]) => detailOf(name, value));
  return `${time} ${level.padEnd(5)} ${printable(message)}${details.join('')}\n`;
}

/** '' for a value that JSON leaves out. */
function detailOf(name: string, value: unknown): string {
  if (typeof value === 'string' && /^[^\s"=\p{C}]+$/u.test(value)) return `  ${name}=${value}`;
  const json: string | undefined = JSON.stringify(value);
  return json === undefined ? '' : `  ${name}=${printable(json)}`;
}

/** Control characters would let an object's author write on the terminal of whoever watches. */
function printable(text: string): string {
  return text.replaceAll(/\p{C}/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** Attempts at a pipe that is full and does not block, a millisecond apart: a line is not worth more time. */
const ATTEMPTS = 5;
const pause = new Int32Array(new SharedArrayBuffer(4));

function descriptor(fd: number): LogDestination {
  let torn = false;
  return {
    write(line) {
      const bytes = Buffer.from(torn ? `\n${line}` : line);
      let written = 0;
      try {
        for (let attempt = 1; written < bytes.length; attempt++)
          written += writeSome(fd, bytes, written, attempt);
      } finally {
        if (written > 0) torn = written < bytes.length;
      }
    },
  };
}

function writeSome(fd: number, bytes: Buffer, from: number, attempt: number): number {
  try {
    return writeSync(fd, bytes, from);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || attempt >= ATTEMPTS) throw error;
    Atomics.wait(pause, 0, 0, 1);
    return 0;
  }
}
