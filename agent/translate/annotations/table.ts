// The one table of the annotations that a Service can carry: it drives reading, refusing, the texts of refusals and
// docs/annotations.md. A new annotation is one field of AnnotationValues and one entry of ANNOTATIONS. Values only.

import type { Algorithm, HealthMonitor, Pool } from '../../model/load-balancer.ts';
import { type Alias, counted, milliseconds, minusOneForNone, seconds, spelled } from './aliases.ts';
import {
  addressPerFamily,
  bodyPattern,
  bodyText,
  bool,
  choice,
  DAY,
  duration,
  durationOrOff,
  grpcServiceName,
  hostAndPort,
  hostName,
  type Kind,
  MILLISECOND,
  MINUTE,
  objectName,
  path,
  SECOND,
  statusCodes,
  wholeNumber,
  word,
} from './kinds.ts';

export const PREFIX = 'headgate.io/';

/** One field per annotation; durations in milliseconds, 0 where it says so: none, or no limit. */
export interface AnnotationValues {
  readonly algorithm: Algorithm;
  readonly mode: 'tcp' | 'http';
  readonly healthMonitor: 'none' | HealthMonitor['type'] | 'kube-proxy';
  readonly healthMonitorPath: string;
  readonly healthMonitorMethod: 'GET' | 'HEAD' | 'OPTIONS';
  /** Sorted and merged. */
  readonly healthMonitorExpectedCodes: string;
  /** '' where the body does not matter; so for the next one. */
  readonly healthMonitorExpectedBody: string;
  readonly healthMonitorExpectedBodyPattern: string;
  /** '': none. */
  readonly healthMonitorHost: string;
  /** '': the name in healthMonitorHost. */
  readonly healthMonitorSni: string;
  /** '': the whole server. */
  readonly healthMonitorGrpcService: string;
  readonly healthMonitorInterval: number;
  /** At most the interval. */
  readonly healthMonitorTimeout: number;
  readonly healthMonitorRise: number;
  readonly healthMonitorFall: number;
  /** 0: the member's own. */
  readonly healthMonitorPort: number;
  readonly proxyProtocol: Pool['proxyProtocol'];
  readonly acceptProxyProtocol: boolean;
  readonly timeoutConnect: number;
  readonly timeoutClient: number;
  readonly timeoutServer: number;
  /** 0: not set. */
  readonly timeoutTunnel: number;
  readonly timeoutQueue: number;
  /** 0: no limit. */
  readonly connectionLimit: number;
  /** 0: no limit. */
  readonly rateLimit: number;
  /** 0: no limit. */
  readonly memberConnectionLimit: number;
  /** undefined: as the settings say. */
  readonly members: 'pods' | 'nodes' | undefined;
  readonly whenEmpty: Pool['whenEmpty'];
  readonly whenAllDown: Pool['whenAllDown'];
  /** Canonical, at most one per family, in the order written. */
  readonly loadBalancerIps: readonly string[];
  /** undefined: whichever is for the Service. */
  readonly addressPool: string | undefined;
  /** undefined: a whole address. */
  readonly addressSharingKey: string | undefined;
}

export type Field = keyof AnnotationValues;

export interface Annotation<T> {
  /** Without the prefix. */
  readonly name: string;
  readonly kind: Kind<NonNullable<T>>;
  readonly default: T;
  /** The default in words, where the value does not say it. */
  readonly defaultWords?: string;
  /** What it does: sentences, one per line in the documentation. */
  readonly doc: readonly string[];
  readonly example: string;
  readonly aliases: readonly Alias[];
  /** The annotation does nothing unless that field has one of those values. */
  readonly needs?: { readonly field: Field; readonly values: readonly string[] };
  /** Means something for one Service only, so that settings cannot give a default. */
  readonly perService?: true;
}

const monitoredBy = <const T extends readonly AnnotationValues['healthMonitor'][]>(...values: T) =>
  ({ field: 'healthMonitor', values }) as const;
const monitored = monitoredBy('tcp', 'http', 'https', 'tls', 'grpc', 'grpcs', 'kube-proxy');
const monitoredByHttp = monitoredBy('http', 'https');
const monitoredByGrpc = monitoredBy('grpc', 'grpcs');
const idle = [500 * MILLISECOND, 24 * DAY] as const;

export const ANNOTATIONS: { readonly [K in Field]: Annotation<AnnotationValues[K]> } = {
  algorithm: {
    name: 'algorithm',
    kind: choice('round-robin', 'least-connections', 'source-hash', 'random'),
    default: 'round-robin',
    doc: [
      'How a member is chosen for a new connection.',
      '`round-robin` takes one after the other, `least-connections` the one with the fewest connections, `random` any.',
      '`source-hash` sends a client address to the same member as long as the members stay the same, and moves few clients when they change; both hosts of a pair choose alike.',
    ],
    example: 'least-connections',
    aliases: [
      spelled('lb-method', {
        ROUND_ROBIN: 'round-robin',
        LEAST_CONNECTIONS: 'least-connections',
        SOURCE_IP: 'source-hash',
      }),
    ],
  },
  mode: {
    name: 'mode',
    kind: choice('tcp', 'http'),
    default: 'tcp',
    doc: [
      'What the load balancer understands of the traffic on the TCP ports.',
      '`tcp` passes bytes on, whatever they are.',
      '`http` balances request by request and tells members the client address in `X-Forwarded-For`; it serves plain HTTP only, so leave ports with TLS in `tcp`.',
    ],
    example: 'http',
    aliases: [spelled('x-forwarded-for', { true: 'http', false: 'tcp' })],
  },
  healthMonitor: {
    name: 'health-monitor',
    kind: choice('none', 'tcp', 'http', 'https', 'tls', 'grpc', 'grpcs', 'kube-proxy'),
    default: 'none',
    doc: [
      'Whether and how the load balancer itself probes the members: see [health monitors](health-monitors.md).',
      'Kubernetes already takes pods that are not ready out of the pool, so this is for what Kubernetes cannot see, such as a broken network between this load balancer and a member; each probe costs time on both sides.',
      '`tcp` connects, `tls` makes a TLS handshake, `http` and `https` send a request and judge the status code, `grpc` and `grpcs` ask by the health checking protocol of gRPC; certificates are not verified.',
      "`kube-proxy` asks the node's kube-proxy, and is for members that are nodes: at `spec.healthCheckNodePort` with `externalTrafficPolicy: Local`, otherwise at port 10256.",
    ],
    example: 'http',
    aliases: [spelled('enable-health-monitor', { true: 'tcp', false: 'none' })],
  },
  healthMonitorPath: {
    name: 'health-monitor-path',
    kind: path,
    default: '/',
    doc: ['The path that the probe asks for, with its query if it has one.'],
    example: '/healthz?full=1',
    aliases: [],
    needs: monitoredByHttp,
  },
  healthMonitorMethod: {
    name: 'health-monitor-method',
    kind: choice('GET', 'HEAD', 'OPTIONS'),
    default: 'GET',
    doc: ['The method of the probe.'],
    example: 'HEAD',
    aliases: [],
    needs: monitoredByHttp,
  },
  healthMonitorExpectedCodes: {
    name: 'health-monitor-expected-codes',
    kind: statusCodes,
    default: '200-399',
    doc: ['The status codes of a healthy member, separated by commas.'],
    example: '200,204,300-308',
    aliases: [],
    needs: monitoredByHttp,
  },
  healthMonitorExpectedBody: {
    name: 'health-monitor-expected-body',
    kind: bodyText,
    default: '',
    defaultWords: 'none: the body does not matter',
    doc: [
      "A text that the body of a healthy member's answer holds, within its first 15 kB.",
      'It is compared byte by byte, upper and lower case being different.',
    ],
    example: '"status":"UP"',
    aliases: [],
    needs: monitoredByHttp,
  },
  healthMonitorExpectedBodyPattern: {
    name: 'health-monitor-expected-body-pattern',
    kind: bodyPattern,
    default: '',
    defaultWords: 'none: the body does not matter',
    doc: [
      "A regular expression that matches somewhere in the body of a healthy member's answer.",
      'It is of a kind that can never take long, whatever a member answers, because it runs where the traffic does: characters, `.`, classes such as `[a-z0-9]`, alternatives in a group such as `(UP|OK)`, `^`, `$`, and the counts `?`, `{2}` and `{0,20}` behind a single character or class; `*` and `+`, which have no limit, are not allowed.',
    ],
    example: '"status" {0,4}: {0,4}"(UP|OK)"',
    aliases: [],
    needs: monitoredByHttp,
  },
  healthMonitorHost: {
    name: 'health-monitor-host',
    kind: hostAndPort,
    default: '',
    defaultWords: 'none',
    doc: [
      'The host that the probe names, for members that serve several: in the header `Host` of HTTP/1.1, in `:authority` of gRPC.',
      'Without it HTTP probes are of version 1.0 and have no such header.',
    ],
    example: 'www.example.com',
    aliases: [],
    needs: monitoredBy('http', 'https', 'grpc', 'grpcs'),
  },
  healthMonitorSni: {
    name: 'health-monitor-sni',
    kind: hostName,
    default: '',
    defaultWords: 'the name in `health-monitor-host`, if there is one',
    doc: ['The name that the probe asks for in the TLS handshake (SNI).'],
    example: 'www.example.com',
    aliases: [],
    needs: monitoredBy('https', 'tls', 'grpcs'),
  },
  healthMonitorGrpcService: {
    name: 'health-monitor-grpc-service',
    kind: grpcServiceName,
    default: '',
    defaultWords: 'none: the server as a whole',
    doc: ['The service that a gRPC server is asked about, as its health service knows it.'],
    example: 'shop.v1.Orders',
    aliases: [],
    needs: monitoredByGrpc,
  },
  healthMonitorInterval: {
    name: 'health-monitor-interval',
    kind: duration(500 * MILLISECOND, 5 * MINUTE),
    default: 5 * SECOND,
    doc: ['The time from one probe of a member to the next.'],
    example: '10s',
    aliases: [seconds('health-monitor-delay')],
    needs: monitored,
  },
  healthMonitorTimeout: {
    name: 'health-monitor-timeout',
    kind: duration(100 * MILLISECOND, MINUTE),
    default: 3 * SECOND,
    defaultWords: '`3s`, or the interval where that is shorter',
    doc: [
      'How long a probe may wait for an answer before it counts as failed.',
      'It must not exceed the interval.',
      'To connect it has `timeout-connect` besides, or the interval where that is shorter; a `tcp` probe does nothing else.',
    ],
    example: '2s',
    aliases: [seconds('health-monitor-timeout')],
    needs: monitored,
  },
  healthMonitorRise: {
    name: 'health-monitor-rise',
    kind: wholeNumber(1, 50),
    default: 2,
    doc: ['How many probes in a row must succeed before a failed member gets traffic again.'],
    example: '3',
    aliases: [counted('health-monitor-max-retries')],
    needs: monitored,
  },
  healthMonitorFall: {
    name: 'health-monitor-fall',
    kind: wholeNumber(1, 50),
    default: 3,
    doc: ['How many probes in a row must fail before a member gets no more traffic.'],
    example: '2',
    aliases: [counted('health-monitor-max-retries-down')],
    needs: monitored,
  },
  healthMonitorPort: {
    name: 'health-monitor-port',
    kind: wholeNumber(1, 65535),
    default: 0,
    defaultWords: "the member's own port, or that of kube-proxy",
    doc: ['The port that is probed, on the address of the member.'],
    example: '8081',
    aliases: [],
    needs: monitored,
  },
  proxyProtocol: {
    name: 'proxy-protocol',
    kind: choice('none', 'v1', 'v2'),
    default: 'none',
    doc: [
      'Which version of the PROXY protocol tells members the client address at the start of each connection.',
      'The members must expect it: one that does not takes the header for a broken request.',
    ],
    example: 'v2',
    aliases: [spelled('proxy-protocol', { true: 'v1', v1: 'v1', v2: 'v2', false: 'none' })],
  },
  acceptProxyProtocol: {
    name: 'accept-proxy-protocol',
    kind: bool,
    default: false,
    doc: [
      'Whether clients are themselves proxies that begin each connection with a PROXY protocol header of either version.',
      'Connections without the header are then refused.',
      'Whoever can connect can then claim any client address, also before `spec.loadBalancerSourceRanges` and `rate-limit`: use it only where nobody but the proxies reaches this address.',
    ],
    example: 'true',
    aliases: [],
  },
  timeoutConnect: {
    name: 'timeout-connect',
    kind: duration(10 * MILLISECOND, 5 * MINUTE),
    default: SECOND,
    doc: [
      'How long a member may take to accept a connection before the next member is tried.',
      'It is short because it is what a client waits when a member has vanished without a word; members in one data centre accept within a millisecond.',
    ],
    example: '3s',
    aliases: [milliseconds('timeout-member-connect')],
  },
  timeoutClient: {
    name: 'timeout-client',
    kind: duration(...idle),
    default: 10 * MINUTE,
    doc: [
      'How long a client may send nothing, while it is its turn, before its connection is closed.',
      "The default lets database pools, WebSockets and gRPC idle as they are used to: gRPC servers allow a keep-alive ping only every 5 minutes, and Octavia's 50 seconds would cut all of them.",
      'In TCP mode the shorter one of `timeout-client` and `timeout-server` ends an idle connection, so change both.',
    ],
    example: '1h',
    aliases: [milliseconds('timeout-client-data')],
  },
  timeoutServer: {
    name: 'timeout-server',
    kind: duration(...idle),
    default: 10 * MINUTE,
    doc: [
      'How long a member may send nothing, while it is its turn, before its connection is closed; in HTTP mode, how long it may take to answer.',
      'The default is that of `timeout-client`, for the same reasons.',
    ],
    example: '1h',
    aliases: [milliseconds('timeout-member-data')],
  },
  timeoutTunnel: {
    name: 'timeout-tunnel',
    kind: durationOrOff(500 * MILLISECOND, 24 * DAY),
    default: 0,
    defaultWords: '`0`: `timeout-client` and `timeout-server` hold',
    doc: [
      'How long a connection may be silent in both directions, in place of `timeout-client` and `timeout-server`: in TCP mode once it is established, in HTTP mode once it has become a WebSocket or another tunnel.',
    ],
    example: '12h',
    aliases: [],
  },
  timeoutQueue: {
    name: 'timeout-queue',
    kind: duration(10 * MILLISECOND, 10 * MINUTE),
    default: 5 * SECOND,
    doc: [
      'How long a connection waits when every member is at its `member-connection-limit`, before it is refused.',
    ],
    example: '30s',
    aliases: [],
  },
  connectionLimit: {
    name: 'connection-limit',
    kind: wholeNumber(0, 1_000_000),
    default: 0,
    defaultWords: '`0`: no limit',
    doc: [
      'How many connections each port of the Service carries at the same time, for each address family.',
      'Further clients wait in the listening socket until one ends.',
    ],
    example: '2000',
    aliases: [minusOneForNone('connection-limit')],
  },
  rateLimit: {
    name: 'rate-limit',
    kind: wholeNumber(0, 1_000_000),
    default: 0,
    defaultWords: '`0`: no limit',
    doc: [
      'How many new connections one client address may make per second on each port of the Service.',
      'Those above it are refused at once, and do not count: a client that asks too often still gets so many per second.',
    ],
    example: '100',
    aliases: [],
  },
  memberConnectionLimit: {
    name: 'member-connection-limit',
    kind: wholeNumber(0, 1_000_000),
    default: 0,
    defaultWords: '`0`: no limit',
    doc: [
      'How many connections one member gets at the same time from one load-balancer host.',
      'Further ones go to other members, or wait for at most `timeout-queue`.',
    ],
    example: '200',
    aliases: [],
  },
  members: {
    name: 'members',
    kind: choice('pods', 'nodes'),
    default: undefined,
    defaultWords: 'as the settings say',
    doc: [
      'Where traffic is sent.',
      '`pods` sends it straight to the endpoint addresses, which needs a route to the pods.',
      '`nodes` sends it to the node port on the nodes.',
      'A Service with `allocateLoadBalancerNodePorts: false` is always sent to its pods.',
    ],
    example: 'pods',
    aliases: [],
  },
  whenEmpty: {
    name: 'when-empty',
    kind: choice('reject', 'keep-last'),
    default: 'reject',
    doc: [
      'What happens when no member is ready.',
      '`reject` refuses new connections, so that clients know at once.',
      '`keep-last` goes on sending to the last members there were, for applications whose readiness is known to lie.',
      'They are kept in a file as well, so that an agent that starts anew knows them.',
    ],
    example: 'keep-last',
    aliases: [],
  },
  whenAllDown: {
    name: 'when-all-down',
    kind: choice('serve', 'reject'),
    default: 'serve',
    doc: [
      'What happens when the health monitor finds every ready member down, be it the only one.',
      '`serve` sends to all of them as if they were up, because it is likelier that the probe is wrong, or that all share one trouble, than that refusing every client helps; the Service gets an Event with the reason `AllMembersDown`.',
      '`reject` refuses new connections until a probe succeeds.',
    ],
    example: 'reject',
    aliases: [],
    needs: monitored,
  },
  loadBalancerIps: {
    name: 'load-balancer-ips',
    kind: addressPerFamily,
    default: [],
    defaultWords: 'none: `spec.loadBalancerIP` holds',
    doc: [
      'The addresses that the Service asks for, in place of `spec.loadBalancerIP`, which knows one family only.',
      "Each must be of one of the Service's `spec.ipFamilies`.",
    ],
    example: '192.0.2.10,2001:db8::10',
    aliases: [],
    perService: true,
  },
  addressPool: {
    name: 'address-pool',
    kind: objectName,
    default: undefined,
    defaultWords: 'the first pool that is for the Service and has an address free',
    doc: [
      'The [pool](addresses.md) that the Service gets its addresses from.',
      'An address that it has already stays, even if it is of another pool.',
    ],
    example: 'internal',
    aliases: [],
  },
  addressSharingKey: {
    name: 'address-sharing-key',
    kind: word,
    default: undefined,
    defaultWords: 'none: the Service gets whole addresses',
    doc: [
      'Services with the same key share [addresses](addresses.md#its-ports-on-any-address), as long as no two of them have a port of the same protocol in common.',
      'They have to be of one namespace, unless the pool says otherwise.',
    ],
    example: 'front',
    aliases: [],
  },
};

export const FIELDS = Object.keys(ANNOTATIONS) as readonly Field[];
