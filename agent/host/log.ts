// The agent's log: one line per event to stdout, as JSON, with a priority in front if journald reads it, or as short plain
// lines on a terminal. Secrets are redacted; a call never throws.

import { fstatSync, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { HeadgateError, messageOf } from '../base/errors.ts';
import { printable } from '../base/quote.ts';

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error';

/** An error is logged as its message; a HeadgateError with its code, any other error with its stack. */
export type LogFields = Readonly<Record<string, unknown>>;

export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Changes the lowest level that is logged. */
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

/** The defaults: stdout, and the format that fits it. */
export function createLog({ level, destination = descriptor(1), format = formatOf(1) }: LogOptions): Log {
  let lowest = LEVELS.indexOf(level);
  const at = (own: LogLevel) => (message: string, fields?: LogFields) => {
    if (LEVELS.indexOf(own) < lowest) return;
    try {
      destination.write(lineOf(format, own, redact(message), readable(fields)));
    } catch {
      // The disk is full or the pipe is closed: the agent continues without the line.
    }
  };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    setLevel(next) {
      lowest = LEVELS.indexOf(next);
    },
  };
}

/** The same log, with these fields in each line. */
export function withFields(log: Log, own: LogFields): Log {
  const at = (level: 'debug' | 'info' | 'warn' | 'error') => (message: string, fields?: LogFields) =>
    log[level](message, { ...own, ...fields });
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    setLevel: (level) => log.setLevel(level),
  };
}

/** The format that fits a descriptor. systemd sets JOURNAL_STREAM to the one that journald reads: systemd.exec(5). */
export function formatOf(fd: number, env: NodeJS.ProcessEnv = process.env): LogFormat {
  if (isatty(fd)) return 'terminal';
  try {
    const { dev, ino } = fstatSync(fd);
    return env.JOURNAL_STREAM === `${dev}:${ino}` ? 'journal' : 'json';
  } catch {
    return 'json';
  }
}

/** In order of urgency. `trace` logs as much as `debug`. */
const LEVELS: readonly LogLevel[] = ['trace', 'debug', 'info', 'warn', 'error'];

// Fields with these names are redacted. `key` is one of them: a load balancer's key is logged as `loadBalancer`.
const SECRET = /token|passw(or)?d|passphrase|secret|authorization|cookie|credential|certificate|key$|^pem$/i;
const REDACTED = '[redacted]';
/** The agent's fields are flat; a deeper value belongs to a library's object. */
const MAX_DEPTH = 5;

function readable(fields: LogFields = {}): LogFields {
  try {
    const shown = presentable(fields, 0) as Record<string, unknown>;
    for (const value of Object.values(fields)) {
      if (value instanceof HeadgateError) shown.code = value.code;
      else if (value instanceof Error && value.stack !== undefined) shown.stack = redact(value.stack);
    }
    return shown;
  } catch (error) {
    return { fields: `Cannot read them: ${messageOf(error)}` };
  }
}

function presentable(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return redact(value);
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Error) return redact(messageOf(value));
  if (value instanceof Date) return value;
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  if (depth === MAX_DEPTH) return '…';
  if (Array.isArray(value) || value instanceof Set)
    return [...value].map((one) => presentable(one, depth + 1));
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  return Object.fromEntries(
    entries.map(([name, inner]) => [
      name,
      SECRET.test(String(name)) ? REDACTED : presentable(inner, depth + 1),
    ]),
  );
}

/** Redacts keys and tokens in the middle of a text. */
function redact(text: string): string {
  return text
    .replaceAll(/-----BEGIN [A-Z0-9 ]+-----[\s\S]*?(-----END [A-Z0-9 ]+-----|$)/g, REDACTED)
    .replaceAll(/\bBearer\s+[\w.~+/=-]+/g, `Bearer ${REDACTED}`);
}

// Syslog's severities, which journald removes from the line: sd-daemon(3).
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

/** '' for a value that JSON does not have. */
function detailOf(name: string, value: unknown): string {
  if (typeof value === 'string' && /^[^\s"=\p{C}]+$/u.test(value)) return `  ${name}=${value}`;
  const json: string | undefined = JSON.stringify(value);
  return json === undefined ? '' : `  ${name}=${printable(json)}`;
}

/** Attempts to write to a full pipe that does not block, one millisecond apart; then the line is dropped. */
const MAX_ATTEMPTS = 5;
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
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || attempt >= MAX_ATTEMPTS) throw error;
    Atomics.wait(pause, 0, 0, 1);
    return 0;
  }
}
