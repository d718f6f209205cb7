// Requests that show what the rules of a state do: for each match of each rule some that it takes, and some beside it. A rule by
// a regular expression has one only if its text is a path that it matches. Pure.

import { encodedPath } from '../../base/one-spelling.ts';
import type { DesiredState } from '../../model/desired-state.ts';
import type { HostPattern, RouteMatch } from '../../model/routes.ts';
import type { AskedRequest } from '../answers/access/asked-request.ts';
import { addressOf } from '../answers/access/asked-request.ts';
import { isExpressionMet } from '../answers/access/find-rule.ts';
import { routeEntries } from '../answers/route-words.ts';
import type { RequestPlace } from './treatments.ts';

export interface ExampleRequest {
  readonly request: AskedRequest;
  readonly place: RequestPlace;
  /** `GET https://example.org/v2`, with the headers and parameters that it needs. */
  readonly words: string;
}

export interface Examples {
  /** Each once. */
  readonly requests: readonly ExampleRequest[];
  /** Names of rules without one. */
  readonly without: readonly string[];
}

export function exampleRequests(states: readonly Pick<DesiredState, 'loadBalancers'>[]): Examples {
  const requests = new Map<string, ExampleRequest>();
  const without = new Set<string>();
  for (const state of states)
    for (const { loadBalancer, listener, host, section, entry } of routeEntries(state)) {
      const { port, family, tls } = listener;
      const place = { isTls: tls !== undefined, port, family, vip: '', owner: loadBalancer.key };
      const hostnames = listener.routing?.kind === 'http' ? listener.routing.sections : [];
      const own = hostnames.find(({ name }) => name === section)?.hostname ?? host;
      const values = valuesOf(entry.match);
      if (values === undefined) {
        without.add(entry.rule.name);
        continue;
      }
      for (const name of hostsOf(host, own))
        for (const path of values.paths) {
          const made = requestOf(place, name, path, values);
          requests.set(`${loadBalancer.key} ${family} ${made.words}`, made);
        }
    }
  return { requests: [...requests.values()], without: [...without] };
}

interface ExampleValues {
  readonly paths: readonly string[];
  readonly method: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly query: ReadonlyMap<string, string>;
}

/** undefined if no value is known that it matches. */
function valuesOf({ path, method, headers, query }: RouteMatch): ExampleValues | undefined {
  const paths = pathsOf(path);
  const ofHeaders = exactValues(headers);
  const ofQuery = exactValues(query);
  if (paths.length === 0 || ofHeaders === undefined || ofQuery === undefined) return undefined;
  return { paths, method: method || 'GET', headers: ofHeaders, query: ofQuery };
}

function pathsOf({ kind, value }: RouteMatch['path']): readonly string[] {
  const path = encodedPath(value);
  if (kind === 'exact') return [path, path.endsWith('/') ? `${path}x` : `${path}/`];
  if (kind === 'prefix') return [path === '' ? '/' : path, `${path}/x`];
  const literal = value.replace(/^\^|\$$/g, '').replace(/\\(?=[./-])/g, '');
  return literal.startsWith('/') && isExpressionMet(value, 'start', literal) === true ? [literal] : [];
}

function exactValues(all: RouteMatch['headers']): ReadonlyMap<string, string> | undefined {
  const values = new Map<string, string>();
  for (const { name, kind, value } of all) {
    if (kind === 'regex' && isExpressionMet(value, 'whole', value) !== true) return undefined;
    values.set(name, value);
  }
  return values;
}

/** A name that the pattern has, and the listener's: of two wildcards the narrower one. */
function hostsOf(host: HostPattern, own: HostPattern): readonly string[] {
  const narrower = host.kind === 'any' || (own.kind === 'exact' && host.kind !== 'exact') ? own : host;
  if (narrower.kind === 'any') return ['any.invalid'];
  if (narrower.kind === 'exact') return [narrower.suffix];
  const one = `any.${narrower.suffix}`;
  return narrower.kind === 'labels' ? [one, `any.${one}`] : [one];
}

function requestOf(place: RequestPlace, host: string, path: string, values: ExampleValues): ExampleRequest {
  const { method, headers, query } = values;
  const { isTls = false, port = 0 } = place;
  const isUsual = port === (isTls ? 443 : 80);
  const authority = isUsual ? host : `${host}:${port}`;
  const asked = [...query].map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
  const url = `${isTls ? 'https' : 'http'}://${authority}${path}${asked.length === 0 ? '' : `?${asked.join('&')}`}`;
  const own = [...headers].map(([name, value]) => ` with ${name}: ${value}`);
  const request: AskedRequest = {
    ...{ isTls, port, method, host, path },
    address: addressOf(host),
    query: bytesOf(query),
    headers: new Map([
      ['host', [authority]],
      ['x-forwarded-proto', [isTls ? 'https' : 'http']],
      ['x-forwarded-port', [String(port)]],
      ...[...bytesOf(headers)].map(([name, value]) => [name, [value]] as const),
    ]),
    hasOtherHeaders: false,
  };
  return { request, place, words: `${method} ${url}${own.join('')}` };
}

/** As bytes, which is how requests have them. */
function bytesOf(values: ReadonlyMap<string, string>): Map<string, string> {
  return new Map([...values].map(([name, value]) => [name, Buffer.from(value).toString('latin1')]));
}
