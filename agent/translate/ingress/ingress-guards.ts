// Which client certificates each host of an Ingress class asks for: a host is guarded as soon as one of its Ingresses asks,
// whatever certificate it has itself. Pure.

import type { Dependency } from '../../model/desired-state.ts';
import type { Authority, Problem, Tls } from '../../model/load-balancer.ts';
import { clientCrl } from '../routes/client-crl.ts';
import type { CertificatesView } from '../service/tls.ts';
import type { OwnedIngress } from './owned-hosts.ts';
import { isOfChallenges } from './plain-http.ts';

type Clients = NonNullable<Tls['clients']>;

export interface IngressGuards {
  /** By host, '' for all hosts: what its clients must, or may, prove; `closed`: no client is let in, because the authority cannot be used. */
  readonly hosts: ReadonlyMap<string, Clients | 'closed'>;
  /** By host: what the subject of a client's certificate must be, also for Ingresses that do not say so. */
  readonly names: ReadonlyMap<string, string>;
  /** True if the Ingress asks for certificates that clients of the host cannot show: they show those of an older Ingress. */
  readonly isRefused: (ingress: string, host: string) => boolean;
}

/** `all`: the oldest one first, whose authority counts. */
export function ingressGuards(
  all: readonly OwnedIngress[],
  certificates: CertificatesView,
  reads: Set<Dependency>,
  problems: Problem[],
): IngressGuards {
  const hosts = new Map<string, { readonly guard: Clients | 'closed'; readonly by: string }>();
  const refused = new Set<string>();
  const asking = new Set<string>();
  const names = new Map<string, string>();
  const tell = ({ ingress }: OwnedIngress, message: string): void =>
    void problems.push({ object: `Ingress ${ingress.key}`, reason: 'RouteShadowed', message });
  for (const each of all) {
    const own = clientsOf(each, certificates, reads, problems);
    if (own === undefined) continue;
    const { key } = each.ingress;
    asking.add(key);
    const name = each.read.options['auth-tls-match-cn'];
    for (const host of hostsOf(each)) {
      if (name !== undefined && !names.has(host)) names.set(host, name);
      const known = hosts.get(host);
      if (known === undefined || own === 'closed') hosts.set(host, { guard: own, by: key });
      else if (known.guard === 'closed') continue;
      else if (isSameList(known.guard, own)) {
        if (known.guard.verify === own.verify && known.guard.authority.depth === own.authority.depth)
          continue;
        hosts.set(host, { ...known, guard: stricter(known.guard, own) });
        tell(
          each,
          `${named(host)} needs client certificates: of "auth-tls-verify-client" and "auth-tls-verify-depth" here and in Ingress "${known.by}" the stricter values count`,
        );
      } else {
        refused.add(`${key} ${host}`);
        tell(
          each,
          `Requests of ${named(host)} get status 403: the older Ingress "${known.by}" asks for certificates of another authority`,
        );
      }
    }
  }
  for (const each of all) {
    if (asking.has(each.ingress.key)) continue;
    for (const { host, entries } of each.read.hosts) {
      const { guard, by } = hosts.get(host) ?? {};
      const isGuarded = guard === 'closed' || guard?.verify === 'required';
      if (!isGuarded || entries.entries.every(({ match }) => isOfChallenges(match.path.value))) continue;
      const effect =
        guard === 'closed' ? 'answers 403' : 'needs client certificates, and serves nothing on port 80';
      tell(each, `${named(host)} ${effect}, because Ingress "${by}" asks for them`);
    }
  }
  return {
    hosts: new Map(Array.from(hosts, ([host, { guard }]) => [host, guard])),
    names,
    isRefused: (ingress, host) => refused.has(`${ingress} ${host}`),
  };
}

function hostsOf({ read, tls }: OwnedIngress): ReadonlySet<string> {
  return new Set([
    ...[...read.hosts, ...read.canaries].map(({ host }) => host),
    ...(read.fallback === undefined ? [] : ['']),
    ...tls.flatMap(({ hosts }) => hosts),
  ]);
}

function named(host: string): string {
  return `Host "${host || '*'}"`;
}

function isSameList(a: Clients, b: Clients): boolean {
  return a.authority.fingerprint === b.authority.fingerprint && a.crl?.fingerprint === b.crl?.fingerprint;
}

/** Both have the same list. */
function stricter(a: Clients, b: Clients): Clients {
  const depths = [a.authority.depth, b.authority.depth].filter((depth) => depth !== undefined);
  const verify = a.verify === b.verify ? a.verify : 'required';
  return {
    ...a,
    verify,
    authority: authorityOf(a.authority, depths.length > 0 ? Math.min(...depths) : undefined),
  };
}

function authorityOf({ name, fingerprint }: Authority, depth: number | undefined): Authority {
  return { name, fingerprint, ...(depth !== undefined && { depth }) };
}

function clientsOf(
  { ingress: { key, namespace }, read: { options, hasInvalidAuthority } }: OwnedIngress,
  certificates: CertificatesView,
  reads: Set<Dependency>,
  problems: Problem[],
): Clients | 'closed' | undefined {
  const {
    'auth-tls-secret': secret,
    'auth-tls-verify-client': verify = 'on',
    'auth-tls-verify-depth': depth,
    'auth-tls-error-page': errorPage,
  } = options;
  if (verify === 'off') return undefined;
  // The value itself is a fault of the annotations.
  if (secret === undefined) return hasInvalidAuthority ? 'closed' : undefined;
  const [first = '', second] = secret.split('/');
  const [ofNamespace, ofName] = second === undefined ? [namespace, first] : [first, second];
  const object = `secret ${ofNamespace}/${ofName}` as const;
  // A Secret of another namespace could be anybody's.
  const isOwn = ofNamespace === namespace;
  if (isOwn) reads.add(object);
  const { content, fault } = isOwn
    ? certificates.authority(object)
    : { content: undefined, fault: 'it is of another namespace' };
  const revoked = isOwn ? clientCrl(object, certificates) : { crl: undefined, fault: '' };
  // Without its revocation list, clients with revoked certificates would be served.
  const depthFault = depth === undefined ? '' : (content?.depthFault ?? '');
  const isClosed =
    content === undefined || (revoked.fault !== '' && revoked.crl === undefined) || depthFault !== '';
  if (isClosed) {
    const why = fault || depthFault || revoked.fault || 'it is not read yet';
    const message = `Cannot use Secret "${ofNamespace}/${ofName}" for client certificates: ${why}; its requests get status 403`;
    problems.push({ object: `Ingress ${key}`, reason: 'InvalidCertificate', message });
    return 'closed';
  }
  if (revoked.fault !== '') {
    const message = `Cannot use Secret "${ofNamespace}/${ofName}" for client certificates: ${revoked.fault}`;
    problems.push({ object: `Ingress ${key}`, reason: 'InvalidCertificate', message });
  }
  const authority = authorityOf({ name: object, fingerprint: content.fingerprint }, depth);
  return {
    verify: verify === 'optional' ? 'optional' : 'required',
    authority,
    ...(revoked.crl && { crl: revoked.crl }),
    ...(errorPage && { errorPage }),
  };
}
