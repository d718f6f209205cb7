// The objects of a soak in a real API server, and what its clients may expect of them: Services of TCP and UDP, an Ingress
// with TLS, and guarded ones whose members no client may ever reach without what the guard asks for.

import type { Kube } from '../kube/kube.ts';
import { servicePath, slicePath } from '../kube/kube-objects.ts';
import { Authority, base64, type IssuedCertificate, tlsSecret } from '../traffic/tls.ts';
import { asNew, ingressClassJson, ingressJson } from '../values/gateways.ts';
import type { Json } from '../values/service-objects.ts';
import { basic, HASHES } from '../values/users.ts';
import type { SoakTarget } from './soak-client.ts';
import type { MemberPorts } from './soak-clients.ts';

export const PODS = Array.from({ length: 8 }, (_, at) => `10.9.5.${at + 1}`);
/** The port of each Service's pods: an answer shows which Service was reached. */
const POD_PORTS = { web: 9001, shop: 9002, blog: 9003, admin: 9004, users: 9005, mtls: 9006, closed: 9007 };
const GUEST_POD_PORT = 9008;
export const MEMBERS: MemberPorts = { first: 9001, count: 8, udp: 5353 };
export type Backend = keyof typeof POD_PORTS | 'dns';
export const BACKENDS: readonly Backend[] = ['dns', ...(Object.keys(POD_PORTS) as Backend[])];

export const VIPS = { web: '10.9.1.1', dns: '10.9.1.2', closed: '10.9.1.3', edge: '10.9.1.4' };
export const SHOP = 'shop.example.org';
const [PLAIN, USERS, MTLS] = ['plain.example.org', 'users.example.org', 'mtls.example.org'];
const WRONG_PASSWORD_EVERY_MS = 400;
/** None of the clients. */
const ELSEWHERE = '203.0.113.0/24';
const PREFIX = 'nginx.ingress.kubernetes.io/';
const POOLS = [
  soakPool('guests', { blocks: ['10.9.3.0/24'] }),
  soakPool('named', { blocks: ['10.9.1.0/24'], autoAssign: false }),
];

export const ingressPath = (name = '') =>
  `/apis/networking.k8s.io/v1/namespaces/default/ingresses${name === '' ? '' : `/${name}`}`;
export const secretPath = (name = '') => `/api/v1/namespaces/default/secrets${name === '' ? '' : `/${name}`}`;
export const poolPath = (name = '') =>
  `/apis/headgate.io/v1alpha1/addresspools${name === '' ? '' : `/${name}`}`;

/** Certificates of the servers, which are renewed by turns, and of clients. */
export interface SoakKeys {
  readonly ca: string;
  readonly servers: readonly IssuedCertificate[];
  readonly clientCa: string;
  readonly otherCa: string;
  readonly client: IssuedCertificate;
  /** A certificate of an authority that no list has. */
  readonly stranger: IssuedCertificate;
}

export async function soakKeys(t: Parameters<typeof Authority.create>[0]): Promise<SoakKeys> {
  const [own, clients, other, none] = await Promise.all(
    ['servers', 'clients', 'other', 'none'].map((name) => Authority.create(t, name)),
  );
  if (own === undefined || clients === undefined || other === undefined || none === undefined)
    throw new Error('There are four authorities');
  const names = [SHOP, USERS, MTLS];
  return {
    ca: own.cert,
    servers: [await own.issue({ names }), await own.issue({ names })],
    clientCa: clients.cert,
    otherCa: other.cert,
    client: await clients.issue({ names: ['client'] }),
    stranger: await none.issue({ names: ['stranger'] }),
  };
}

export async function createSoakObjects(kube: Kube, keys: SoakKeys): Promise<void> {
  const [server] = keys.servers;
  if (server === undefined) throw new Error('There are two certificates');
  await kube.must('POST', secretPath(), tlsSecret('server', server));
  await kube.must('POST', secretPath(), clientsSecret(keys.clientCa));
  await kube.must('POST', secretPath(), usersSecret(0));
  for (const pool of POOLS) await kube.must('POST', poolPath(), pool);
  for (const backend of BACKENDS) {
    await kube.must('POST', servicePath('default'), backendService(backend));
    await kube.must('POST', slicePath('default'), soakSlice(backend, PODS.slice(0, 4)));
  }
  const annotations = { 'headgate.io/load-balancer-ips': VIPS.edge };
  await kube.must(
    'POST',
    '/apis/networking.k8s.io/v1/ingressclasses',
    asNew(ingressClassJson('edge', annotations)),
  );
  for (const ingress of soakIngresses()) await kube.must('POST', ingressPath(), ingress);
}

export function soakPool(name: string, spec: Json): Json {
  return { apiVersion: 'headgate.io/v1alpha1', kind: 'AddressPool', metadata: { name }, spec };
}

export function clientsSecret(ca: string): Json {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'clients' }, data: { 'ca.crt': base64(ca) } };
}

/** User `ann` always has the password `open`; another user comes and goes with `turn`. */
export function usersSecret(turn: number): Json {
  const auth = `ann:${HASHES.sha256}\n${turn % 2 === 0 ? '' : `bob${turn}:${HASHES.sha512}\n`}`;
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'users' }, stringData: { auth } };
}

/** The slice of one Service's pods at these addresses. */
export function soakSlice(name: Backend | `guest-${number}`, addresses: readonly string[]): Json {
  const isUdp = name === 'dns';
  const port = name in POD_PORTS ? POD_PORTS[name as keyof typeof POD_PORTS] : GUEST_POD_PORT;
  return {
    metadata: { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'main', port: isUdp ? MEMBERS.udp : port, protocol: isUdp ? 'UDP' : 'TCP' }],
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
  };
}

/** A Service that asks for an address of the pool. */
export function guestService(name: string): Json {
  const ports = [{ name: 'main', port: 8080, protocol: 'TCP' }];
  return { metadata: { name }, spec: { ...LOAD_BALANCER, ports } };
}

const LOAD_BALANCER = { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false };

function backendService(name: Backend): Json {
  const port = { web: 8080, dns: 53, closed: 8080 }[name as string] ?? 80;
  const ports = [{ name: 'main', port, protocol: name === 'dns' ? 'UDP' : 'TCP' }];
  const address = { web: VIPS.web, dns: VIPS.dns, closed: VIPS.closed }[name as string];
  if (address === undefined) return { metadata: { name }, spec: { type: 'ClusterIP', ports } };
  const ranges = name === 'closed' ? { loadBalancerSourceRanges: [ELSEWHERE] } : {};
  const annotations = { 'headgate.io/load-balancer-ips': address };
  return { metadata: { name, annotations }, spec: { ...LOAD_BALANCER, ports, ...ranges } };
}

function soakIngresses(): readonly Json[] {
  const tls = (host: string) => ({ tls: [{ hosts: [host], secretName: 'server' }] });
  const range = { [`${PREFIX}whitelist-source-range`]: ELSEWHERE };
  return [
    ingressOf('shop', SHOP, { '/': 'shop', '/blog': 'blog' }, tls(SHOP)),
    ingressOf('admin', SHOP, { '/admin': 'admin' }, tls(SHOP), range),
    ingressOf('plain', PLAIN, { '/': 'shop' }),
    ingressOf('users', USERS, { '/': 'users' }, tls(USERS), {
      [`${PREFIX}auth-type`]: 'basic',
      [`${PREFIX}auth-secret`]: 'users',
    }),
    ingressOf('mtls', MTLS, { '/': 'mtls' }, tls(MTLS), { [`${PREFIX}auth-tls-secret`]: 'default/clients' }),
  ];
}

export function ingressOf(
  name: string,
  host: string,
  backends: Readonly<Record<string, Backend>>,
  more: Json = {},
  annotations: Json = {},
): Json {
  const paths = Object.entries(backends).map(([path, backend]) => ({
    path,
    pathType: 'Prefix',
    backend: { service: { name: backend, port: { number: 80 } } },
  }));
  return asNew(ingressJson(name, { rules: [{ host, http: { paths } }], ...more }, annotations));
}

/** `pods`: the addresses of each Service that may answer; undefined: any of its port. */
export function soakTargets(
  keys: SoakKeys,
  pods?: ReadonlyMap<Backend, readonly string[]>,
): readonly SoakTarget[] {
  const of = (...backends: readonly Backend[]): readonly string[] =>
    backends.flatMap((backend) => {
      const port = backend === 'dns' ? MEMBERS.udp : POD_PORTS[backend];
      return (pods?.get(backend) ?? ['']).map((address) => `${address}:${port}`);
    });
  const edge = { address: VIPS.edge, port: 443, ca: keys.ca };
  const shop = { ...edge, host: SHOP };
  const users = { ...edge, host: USERS, kind: 'tls' as const };
  const mtls = { ...edge, host: MTLS, kind: 'tls' as const };
  const own = { cert: keys.client.cert, key: keys.client.key };
  const none: readonly string[] = [];
  return [
    { name: 'TCP, new connections', kind: 'new', address: VIPS.web, port: 8080, members: of('web') },
    // A connection of TCP stays with its member, which may have been removed since.
    { name: 'TCP, a kept connection', kind: 'kept', address: VIPS.web, port: 8080, members: [':9001'] },
    { name: 'UDP', kind: 'udp', address: VIPS.dns, port: 53, members: of('dns') },
    { name: 'HTTP/1.1', kind: 'kept', address: VIPS.edge, port: 80, host: PLAIN, members: of('shop') },
    { name: 'TLS', kind: 'tls', ...shop, members: of('shop', 'blog') },
    { name: 'HTTP/2', kind: 'h2', ...shop, path: '/blog', members: of('shop', 'blog') },
    { name: 'a right password', ...users, headers: basic('ann', 'open'), members: of('users') },
    { name: 'a right client certificate', ...mtls, ...own, members: of('mtls') },
    { name: 'refused: source ranges of TCP', kind: 'new', address: VIPS.closed, port: 8080, members: none },
    { name: 'refused: source ranges of a path', kind: 'tls', ...shop, path: '/admin', members: none },
    { name: 'refused: below such a path, HTTP/2', kind: 'h2', ...shop, path: '/admin/a?b', members: none },
    { name: 'refused: no password', ...users, members: none },
    // After five wrong passwords in a second, or ten of a user, right ones of that client or user get 429, too.
    {
      name: 'refused: a wrong password',
      ...{ ...users, headers: basic('ann', 'shut'), members: none, pauseMs: WRONG_PASSWORD_EVERY_MS },
    },
    { name: 'refused: no client certificate', ...mtls, members: none },
    {
      name: "refused: a stranger's client certificate",
      ...{ ...mtls, cert: keys.stranger.cert, key: keys.stranger.key, members: none },
    },
  ];
}

export function guestTarget(name: string, address: string): SoakTarget {
  return { name, kind: 'new', address, port: 8080, members: [`:${GUEST_POD_PORT}`] };
}
