// Which HTTP proxy leads to a server by what the environment says (HTTPS_PROXY, HTTP_PROXY, NO_PROXY, also in lower
// case), read as kubectl reads it: Go's golang.org/x/net/http/httpproxy. Pure.

import type { AgentOptions } from 'node:https';
import { HeadgateError } from '../../base/errors.ts';
import { parseAddress, parseCidr } from '../../base/ip.ts';
import { type AddressRange, addressNumber, parseBlock } from '../../base/ip-range.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** URL of the proxy, undefined where there is none on the way. Errors: API_CREDENTIALS, see `proxyUrl`. */
export function proxyOf(server: URL, env: Environment): string | undefined {
  const name = server.protocol === 'http:' ? 'HTTP_PROXY' : 'HTTPS_PROXY';
  const text = variable(env, name);
  return text === '' || isDirect(server, variable(env, 'NO_PROXY')) ? undefined : proxyUrl(text, name);
}

/** In full. Errors: API_CREDENTIALS where `text` is not the URL of an HTTP proxy; it may hold a password. */
export function proxyUrl(text: string, name: string): string {
  const url = URL.parse(text.includes('://') ? text : `http://${text}`);
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url.href;
  throw new HeadgateError('API_CREDENTIALS', `${name} is not the URL of an HTTP proxy`);
}

/** For an agent whose connections all go through the proxy; undefined: none does, whatever Node has been told. */
export function throughProxy(proxy: string | undefined): Pick<AgentOptions, 'proxyEnv'> {
  return { proxyEnv: proxy === undefined ? {} : { http_proxy: proxy, https_proxy: proxy, no_proxy: '' } };
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

/** `entry`: `*`, an address, a CIDR, a domain; but for a CIDR with a port where only that is meant. */
function covers(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true;
  const range = rangeOf(entry);
  if (range !== undefined) return isWithin(host, [range]);
  const [, name = '', ofPort = port] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? [];
  if (ofPort !== port) return false;
  const address = rangeOf(name.replace(/^\[(.*)\]$/, '$1'));
  if (address !== undefined) return isWithin(host, [address]);
  const domain = name.replace(/^\*\./, '.');
  // With a dot in front it is the subdomains only.
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
