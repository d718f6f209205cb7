// The connection log of a listener in HAProxy's file: where its lines go, which there are, and their format. HAProxy writes it
// without the agent, and drops a line that its target does not take at once. Pure.
// Why: docs/design/decisions/0045-connection-log.md

import { formatLogTarget, type LogTarget, socketOf } from '../../base/log-target.ts';
import type { View } from '../../base/template.ts';
import { asksForCertificates } from '../../model/client-guards.ts';
import type { Listener } from '../../model/load-balancer.ts';
import { logFormats, MAX_LINE_BYTES } from './log-format.ts';

export interface ConnectionLogSettings {
  readonly connectionLogTarget: LogTarget;
  readonly connectionLogFormat: 'json' | 'haproxy';
}

/** The words of a `log` line after `log`. `writer`: the socket of the program that writes the file. */
export function logWords(target: LogTarget, writer: string): string {
  const [address, format] = addressOf(target, writer);
  return `${address} len ${MAX_LINE_BYTES} format ${format} local0`;
}

/** A server by UDP gets the time and more in the form of RFC 5424; sockets of this host take the older form. */
function addressOf(target: LogTarget, writer: string): readonly [address: string, format: string] {
  switch (target.kind) {
    case 'syslog':
      return [`udp@${formatLogTarget(target)}`, 'rfc5424'];
    case 'file':
      return [writer, 'local'];
    default:
      return [socketOf(target), 'local'];
  }
}

/** [] for a listener without a log. `words`: see logWords(). */
export function logView(
  listener: Listener,
  words: string,
  format: ConnectionLogSettings['connectionLogFormat'],
): readonly View[] {
  const { log, mode, tls, routing } = listener;
  if (log === 'none') return [];
  const isHttp = mode === 'http';
  const isJson = format === 'json';
  const hasNames = isJson && tls !== undefined && asksForCertificates(tls);
  return [
    {
      words,
      isErrorsOnly: log === 'errors',
      // A client of TCP may wait for the member to send first.
      ignoresEmpty: log === 'errors' && isHttp,
      ownFormat: isJson ? '' : isHttp ? 'httplog' : 'tcplog',
      isJson,
      needsHost: isJson && isHttp,
      // The names in certificates of clients.
      hasNames,
      notesNames: hasNames && routing?.kind === 'http',
      ...logFormats(listener),
    },
  ];
}
