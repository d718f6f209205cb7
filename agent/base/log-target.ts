// The target of the connection log, as the setting names it. Pure.

import { parseSocketAddress, socketAddress } from './socket-address.ts';

export type LogTarget =
  /** The socket of systemd's journal. */
  | { readonly kind: 'journald' }
  /** A syslog server, by UDP. */
  | { readonly kind: 'syslog'; readonly address: string; readonly port: number }
  /** The datagram socket of a syslog server on this host. */
  | { readonly kind: 'socket'; readonly path: string }
  /** A file, which the agent's log writer writes. */
  | { readonly kind: 'file'; readonly path: string };

export const LOG_TARGET_IN_WORDS =
  'journald, ADDR:PORT of a syslog server, socket:PATH, or file:PATH with a path of letters, digits and . _ - / @ % + =';

/** The address of a unix socket has room for 107 bytes. */
const PATH = /^\/[A-Za-z0-9._/@%+=-]{1,106}$/;

/** undefined for any other text. */
export function parseLogTarget(text: string): LogTarget | undefined {
  if (text === 'journald') return { kind: 'journald' };
  const [, kind, path = ''] = /^(socket|file):(.*)$/.exec(text) ?? [];
  if (kind === 'socket' || kind === 'file') return PATH.test(path) ? { kind, path } : undefined;
  const server = parseSocketAddress(text);
  return server && server.port > 0 ? { kind: 'syslog', ...server } : undefined;
}

/** The socket that takes the lines; '' for another target. */
export function socketOf(target: LogTarget): string {
  if (target.kind === 'journald') return '/run/systemd/journal/dev-log';
  return target.kind === 'socket' ? target.path : '';
}

export function formatLogTarget(target: LogTarget): string {
  switch (target.kind) {
    case 'journald':
      return 'journald';
    case 'syslog':
      return socketAddress(target.address, target.port);
    default:
      return `${target.kind}:${target.path}`;
  }
}
