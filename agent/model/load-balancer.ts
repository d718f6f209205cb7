// The model: what the objects ask of the dataplane, in Octavia's words, one value per load balancer.
// Every string here has passed the allow-list of its field, so that a template or a socket may take it as it is.
// Values only; imports nothing.

export type Family = 'v4' | 'v6';
export type Protocol = 'TCP' | 'UDP' | 'SCTP';
/** Who forwards a listener's traffic: a HAProxy process, or the kernel by rules of nftables. */
export type Engine = 'haproxy' | 'kernel';

/** `default/web` for a Service, with the kind in front for all others: `gateway:default/edge` (names.ts). */
export type OwnerKey = string;

/** From one object that is ours, its owner. */
export interface LoadBalancer {
  readonly kind: 'LoadBalancer';
  readonly key: OwnerKey;
  readonly namespace: string;
  readonly name: string;
  /** Addresses in the order the Service asks for them; one that another Service holds is still listed. */
  readonly vips: readonly Vip[];
  /** One per Service port and address family, in the order of the Service's ports, v4 before v6. */
  readonly listeners: readonly Listener[];
  /** What the object's author has to know: refused values, ports not served, conflicts. */
  readonly problems: readonly Problem[];
}

/** A Service that is not ours, or that asks for nothing we can serve; `reason` is for `why`. */
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

/** What metrics and logs say of a listener. */
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
  /** What metrics and logs say of it, so that nobody has to take the name apart. */
  readonly labels: ListenerLabels;
  /** Decided once, in translation. */
  readonly engine: Engine;
  readonly protocol: Protocol;
  /** 1 to 65535. */
  readonly port: number;
  /** The Service port's name, '' where it has none. */
  readonly portName: string;
  readonly family: Family;
  /** Addresses this listener binds: those of its family that no other Service holds on this protocol and port. */
  readonly addresses: readonly string[];
  readonly mode: 'tcp' | 'http';
  /** Clients begin with a PROXY protocol header. */
  readonly acceptProxy: boolean;
  /** Canonical CIDRs of this family, sorted; empty means that nobody may connect. */
  readonly allowedCidrs: readonly string[];
  /** Concurrent connections; 0: no limit of its own. */
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
  /** Milliseconds; tunnel 0: not set. */
  readonly timeouts: {
    readonly connect: number;
    readonly server: number;
    readonly tunnel: number;
    readonly queue: number;
  };
  /** Concurrent connections to one member; 0: no limit. */
  readonly memberConnectionLimit: number;
  /** What happens when no member is ready: new connections are refused, or the last ready members are kept. */
  readonly whenEmpty: 'reject' | 'keep-last';
  /** What happens when the monitor finds every ready member down: all get traffic as if they were up, or none does. */
  readonly whenAllDown: 'serve' | 'reject';
  /** Sorted by name; no two alike. */
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
  /** `drain`: keeps its connections, takes no new ones. */
  readonly state: 'ready' | 'drain';
  /** The pod or node behind the address, for people and metrics; '' where unknown. */
  readonly target: string;
}

export interface HealthMonitor {
  /** `grpc` and `grpcs`: the health checking protocol of gRPC, without and with TLS. */
  readonly type: 'tcp' | 'http' | 'https' | 'tls' | 'grpc' | 'grpcs';
  /** http and https only, otherwise ''. */
  readonly path: string;
  readonly method: string;
  /** As HAProxy's `http-check expect status` takes it: codes and ranges, comma-separated. */
  readonly expectedCodes: string;
  /** What the body must hold: a text, and a regular expression; '' for anything. HTTP and HTTPS only. */
  readonly expectedBody: string;
  readonly expectedBodyPattern: string;
  /** A name, perhaps with a port: the `Host` of HTTP, the `:authority` of gRPC; '' for none. */
  readonly host: string;
  /** The name asked for in the TLS handshake, '' for none. */
  readonly sni: string;
  /** The service that gRPC is asked about, '' for the whole server. */
  readonly grpcService: string;
  /** Milliseconds. */
  readonly interval: number;
  readonly timeout: number;
  readonly rise: number;
  readonly fall: number;
  /** 0: the member's own port. */
  readonly port: number;
}

/** A user's mistake, or something this host cannot do for the object; never an exception. */
export interface Problem {
  /** `Service default/web`, `EndpointSlice default/web-abc`, or a file's path. */
  readonly object: string;
  /** CamelCase, stable, for Events and conditions; listed in docs/errors.md. */
  readonly reason: ProblemReason;
  readonly message: string;
  /** The Service port it is about, where it is about one. */
  readonly port?: { readonly protocol: Protocol; readonly port: number };
}

export type ProblemReason =
  | 'InvalidFile'
  | 'InvalidObject'
  | 'DuplicateObject'
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
  | 'AllMembersDown'
  | 'MonitorNotUsed'
  | 'ConfigurationRejected'
  | 'TwoMasters';
