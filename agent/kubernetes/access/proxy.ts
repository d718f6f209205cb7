// The HTTP proxy to a server by the variables of the environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY, also in lower case),
// read as kubectl reads them: Go's golang.org/x/net/http/httpproxy. Pure.

import type { AgentOptions } from 'node:https';
import { HeadgateError } from '../../base/errors.ts';
import { parseAddress, parseCidr } from '../../base/ip.ts';
import { type AddressRange, addressNumber, parseBlock } from '../../base/ip-range.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** URL of the proxy; undefined if the server is reached directly. Errors: API_CREDENTIALS, see `proxyUrl`. */
export function proxyOf(server: URL, env: Environment): string | undefined {
  const name = server.protocol === 'http:' ? 'HTTP_PROXY' : 'HTTPS_PROXY';
  const text = variable(env, name);
  return text === '' || isDirect(server, variable(env, 'NO_PROXY')) ? undefined : proxyUrl(text, name);
}

/** The complete URL. Errors: API_CREDENTIALS if `text` is not the URL of an HTTP proxy; no message shows it, as it may hold a password. */
export function proxyUrl(text: string, name: string): string {
  const url = URL.parse(text.includes('://') ? text : `http://${text}`);
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url.href;
  throw new HeadgateError('API_CREDENTIALS', `${name} is not the URL of an HTTP proxy`);
}

export function isSocks(proxy: string): boolean {
  return /^socks/i.test(proxy);
}

/** For an agent whose connections all use this proxy; '': none does, whatever Node's own settings are. */
export function throughProxy(proxy: string): Pick<AgentOptions, 'proxyEnv'> {
  return { proxyEnv: proxy === '' ? {} : { http_proxy: proxy, https_proxy: proxy, no_proxy: '' } };
}

function variable(env: Environment, name: string): string {
  return env[name] || env[name.toLowerCase()] || '';
}

function isDirect({ hostname, port, protocol }: URL, list: string): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  if (host === 'localhost' || isWithin(host, LOOPBACK)) return true;
  const ownPort = port || (protocol === 'http:' ? '80' : '443');
  return list.split(',').some((entry) => covers(entry.trim().toLowerCase(), host, ownPort));
}

/** `entry`: `*`, a CIDR, or an address or a domain, both perhaps with the one port that it covers. */
function covers(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true;
  const range = rangeOf(entry);
  if (range !== undefined) return isWithin(host, [range]);
  const [, name = '', ofPort = port] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? [];
  if (ofPort !== port) return false;
  const address = rangeOf(name.replace(/^\[(.*)\]$/, '$1'));
  if (address !== undefined) return isWithin(host, [address]);
  const domain = name.replace(/^\*\./, '.');
  // A leading dot means the subdomains only.
  return domain !== '' && (host === domain || host.endsWith(domain.startsWith('.') ? domain : `.${domain}`));
}

function rangeOf(text: string): AddressRange | undefined {
  return parseBlock(parseCidr(text)?.cidr ?? parseAddress(text)?.address ?? '')?.range;
}

function isWithin(host: string, ranges: readonly (AddressRange | undefined)[]): boolean {
  const parsed = parseAddress(host);
  if (parsed === undefined) return false;
  const number = addressNumber(parsed.address);
  return ranges.some(
    (range) => range?.family === parsed.family && range.first <= number && number <= range.last,
  );
}

const LOOPBACK = ['127.0.0.0/8', '::1'].map(rangeOf);
