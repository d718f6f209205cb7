// The JSON lines of the connection log as HAProxy's formats. Each field is an entry of a list; a value that a client controls
// passes the converter `json`, and has a limit. Pure.

import { asksForCertificates } from '../../model/client-guards.ts';
import type { Listener } from '../../model/load-balancer.ts';
import { BEHIND_MEMBERS, BY_SUFFIX, IN_SUFFIX, LOG_NAMES, memberSuffix } from './log-names.ts';

/**
 * More than the longest line, because a line that is cut is not JSON. HAProxy keeps 1,024 bytes of the request line; JSON
 * writes a byte in up to six.
 */
export const MAX_LINE_BYTES = 12_288;
const MAX_HOST_BYTES = 255;
const MAX_METHOD_BYTES = 32;
const MAX_USER_BYTES = 128;

/** A name in the object, and HAProxy's expression for its value. */
type Field = readonly [name: string, value: string];

export interface LogFormats {
  /** The format for a connection, in mode http for a request. */
  readonly line: string;
  /** The same for HAProxy 3.0 and newer, which can look up words for how it ended. */
  readonly lineInWords: string;
  /** For a connection that ends before HAProxy knows its request: the handshake fails, or the request is not HTTP. */
  readonly refusedLine: string;
}

export function logFormats(listener: Listener): LogFormats {
  const { name, mode, labels, routing, requestIds, tls } = listener;
  const begin: readonly Field[] = [
    ...CLIENT,
    ['namespace', text(labels.namespace)],
    ['service', text(labels.service)],
    ['port', labels.port],
  ];
  const fields: Field[] = [...begin, ...memberFields(name), ...(mode === 'http' ? HTTP : TCP)];
  if (routing?.kind === 'http')
    fields.push(['route', text('%[var(txn.rule)]')], ['auth', text('%[var(txn.decision)]')], userOf('txn'));
  else if (tls !== undefined && asksForCertificates(tls)) fields.push(userOf('sess'));
  if (requestIds === true) fields.push(['requestId', text('%[var(txn.request_id)]')]);
  return {
    line: json(fields),
    lineInWords: json([...fields, ...IN_WORDS]),
    refusedLine: json([...begin, ...REFUSED]),
  };
}

/** The time is that of the line. */
const CLIENT: readonly Field[] = [
  ['time', text('%[date,utime(%Y-%m-%dT%H:%M:%SZ)]')],
  ['timeMs', '%[date(0,ms)]'],
  ['client', text('%ci')],
  ['clientPort', '%cp'],
  ['vip', text('%fi')],
];

function memberFields(listener: string): readonly Field[] {
  const behind = BEHIND_MEMBERS.map(
    (each): Field => [each, nameOf('srv_name', memberSuffix(each, listener))],
  );
  return [['backend', text('%b')], ['member', text('%[srv_name]')], ...behind];
}

const AMOUNTS: readonly Field[] = [
  ['bytesIn', '%U'],
  ['bytesOut', '%B'],
  ['queueMs', '%Tw'],
  ['connectMs', '%Tc'],
];

/** The retries are a text, because HAProxy writes `+1` for one on another member. */
const END: readonly Field[] = [
  ['retries', text('%rc')],
  ['ended', text('%ts')],
];

const TCP: readonly Field[] = [...AMOUNTS, ['durationMs', '%Tt'], ...END];

/** The path is without the query, which may have secrets. */
const HTTP: readonly Field[] = [
  ['method', fromClient(`capture.req.method,bytes(0,${MAX_METHOD_BYTES})`)],
  ['host', fromClient(`var(txn.host),bytes(0,${MAX_HOST_BYTES})`)],
  ['path', fromClient('capture.req.uri,field(1,?)')],
  ['status', '%ST'],
  ...AMOUNTS,
  ['requestMs', '%TR'],
  ['responseMs', '%Tr'],
  ['durationMs', '%Ta'],
  ...END,
];

const IN_WORDS: readonly Field[] = [
  ['endedBy', nameOf('txn.sess_term_state,bytes(0,1)', BY_SUFFIX)],
  ['endedIn', nameOf('txn.sess_term_state,bytes(1,1)', IN_SUFFIX)],
];

const REFUSED: readonly Field[] = [['error', text('%[fc_err,bool,iif(handshake,request)]')]];

function json(fields: readonly Field[]): string {
  return `{${fields.map(([name, value]) => `"${name}":${value}`).join(',')}}`;
}

function text(value: string): string {
  return `"${value}"`;
}

/** A name that a check has verified. */
function userOf(scope: 'txn' | 'sess'): Field {
  return ['user', fromClient(`var(${scope}.user),bytes(0,${MAX_USER_BYTES})`)];
}

/** `-` if the map has no such key. */
function nameOf(sample: string, suffix: string): string {
  return text(`%[${sample},concat(${suffix}),map_str(${LOG_NAMES},-)]`);
}

/** Bytes that are not UTF-8 are left out. */
function fromClient(sample: string): string {
  return text(`%[${sample},json(utf8s)]`);
}
