// Requests as a line of a log has them: of the connection log, of another log in JSON with the usual names, or of a web server's
// in the common format, the combined one, or that with the virtual host in front. Pure.

import { parseAddress } from '../../base/ip.ts';
import { parseJson } from '../../base/parse-json.ts';
import { isMapping } from '../../base/validate.ts';
import { keyOf } from '../../model/names.ts';
import { type AskedRequest, addressOf, encoded, queryOf } from '../answers/access/asked-request.ts';
import { ANY_CLIENT, type Client } from '../answers/access/client.ts';
import type { RequestPlace } from './treatments.ts';

export interface LoggedRequest {
  readonly request: AskedRequest;
  readonly place: RequestPlace;
  readonly client: Client;
}

/** `host`: of lines that have none; '' if it is not known. undefined if the line has no request. */
export function loggedRequest(line: string, host: string): LoggedRequest | undefined {
  const fields = line.startsWith('{') ? jsonFields(line) : commonFields(line);
  if (fields === undefined) return undefined;
  const { method, target, client } = fields;
  const name = hostOf(fields.host || host);
  if (name === '' || !/^[A-Z][A-Z-]*$/i.test(method)) return undefined;
  const [path = '', query] = splitTarget(target);
  if (!path.startsWith('/')) return undefined;
  const from = client === '' ? undefined : parseAddress(client);
  const { isTls, port, vip, owner } = fields;
  const isGiven = query !== undefined || fields.hasQuery;
  return {
    request: {
      isTls: isTls ?? true,
      port: port ?? 0,
      method: method.toUpperCase(),
      host: name,
      address: addressOf(name),
      path: encoded(path),
      query: isGiven ? queryOf(query ?? '') : undefined,
      headers: new Map([['host', [name]]]),
      hasOtherHeaders: true,
    },
    place: { isTls, port, family: from?.family, vip, owner },
    client: from === undefined ? ANY_CLIENT : { ...ANY_CLIENT, from },
  };
}

interface Fields {
  readonly method: string;
  /** The path, perhaps with a query, or a whole URL. */
  readonly target: string;
  readonly host: string;
  readonly client: string;
  readonly isTls: boolean | undefined;
  readonly port: number | undefined;
  readonly vip: string;
  readonly owner: string;
  /** The target has its query, if there is one. */
  readonly hasQuery: boolean;
}

const NAMES = {
  method: ['method', 'request_method', 'verb'],
  target: ['request_uri', 'uri', 'url', 'path'],
  host: ['host', 'http_host', 'authority', 'server_name'],
  client: ['client', 'remote_addr', 'client_ip', 'remote_ip'],
  scheme: ['scheme'],
} as const;

function jsonFields(line: string): Fields | undefined {
  const json = parseJson(line);
  if (!isMapping(json)) return undefined;
  const text = (name: keyof typeof NAMES): string => {
    const found = NAMES[name].map((each) => json[each]).find((value) => typeof value === 'string');
    return typeof found === 'string' ? found : '';
  };
  const { port, vip, namespace, service, request } = json;
  const isOwn = typeof vip === 'string' && typeof namespace === 'string' && typeof service === 'string';
  const [, method = text('method'), target = text('target')] =
    typeof request === 'string' ? (REQUEST.exec(request) ?? []) : [];
  const scheme = text('scheme');
  return {
    ...{ method, target, host: text('host'), client: text('client') },
    isTls: scheme === '' ? undefined : scheme === 'https',
    port: typeof port === 'number' ? port : undefined,
    vip: isOwn ? vip : '',
    // The name may also be a Service's, or a class's: then the address decides.
    owner: isOwn ? keyOf({ kind: 'Gateway', namespace, name: service }) : '',
    // The connection log leaves the query out, which may have secrets.
    hasQuery: !isOwn,
  };
}

const REQUEST = /^([A-Za-z-]+) (\S+)(?: HTTP\/[\d.]+)?$/;
/** `host:port `, if it is there, then client, two names, time and request. */
const COMMON = /^(?:(\S+?)(?::(\d+))? )?(\S+) \S+ (?:\S+|"[^"]*") \[[^\]]*\] "([^"]*)"/;

function commonFields(line: string): Fields | undefined {
  const found = COMMON.exec(line);
  if (found === null) return undefined;
  const [, host = '', port, client = '', request = ''] = found;
  const [, method = '', target = ''] = REQUEST.exec(request) ?? [];
  if (method === '') return undefined;
  const own = port === undefined ? undefined : Number(port);
  return {
    ...{ method, target, host, client, vip: '', owner: '', hasQuery: true },
    isTls: own === 443 ? true : own === 80 ? false : undefined,
    port: own,
  };
}

/** In lower case, without port and without a dot at its end. */
function hostOf(text: string): string {
  return text
    .toLowerCase()
    .replace(/(?<=^[^:]*|\]):\d+$/, '')
    .replace(/\.$/, '');
}

function splitTarget(target: string): readonly [path: string, query: string | undefined] {
  const path = target.replace(/^https?:\/\/[^/?#]*/i, '') || '/';
  const at = path.indexOf('?');
  return at < 0 ? [path, undefined] : [path.slice(0, at), path.slice(at + 1)];
}
