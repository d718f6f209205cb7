// The model: the load balancers that the objects ask for, in Octavia's terms, one value per load balancer.
// Every string has passed the allow-list of its field, so templates and sockets use it without escaping.
// Values only; imports nothing.

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
  /** For the object's author: refused values, ports that are not served, conflicts. */
  readonly problems: readonly Problem[];
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
    | 'spec.externalIPs'
    | 'spec.clusterIPs';
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
  readonly protocol: Protocol;
  /** 1 to 65535. */
  readonly port: number;
  /** The name of the Service port, '' if it has none. */
  readonly portName: string;
  readonly family: Family;
  /** The addresses to bind: those of its family whose protocol and port no other Service has. */
  readonly addresses: readonly string[];
  readonly mode: 'tcp' | 'http';
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
  readonly pool: Pool;
}

export type Algorithm = 'round-robin' | 'least-connections' | 'source-hash' | 'random';

export interface Pool {
  readonly algorithm: Algorithm;
  /** Seconds a client address keeps its member (sessionAffinity: ClientIP); 0: no persistence. */
  readonly persistence: number;
  readonly monitor: HealthMonitor | undefined;
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
  /** `grpc` and `grpcs`: gRPC's health checking protocol, without and with TLS. */
  readonly type: 'tcp' | 'http' | 'https' | 'tls' | 'grpc' | 'grpcs';
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
  | 'InvalidAnnotation'
  | 'InvalidSourceRange'
  | 'InvalidAddress'
  | 'AddressPending'
  | 'AddressInUse'
  | 'AddressUnavailable'
  | 'AddressNotInPool'
  | 'AddressNotAllowed'
  | 'AddressOutOfPool'
  | 'AddressNotMovable'
  | 'PoolsOverlap'
  | 'NotPermitted'
  | 'ProvisionerFailed'
  | 'ProtocolNotServed'
  | 'NodePortMissing'
  | 'InvalidEndpoint'
  | 'ShareExceeded'
  | 'AllMembersDown'
  | 'MonitorNotUsed'
  | 'ConfigurationRejected'
  | 'TwoMasters';
