// Routes in words, for the command `why`: where a rule stands, what it matches, and what it does. Pure.

import { quote } from '../../base/quote.ts';
import type { DesiredState } from '../../model/desired-state.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { objectOf, ownerOfListener } from '../../model/names.ts';
import type {
  ForwardAction,
  HostPattern,
  RouteEntry,
  RouteMatch,
  RouteRule,
  WeightedBackend,
} from '../../model/routes.ts';

/** What the matches of one rule have in common. */
export interface RuleLocation {
  readonly loadBalancer: LoadBalancer;
  readonly listener: Listener;
  readonly section: string;
  readonly host: HostPattern;
}

/** Every entry of every listener with routes for HTTP. */
export function* routeEntries({
  loadBalancers,
}: Pick<DesiredState, 'loadBalancers'>): Generator<RuleLocation & { readonly entry: RouteEntry }> {
  for (const loadBalancer of loadBalancers.values())
    for (const listener of loadBalancer.listeners) {
      if (listener.routing?.kind !== 'http') continue;
      for (const { name: section, hosts } of listener.routing.sections)
        for (const { host, entries } of hosts)
          for (const entry of entries) yield { loadBalancer, listener, section, host, entry };
    }
}

/** `Gateway default/edge, HTTPS port 443 on 192.0.2.1 (listener "web"), host *.example.org`. */
export function locationInWords({ loadBalancer, listener, section, host }: RuleLocation): string {
  const protocol = listener.tls === undefined ? 'HTTP' : 'HTTPS';
  const addresses = listener.addresses.length === 0 ? 'no address' : listener.addresses.join(', ');
  const at = `${objectOf(loadBalancer.key)}, ${protocol} port ${listener.port} on ${addresses}`;
  return `${at} (listener ${quote(section)}), ${hostInWords(host)}`;
}

export function hostInWords({ kind, suffix }: HostPattern): string {
  if (kind === 'any') return 'any host';
  return kind === 'exact' ? `host ${suffix}` : `host *.${suffix}`;
}

/** `path /v2, method GET, header "version" is "two"`. */
export function matchInWords({ path, method, headers, query }: RouteMatch): string {
  const words = [pathInWords(path)];
  if (method !== '') words.push(`method ${method}`);
  for (const each of headers) words.push(`header ${valueInWords(each)}`);
  for (const each of query) words.push(`query parameter ${valueInWords(each)}`);
  return words.join(', ');
}

function pathInWords({ kind, value }: RouteMatch['path']): string {
  if (kind === 'exact') return `path ${value} exactly`;
  return kind === 'prefix' ? `path ${value}/…` : `path by the regular expression ${quote(value)}`;
}

export function valueInWords({ name, kind, value }: RouteMatch['headers'][number]): string {
  return `${quote(name)} ${kind === 'exact' ? 'is' : 'matches'} ${quote(value)}`;
}

/** `redirects with 301 to https`; of a rule that forwards see poolsInWords(). */
export function actionInWords({ action }: RouteRule): string {
  switch (action.kind) {
    case 'answer':
      return `answers ${action.status}`;
    case 'redirect': {
      const { status, scheme, hostname, port, path, location } = action;
      if (location !== undefined) return `redirects with ${status} to ${location}`;
      const to = [
        scheme && `scheme ${scheme}`,
        hostname && `host ${hostname}`,
        port !== 0 && `port ${port}`,
        path && `path ${path.value || '/'}`,
      ].filter(Boolean);
      return `redirects with ${status}${to.length === 0 ? '' : ` to ${to.join(', ')}`}`;
    }
    case 'forward': {
      const total = action.backends.reduce((sum, { weight }) => sum + weight, 0);
      if (total === 0) return `answers ${action.failure}: it has no backend with a weight`;
      const rewrite = action.rewrite === undefined ? '' : ', with another host or path';
      return `forwards to ${action.backends.length === 1 ? 'one pool' : `${action.backends.length} pools`}${rewrite}${pagesInWords(action)}`;
    }
  }
}

/** `, with answers of Pool default/pages instead of 404, 503`; `, with pages of the class instead of 404`. */
function pagesInWords({ fallback, customErrors }: ForwardAction): string {
  if (customErrors === undefined || customErrors.codes.length === 0) return '';
  const by = fallback === undefined ? 'pages of the class' : `answers of ${ownerOfListener(fallback)}`;
  return `, with ${by} instead of ${customErrors.codes.join(', ')}`;
}

/** `pool:default/web TCP port 80`; undefined for a reference to what does not exist, or is not permitted. */
export function poolName({ pool }: Pick<WeightedBackend, 'pool'>): string | undefined {
  if (pool === undefined) return undefined;
  return `${ownerOfListener(pool)} port ${pool.split(':').at(-2)}`;
}
