// The model: the load balancers that the objects ask for, in Octavia's terms, one value per load balancer.
// Every string has passed the allow-list of its field, so templates and sockets use it without escaping.
// Values only; imports nothing but values.

import type { HostPattern, Routing, TlsRouting } from './routes.ts';

export type Family = 'v4' | 'v6';
export type Protocol = 'TCP' | 'UDP' | 'SCTP';
/** Who forwards a listener's traffic: a HAProxy process, or the kernel by rules of nftables. */
export type Engine = 'haproxy' | 'kernel';

/** `default/web` for a Service, with the kind in front for other owners: `gateway:default/edge` (names.ts). */
export type OwnerKey = string;

/** Made from one object, its owner. */
export interface LoadBalancer {
  readonly kind: 'LoadBalancer';
  readonly key: OwnerKey;
  readonly namespace: string;
  readonly name: string;
  /** In the order of the Service, also addresses whose ports another Service has. */
  readonly vips: readonly Vip[];
  /** One per Service port and address family, in the order of the Service's ports, v4 before v6. */
  readonly listeners: readonly Listener[];
  /** Absent: connections that its pods open keep their source. */
  readonly egress?: Egress;
  /** For the object's author: refused values, ports that are not served, conflicts. */
  readonly problems: readonly Problem[];
}

/** Connections that the pods of a Service open leave from its VIPs. */
export interface Egress {
  /** The oldest of several Services that have a pod counts: milliseconds since the epoch, Infinity if unknown. */
  readonly created: number;
  /** The first VIP of each family. */
  readonly addresses: Readonly<Partial<Record<Family, string>>>;
  /** Sorted by address; each address once. */
  readonly pods: readonly EgressPod[];
}

export interface EgressPod {
  readonly address: string;
  readonly family: Family;
  /** `Pod/web-1`; '' if unknown. */
  readonly target: string;
}

/** A Service that this agent does not serve; `reason` is a sentence for `why`. */
export interface Ignored {
  readonly kind: 'Ignored';
  readonly key: string;
  readonly reason: string;
}

export interface Vip {
  /** Canonical text (RFC 5952 for IPv6), without brackets. */
  readonly address: string;
  readonly family: Family;
  readonly source:
    | 'pool'
    | 'annotation'
    | 'spec.loadBalancerIP'
    | 'status'
    | 'spec.addresses'
    | 'spec.externalIPs'
    | 'spec.clusterIPs'
    | 'pushed';
  /** The address that clients use, where a NAT outside translates it; absent if they use `address`, '' while it is not known. */
  readonly publicAddress?: string;
}

/** `10.0.0.5 (public 203.0.113.5)`. */
export function addressInWords({ address, publicAddress }: Vip): string {
  if (publicAddress === undefined) return address;
  return `${address} (public ${publicAddress || 'not known yet'})`;
}

/** In statuses, and what DNS publishes; '' for nothing. */
export function shownAddress({ address, publicAddress = address }: Vip): string {
  return publicAddress;
}

/** The labels of a listener in metrics and logs. */
export interface ListenerLabels {
  readonly namespace: string;
  /** The owner's name. */
  readonly service: string;
  readonly port: string;
  readonly protocol: Protocol;
  readonly family: Family;
}

export interface Listener {
  /** `default:web:tcp:80:v4`, see names.ts; the name of its HAProxy section. */
  readonly name: string;
  /** So that no code has to parse the name. */
  readonly labels: ListenerLabels;
  /** Decided once, in translation. */
  readonly engine: Engine;
  /**
   * Whose address members get the packets from; HAProxy's listeners always have the load balancer's. `direct`: they get the
   * client's packets unchanged, also the VIP, and answer past the load balancer.
   */
  readonly sourceAddress: 'load-balancer' | 'client' | 'direct';
  /** `routes`: a pool to which the routes of other listeners send; no client connects to it, and it has no address. */
  readonly reachedBy: 'clients' | 'routes';
  /** How it chooses the pool of routes; undefined: all clients get its own pool, which is empty if it has routes. */
  readonly routing: Routing | undefined;
  /**
   * For a port where TLS of some hosts is passed through: which these are, and which hosts this listener ends (`isEnded`), both
   * by the name in the handshake. Absent: all TLS is ended here, or none.
   */
  readonly dispatch?: TlsRouting;
  readonly protocol: Protocol;
  /** 1 to 65535. */
  readonly port: number;
  /** The name of the Service port, '' if it has none. */
  readonly portName: string;
  readonly family: Family;
  /** The addresses to bind: those of its family whose protocol and port no other Service has. */
  readonly addresses: readonly string[];
  readonly mode: 'tcp' | 'http';
  /** undefined if the load balancer ends no TLS here. */
  readonly tls: Tls | undefined;
  /** Clients begin with a PROXY protocol header. */
  readonly acceptProxy: boolean;
  /** Canonical CIDRs of this family, sorted; empty: no client may connect. */
  readonly allowedCidrs: readonly string[];
  /** Concurrent connections; 0: no limit. */
  readonly connectionLimit: number;
  /** New connections per second from one source address; 0: no limit. */
  readonly rateLimit: number;
  /** Milliseconds. */
  readonly clientTimeout: number;
  /** Mode http: canonical CIDRs whose forwarded headers and request ids are true; absent: none. */
  readonly trustedProxies?: readonly string[] | undefined;
  /** Mode http: each request gets an id, which its member and the connection log have; absent: none. */
  readonly requestIds?: boolean | undefined;
  /** Mode http: answers are compressed for clients that accept gzip; absent: not. */
  readonly compression?: 'gzip' | undefined;
  /** Mode http: what clients get instead of HAProxy's own pages; absent: nothing. */
  readonly errorPages?: ErrorPages | undefined;
  /** Users of its routes with basic authentication; absent: none. A route whose users are not among them lets no client in. */
  readonly userLists?: readonly UserList[] | undefined;
  /** Public keys of its routes' tokens; absent: none. A route whose keys are not among them lets no client in. */
  readonly tokenKeys?: readonly TokenKeySet[] | undefined;
  /** A route of it asks a service whether requests are let in; without it, such a route lets no client in. */
  readonly asksServers?: true | undefined;
  /** A route of it has a default backend answer instead of members; without it, their answers pass. */
  readonly replacesErrors?: true | undefined;
  readonly log: ConnectionLog;
  readonly pool: Pool;
}

/** The connections of a listener, in mode http its requests, that the connection log has: those that fail, or all. */
export type ConnectionLog = 'none' | 'errors' | 'all';

/** TLS that the load balancer ends. Certificates have their texts outside the model (certificates/certificates.ts). */
export interface Tls {
  /** The first one is for clients that ask for no name, or for one that no certificate has. Not empty. */
  readonly certificates: readonly Certificate[];
  readonly minVersion: '1.2' | '1.3';
  /** Names of OpenSSL for TLS 1.2, and of TLS 1.3; empty: the defaults. */
  readonly ciphers: readonly string[];
  /** The clients must, or may, have a certificate of one of the authorities, or may have any (`ignored`); undefined: none. */
  readonly clients:
    | {
        readonly verify: 'optional' | 'required' | 'ignored';
        readonly authority: Authority;
        /** Absent: revoked certificates count as others. */
        readonly crl?: Crl;
        /** A URL with variables to which clients are sent that have no certificate, or a wrong one; absent: their handshake fails. */
        readonly errorPage?: string;
      }
    | undefined;
  /** The protocols that the load balancer accepts inside TLS, the preferred one first; empty: without ALPN. */
  readonly alpn: readonly string[];
  /** Names for which clients get other certificates, or need other ones themselves; absent for a Service. */
  readonly sections?: readonly TlsSection[];
}

/** TLS of one listener of a Gateway, where several share a port. */
export interface TlsSection {
  /** The names that clients ask for. */
  readonly hostname: HostPattern;
  /** The first one is for a name that none of them has. Not empty. */
  readonly certificates: readonly Certificate[];
  readonly clients: Tls['clients'];
}

/** A list of trusted certificates. */
export interface Authority {
  /** The object: `configmap default/clients`, `secret default/shop-tls`. */
  readonly name: string;
  /** A hash of the list. */
  readonly fingerprint: string;
  /** The most intermediate certificates of a chain; absent: as many as OpenSSL takes. */
  readonly depth?: number;
}

/** Users with hashes of their passwords: the Secret (`secret default/users`), and a hash of the list. */
export type UserList = Authority;

/** Public keys: the object or URL that has them (`configmap default/keys`, `secret default/keys`, `jwks https://…`), and a hash of them. */
export interface TokenKeySet extends Authority {
  /** Empty: a command has not read them. No client is let in. */
  readonly keys: readonly TokenKey[];
}

export interface TokenKey {
  /** By which a token names it; unique within its set. */
  readonly kid: string;
  readonly algorithm: 'RS256' | 'RS384' | 'RS512' | 'ES256' | 'ES384' | 'ES512';
  /** A hash of algorithm and key. */
  readonly id: string;
  /** The public key. */
  readonly pem: string;
}

/** The revocation lists of authorities, with the fields of an authority. */
export type Crl = Authority;

/** Pages by status: the ConfigMap (`configmap default/pages`), and a hash of all of them. */
export interface ErrorPages extends Authority {
  /** Sorted. */
  readonly statuses: readonly string[];
}

/** TLS to the members. */
export interface MemberTls {
  /** undefined: their certificates are not verified. */
  readonly authority: Authority | undefined;
  /** The name that members are asked for (SNI), and that their certificates must have; '' for none. */
  readonly serverName: string;
  /** What members get if they ask for a certificate; absent: nothing. */
  readonly certificate?: Certificate | undefined;
  /** Absent: those of OpenSSL. */
  readonly versions?: TlsVersions;
  /** As in `Tls`; absent: those of OpenSSL. */
  readonly ciphers?: readonly string[];
}

/** The lowest and the highest version. */
export interface TlsVersions {
  readonly min: '1.2' | '1.3';
  readonly max: '1.2' | '1.3';
}

/** A certificate with its chain and key. */
export interface Certificate {
  /** The Secret: `default/shop-tls`. */
  readonly name: string;
  /** A hash of chain and key. */
  readonly fingerprint: string;
  /** SHA-1 of the certificate, by which HAProxy shows what it has. */
  readonly sha1: string;
  /** How many certificates follow the server's in the chain. */
  readonly chainLength: number;
  /** The length of the PEM text. */
  readonly bytes: number;
  /** Milliseconds since the epoch. */
  readonly expires: number;
}

/** `key-hash`: by what the rule of a request makes a key of (`hashBy`). */
export type Algorithm = 'round-robin' | 'least-connections' | 'source-hash' | 'random' | 'key-hash';

export interface Pool {
  readonly algorithm: Algorithm;
  /** Seconds a client address keeps its member (sessionAffinity: ClientIP); 0: no persistence. */
  readonly persistence: number;
  /** The engine `kernel`: clients with the same bits in front, so many, share a member; absent: each address has its own. */
  readonly persistencePrefix?: number | undefined;
  readonly monitor: HealthMonitor | undefined;
  /** When a member that fails clients gets no more of them for a while; absent: never. */
  readonly ejection?: Ejection | undefined;
  /** Milliseconds in which the share of a member that is new or comes back grows to its own; absent: at once. */
  readonly slowStart?: number | undefined;
  /** undefined: members get what is inside TLS, or what clients send. */
  readonly tls: MemberTls | undefined;
  /** The version of HTTP that members get; `1.1` except in mode http. */
  readonly httpVersion: '1.1' | '2';
  /** The cookie by which a client of mode http keeps its member; '' for none. */
  readonly cookie: string;
  /** What only those know who may read the Service: who has it can make the cookie of each member. '': there is none. */
  readonly cookieSecret?: string;
  /** What a request is sent again for, other than a connection that cannot be opened; absent: nothing else. */
  readonly retry?: PoolRetry | undefined;
  /** The PROXY protocol header that members get. */
  readonly proxyProtocol: 'none' | 'v1' | 'v2';
  /** Milliseconds; `tunnel` 0: not set. */
  readonly timeouts: {
    readonly connect: number;
    readonly server: number;
    readonly tunnel: number;
    readonly queue: number;
  };
  /** Concurrent connections to one member; 0: no limit. */
  readonly memberConnectionLimit: number;
  /** If no member is ready: refuse new connections, or keep the last ready members. */
  readonly whenEmpty: 'reject' | 'keep-last';
  /** If the monitor finds all ready members down: send to all of them, or refuse new connections. */
  readonly whenAllDown: 'serve' | 'reject';
  /** Sorted by name; names are unique. */
  readonly members: readonly Member[];
  /** A pool of routes: canonical CIDRs of both families whose clients it may serve; absent: all. */
  readonly clients?: readonly string[] | undefined;
}

export interface Ejection {
  /** Errors in a row, 1 or more. */
  readonly after: number;
  /** The status codes that count as errors in mode http: codes and ranges, comma-separated. */
  readonly statuses: string;
  /** Percent of the ready members that may rest at a time, 1 to 99; one may always, if another takes connections. */
  readonly share: number;
}

export interface PoolRetry {
  /** How often at most, besides the first time. */
  readonly attempts: number;
  /** Status codes, of those that HAProxy can retry. */
  readonly codes: readonly number[];
}

export interface Member {
  /** `address:port`; unique within its pool, the same on every host. */
  readonly name: string;
  /** 1 to 2^31-1, a stable hash of the name, unique within its pool. */
  readonly id: number;
  readonly address: string;
  readonly port: number;
  /** 0 to 256. */
  readonly weight: number;
  /** `drain`: keeps its connections, gets no new ones. */
  readonly state: 'ready' | 'drain';
  /** The pod or node behind the address, for people and metrics; '' if unknown. */
  readonly target: string;
}

export interface HealthMonitor {
  /**
   * `grpc` and `grpcs`: gRPC's health checking protocol, without and with TLS. `udp`: of UDP listeners only, by the agent;
   * HAProxy does all others, also for listeners of the kernel.
   */
  readonly type: 'tcp' | 'http' | 'https' | 'tls' | 'grpc' | 'grpcs' | 'udp';
  /** '' except for http and https; so are the fields up to expectedBodyPattern. */
  readonly path: string;
  readonly method: string;
  /** Codes and ranges, comma-separated, as in HAProxy's `http-check expect status`. */
  readonly expectedCodes: string;
  /** A text and a regular expression that the body must contain; '' for any body. */
  readonly expectedBody: string;
  readonly expectedBodyPattern: string;
  /** A name with an optional port: the `Host` of HTTP, the `:authority` of gRPC; '' for none. */
  readonly host: string;
  /** The server name of the TLS handshake, '' for none. */
  readonly sni: string;
  /** The service that the gRPC check names, '' for the whole server. */
  readonly grpcService: string;
  /** Milliseconds. */
  readonly interval: number;
  readonly timeout: number;
  readonly rise: number;
  readonly fall: number;
  /** 0: the member's own port. */
  readonly port: number;
}

/** The fields that only some types of monitors use. */
export const PLAIN_MONITOR = {
  path: '',
  method: '',
  expectedCodes: '',
  expectedBody: '',
  expectedBodyPattern: '',
  host: '',
  sni: '',
  grpcService: '',
} as const;

/** A user's mistake in an object, or a part of it that this host cannot serve; never an exception. */
export interface Problem {
  /** `Service default/web`, `EndpointSlice default/web-abc`, or a file's path. */
  readonly object: string;
  /** CamelCase, stable, for Events and conditions; listed in docs/errors.md. */
  readonly reason: ProblemReason;
  readonly message: string;
  /** If it concerns one port of a Service. */
  readonly port?: { readonly protocol: Protocol; readonly port: number };
}

export type ProblemReason =
  | 'InvalidFile'
  | 'InvalidObject'
  | 'DuplicateObject'
  | 'Misspelled'
  | 'KindIgnored'
  | 'InvalidAnnotation'
  | 'InvalidSourceRange'
  | 'ClosedByPolicy'
  | 'InvalidAddress'
  | 'AddressPending'
  | 'AddressInUse'
  | 'AddressUnavailable'
  | 'AddressNotAnnounced'
  | 'AddressConflict'
  | 'AddressNotInPool'
  | 'AddressNotAllowed'
  | 'AddressOutOfPool'
  | 'AddressNotMovable'
  | 'PoolsOverlap'
  | 'NotPermitted'
  | 'ProvisionerFailed'
  | 'ProtocolNotServed'
  | 'AnswersMissing'
  | 'EgressNotServed'
  | 'EgressConflict'
  | 'EgressPodRefused'
  | 'NodePortMissing'
  | 'InvalidEndpoint'
  | 'InvalidListener'
  | 'InvalidRoute'
  | 'InvalidPolicy'
  | 'InvalidClass'
  | 'RouteShadowed'
  | 'AnnotationIgnored'
  | 'OptionIgnored'
  | 'ProtectionMissing'
  | 'ShareExceeded'
  | 'AllMembersDown'
  | 'MembersFail'
  | 'MonitorNotUsed'
  | 'ConfigurationRejected'
  | 'CertificateMissing'
  | 'InvalidCertificate'
  | 'InvalidUsers'
  | 'InvalidKeys'
  | 'InvalidErrorPages'
  | 'CertificateExpired'
  | 'BgpSessionDown'
  | 'PassingFaulty'
  | 'BgpRoutesHeldBack'
  | 'TwoMasters';
