// Requests as a line of a log has them: of the connection log, of another log in JSON with the usual names, or of a web server's
// in the common format, the combined one, or that with the virtual host in front; or of HAProxy's own format. Pure.

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
  const fields = line.startsWith('{') ? jsonFields(line) : (commonFields(line) ?? haproxyFields(line));
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
const COMMON = /^(?:(\S+?)(?::(\d+))? )?(\S+) \S+ (?:\S+|"[^"]*") \[[^\]]*\] "((?:[^"\\]|\\.)*)"/;

function commonFields(line: string): Fields | undefined {
  const found = COMMON.exec(line);
  if (found === null) return undefined;
  const [, host = '', port, client = '', request = ''] = found;
  return textFields(request, { host, client, port: port === undefined ? undefined : Number(port) });
}

/** `option httplog`, behind what syslog writes: `client:port [time] frontend backend/server timers status … "request"`. */
const HAPROXY = /(?:^| )(\S+):\d+ \[[^\]]*\] (\S+) \S+\/\S+ [\d/+-]+ -?\d+ .*"((?:[^"\\]|\\.)*)"\s*$/;

function haproxyFields(line: string): Fields | undefined {
  const [, client = '', frontend = '', request = ''] = HAPROXY.exec(line) ?? [];
  const fields = textFields(request, { host: '', client, port: undefined });
  // A frontend whose connection has ended TLS.
  return fields && frontend.endsWith('~') ? { ...fields, isTls: true } : fields;
}

function textFields(
  request: string,
  { host, client, port }: Pick<Fields, 'host' | 'client' | 'port'>,
): Fields | undefined {
  const [, method = '', target = ''] = REQUEST.exec(unescaped(request)) ?? [];
  if (method === '') return undefined;
  const [, scheme, authority = host] = /^(https?):\/\/([^/?#]*)/i.exec(target) ?? [];
  const isTls = scheme === undefined ? tlsOfPort(port) : scheme.toLowerCase() === 'https';
  return { method, target, host: authority, client, isTls, port, vip: '', owner: '', hasQuery: true };
}

function tlsOfPort(port: number | undefined): boolean | undefined {
  return port === 443 ? true : port === 80 ? false : undefined;
}

/** nginx and Apache write what does not print, and quotes, behind a backslash. */
function unescaped(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(/\\(?:x([0-9A-Fa-f]{2})|(.))/g, (_, digits: string | undefined, own: string) =>
    digits === undefined
      ? own
      : digits < '80'
        ? String.fromCharCode(Number.parseInt(digits, 16))
        : `%${digits}`,
  );
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
