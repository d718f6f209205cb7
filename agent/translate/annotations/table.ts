// The table of the annotations that a Service can have: reading, validation, error messages and docs/annotations.md use
// it. A new annotation is one row. Values only.

import { CIPHERS } from '../../base/ciphers.ts';
import { kebabCase } from '../../base/kebab-case.ts';
import type { HealthMonitor } from '../../model/load-balancer.ts';
import {
  type Alias,
  counted,
  likewise,
  milliseconds,
  minusOneForNone,
  ofMetallb,
  same,
  seconds,
  spelled,
} from './aliases.ts';
import {
  addressPerFamily,
  authorityObject,
  bodyPattern,
  bodyText,
  bool,
  choice,
  cidrList,
  cipherList,
  configMapName,
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
  portList,
  protocolList,
  SECOND,
  secretNames,
  statusCodes,
  wholeNumber,
  word,
} from './kinds.ts';

export const PREFIX = 'headgate.io/';

/** A row of the table; `T` is the type of its values. */
export interface Annotation<T> {
  /** Without the prefix. */
  readonly name: string;
  readonly kind: Kind<NonNullable<T>>;
  readonly default: T;
  /** The default in words, if the value is not clear enough. */
  readonly defaultWords?: string;
  /** Sentences, one per line in the documentation. */
  readonly doc: readonly string[];
  readonly example: string;
  readonly aliases?: readonly Alias[];
  /** The annotation has an effect only with one of these values of `health-monitor`. */
  readonly monitors?: readonly Monitor[];
  /** Makes sense for a single Service only, so that the settings have no default for it. */
  readonly perService?: true;
}

type Monitor = HealthMonitor['type'] | 'kube-proxy';

const monitored = ['tcp', 'http', 'https', 'tls', 'grpc', 'grpcs', 'udp', 'kube-proxy'] as const;
export const NO_SCTP =
  'there is no probe by SCTP; use a probe by TCP with annotation "headgate.io/health-monitor-port"';
const monitorType = { ...choice('none', ...monitored), whyNot: new Map([['sctp', NO_SCTP]]) };
const monitoredByHttp: readonly Monitor[] = ['http', 'https'];
const idle = [500 * MILLISECOND, 24 * DAY] as const;

const TABLE = {
  algorithm: annotation(choice('round-robin', 'least-connections', 'source-hash', 'random'), {
    default: 'round-robin',
    doc: [
      'How a member is chosen for a new connection.',
      '`round-robin` takes the members in turn, `least-connections` the one with the fewest connections, `random` any.',
      '`source-hash` sends a client address to the same member while the members stay the same, and moves few clients when they change; both hosts of a pair choose the same member.',
      'With session affinity it is a hash of the client address and of the time divided by the timeout, so that a HAProxy that has not learned the member of a client chooses the same one, and a client that was away for the timeout may get another.',
    ],
    example: 'least-connections',
    aliases: [
      spelled('lb-method', {
        ROUND_ROBIN: 'round-robin',
        LEAST_CONNECTIONS: 'least-connections',
        SOURCE_IP: 'source-hash',
      }),
    ],
  }),
  mode: annotation(choice('tcp', 'http', 'https'), {
    default: 'tcp',
    doc: [
      'The protocol that the load balancer reads on the TCP ports.',
      '`tcp` forwards bytes of any protocol.',
      '`http` balances each request and sends the client address to members in [`X-Forwarded-For`](forwarded-headers.md); with `tls-certificate` inside TLS, without it plain HTTP only, so use `tcp` for ports whose TLS the members end.',
      '`https` is `http` that is never served without TLS on the ports of `tls-ports`: see [TLS](tls.md).',
    ],
    example: 'http',
    aliases: [spelled('x-forwarded-for', { true: 'http', false: 'tcp' })],
  }),
  engine: annotation(choice('haproxy', 'kernel'), {
    default: 'haproxy',
    doc: [
      'Who forwards the TCP ports; the kernel always forwards UDP and SCTP.',
      '`haproxy` can do everything that these annotations ask for.',
      '`kernel` is for connections at the rate of the network card: see [the kernel path](kernel-path.md) for what it costs.',
    ],
    example: 'kernel',
  }),
  sourceAddress: annotation(choice('load-balancer', 'client'), {
    default: 'load-balancer',
    doc: [
      'Whose address members get the packets from, on ports that the kernel forwards.',
      '`load-balancer` works with members anywhere.',
      "`client` keeps the client's address, and needs members whose route to the clients leads through the load balancer: see [gateway mode](kernel-path.md#gateway-mode).",
      'Members of ports that HAProxy forwards get the client address by `proxy-protocol`.',
    ],
    example: 'client',
  }),
  tlsCertificate: annotation(secretNames, {
    default: [],
    defaultWords: 'none: TLS passes through',
    doc: [
      'The Secrets of type `kubernetes.io/tls`, in the namespace of the Service, with which the load balancer ends TLS: see [TLS](tls.md).',
      'With several, a client gets the certificate that has the name it asks for; if none has, or if it asks for none, the first one.',
      'A port without a usable certificate is not served; never is it served without TLS.',
    ],
    example: 'shop-tls',
    aliases: [
      same('default-tls-container-ref', 'the name of a Secret; containers of Barbican cannot be read'),
    ],
    perService: true,
  }),
  tlsPorts: annotation(portList, {
    default: [],
    defaultWords: 'all TCP ports',
    doc: ['The ports on which the load balancer ends TLS, by number or name.'],
    example: '443,https-alt',
  }),
  tlsMinVersion: annotation(choice('1.2', '1.3'), {
    default: '1.2',
    doc: ['The lowest version of TLS that clients may use.'],
    example: '1.3',
  }),
  tlsCiphers: annotation(cipherList, {
    default: [],
    defaultWords: "the preferences of the host's OpenSSL",
    doc: [
      `The ciphers that clients may use: ${CIPHERS.map((name) => `\`${name}\``).join(', ')}.`,
      'If it names none of TLS 1.3 (which begin with `TLS_`), all of TLS 1.3 are allowed; the same holds for TLS 1.2.',
    ],
    example: 'ECDHE-ECDSA-AES128-GCM-SHA256,ECDHE-RSA-AES128-GCM-SHA256',
  }),
  tlsAlpn: annotation(protocolList, {
    default: [],
    defaultWords: '`h2,http/1.1` in HTTP mode, otherwise `none`',
    doc: [
      'The protocols that the load balancer offers clients inside TLS (ALPN), the preferred one first.',
      'In HTTP mode only `h2` and `http/1.1` have a meaning: `http/1.1` alone turns HTTP/2 off.',
    ],
    example: 'http/1.1',
  }),
  tlsClientCertificates: annotation(choice('none', 'optional', 'required'), {
    default: 'none',
    doc: [
      'Whether clients must have a certificate of an authority in `tls-client-ca`.',
      '`optional` also serves clients without a certificate, but none with a wrong one.',
      'In HTTP mode members get `X-SSL-Client-Verify` (0 for a verified certificate), `X-SSL-Client-DN`, `X-SSL-Client-CN` and `X-SSL-Client-SHA1`, none of them without a certificate; the names of ingress-nginx, `ssl-client-verify`, `ssl-client-subject-dn` and `ssl-client-issuer-dn`, say the same.',
      'Headers of clients whose names begin with `X-SSL-Client` or `ssl-client`, also with `_`, are removed on every port in HTTP mode.',
    ],
    example: 'required',
  }),
  tlsClientCa: annotation(authorityObject, {
    default: '',
    defaultWords: 'none',
    doc: [
      'The authorities of client certificates: a ConfigMap with `ca.crt`, or a Secret with it, in the namespace of the Service.',
      'Without a usable one the port is not served.',
    ],
    example: 'clients',
    perService: true,
  }),
  tlsClientCrl: annotation(authorityObject, {
    default: '',
    defaultWords: 'none',
    doc: [
      'The revocation lists (CRLs) of client certificates: a ConfigMap with `ca.crl`, or a Secret with it, in the namespace of the Service.',
      'It needs a list of each authority that a chain can have, the root included; clients of an authority without one, or whose list has expired, are refused.',
      'Without a usable one the port is not served.',
    ],
    example: 'clients',
    perService: true,
  }),
  memberTls: annotation(choice('none', 'verified', 'unverified'), {
    default: 'none',
    doc: [
      'Whether the load balancer uses TLS to the members of the TCP ports.',
      '`verified` needs `member-tls-ca` and `member-tls-name`; without a usable authority the port is not served.',
      '`unverified` keeps out listeners only, no one who can change packets.',
      'Health monitors on the port of the members use the same TLS.',
    ],
    example: 'verified',
  }),
  memberTlsCa: annotation(authorityObject, {
    default: '',
    defaultWords: 'none',
    doc: [
      "The authorities of the members' certificates: a ConfigMap with `ca.crt`, or a Secret with it, in the namespace of the Service.",
    ],
    example: 'secret/internal-ca',
    perService: true,
  }),
  memberTlsName: annotation(hostName, {
    default: '',
    defaultWords: 'none',
    doc: ["The name that the members' certificates must have, and that members are asked for (SNI)."],
    example: 'shop.internal',
  }),
  memberHttpVersion: annotation(choice('1.1', '2'), {
    default: '1.1',
    doc: [
      'The version of HTTP that members get, in HTTP mode.',
      '`2` is for members that speak HTTP/2 without an upgrade, such as gRPC servers.',
    ],
    example: '2',
  }),
  healthMonitor: annotation(monitorType, {
    default: 'none',
    doc: [
      'How the load balancer itself probes the members: see [health monitors](health-monitors.md).',
      'Kubernetes already removes pods that are not ready, so this is for faults that Kubernetes cannot see, such as a broken network between this load balancer and a member; each probe costs time on both sides.',
      '`tcp` connects, `tls` makes a TLS handshake, `http` and `https` send a request and check the status code, `grpc` and `grpcs` use the health checking protocol of gRPC; certificates are not verified.',
      "`kube-proxy` is for members that are nodes and probes the node's kube-proxy: at `spec.healthCheckNodePort` with `externalTrafficPolicy: Local`, otherwise at port 10256.",
      '`udp` is for UDP ports: it sends an empty datagram, and only an answer of ICMP that nothing listens counts as a failure; silence does not.',
      "On UDP and SCTP ports the other types probe by TCP, at `health-monitor-port`; without it they probe the member's own port, but only if the Service itself has this annotation, and no TCP port or one of the same number.",
      'The alias is `udp` for UDP ports, as in Octavia.',
    ],
    example: 'http',
    aliases: [spelled('enable-health-monitor', { true: 'tcp', false: 'none' })],
  }),
  healthMonitorPath: annotation(path, {
    default: '/',
    doc: ['The path of the probe, with an optional query.'],
    example: '/healthz?full=1',
    monitors: monitoredByHttp,
  }),
  healthMonitorMethod: annotation(choice('GET', 'HEAD', 'OPTIONS'), {
    default: 'GET',
    doc: ['The method of the probe.'],
    example: 'HEAD',
    monitors: monitoredByHttp,
  }),
  healthMonitorExpectedCodes: annotation(statusCodes, {
    default: '200-399',
    doc: ['The status codes of a healthy member, separated by commas.'],
    example: '200,204,300-308',
    monitors: monitoredByHttp,
  }),
  healthMonitorExpectedBody: annotation(bodyText, {
    default: '',
    defaultWords: 'none: any body',
    doc: [
      "A text that the body of a healthy member's answer contains, within its first 15 kB.",
      'The comparison is byte by byte, so upper and lower case differ.',
    ],
    example: '"status":"UP"',
    monitors: monitoredByHttp,
  }),
  healthMonitorExpectedBodyPattern: annotation(bodyPattern, {
    default: '',
    defaultWords: 'none: any body',
    doc: [
      "A regular expression that matches somewhere in the body of a healthy member's answer.",
      'Only patterns that always match fast are allowed, because HAProxy matches them beside the traffic: characters, `.`, classes such as `[a-z0-9]`, alternatives in a group such as `(UP|OK)`, `^`, `$`, and the counts `?`, `{2}` and `{0,20}` after a single character or class; `*` and `+`, which have no limit, are not allowed.',
    ],
    example: '"status" {0,4}: {0,4}"(UP|OK)"',
    monitors: monitoredByHttp,
  }),
  healthMonitorHost: annotation(hostAndPort, {
    default: '',
    defaultWords: 'none',
    doc: [
      'The host name of the probe, for members that serve several hosts: in the header `Host` of HTTP/1.1, in `:authority` of gRPC.',
      'Without it HTTP probes use version 1.0 and have no `Host` header.',
    ],
    example: 'www.example.com',
    monitors: ['http', 'https', 'grpc', 'grpcs'],
  }),
  healthMonitorSni: annotation(hostName, {
    default: '',
    defaultWords: 'the name in `health-monitor-host`, if there is one',
    doc: ['The server name in the TLS handshake of the probe (SNI).'],
    example: 'www.example.com',
    monitors: ['https', 'tls', 'grpcs'],
  }),
  healthMonitorGrpcService: annotation(grpcServiceName, {
    default: '',
    defaultWords: 'none: the server as a whole',
    doc: [
      'The service whose health the gRPC probe requests, by its name in the health service of the server.',
    ],
    example: 'shop.v1.Orders',
    monitors: ['grpc', 'grpcs'],
  }),
  healthMonitorInterval: annotation(duration(500 * MILLISECOND, 5 * MINUTE), {
    default: 5 * SECOND,
    doc: ['The time from one probe of a member to the next.'],
    example: '10s',
    aliases: [seconds('health-monitor-delay')],
    monitors: monitored,
  }),
  healthMonitorTimeout: annotation(duration(100 * MILLISECOND, MINUTE), {
    default: 3 * SECOND,
    defaultWords: '`3s`, or the interval if it is shorter',
    doc: [
      'How long a probe may wait for an answer before it counts as failed.',
      'It must not be longer than the interval.',
      'The connection has its own limit, `timeout-connect`, or the interval if it is shorter; a `tcp` probe only connects.',
    ],
    example: '2s',
    aliases: [seconds('health-monitor-timeout')],
    monitors: monitored,
  }),
  healthMonitorRise: annotation(wholeNumber(1, 50), {
    default: 2,
    doc: ['How many probes in a row must succeed before a failed member gets traffic again.'],
    example: '3',
    aliases: [counted('health-monitor-max-retries')],
    monitors: monitored,
  }),
  healthMonitorFall: annotation(wholeNumber(1, 50), {
    default: 3,
    doc: ['How many probes in a row must fail before a member gets no more traffic.'],
    example: '2',
    aliases: [counted('health-monitor-max-retries-down')],
    monitors: monitored,
  }),
  healthMonitorPort: annotation(wholeNumber(1, 65535), {
    default: 0,
    defaultWords: "the member's own port, or kube-proxy's",
    doc: ['The port of the probe, on the address of the member.'],
    example: '8081',
    monitors: monitored,
  }),
  ejectAfter: annotation(wholeNumber(0, 1000), {
    default: undefined,
    defaultWords: '`3` in HTTP mode and for pools of HTTP routes, `0` (never) otherwise',
    doc: [
      'How many errors in a row, over all ports and routes, a ready member may give to clients before it [rests](health-monitors.md#members-that-fail-clients).',
      'An error is a response with one of the `eject-statuses`, a connection that is refused or reset, and a time-out; in TCP mode a connection that cannot be opened, or that the member resets.',
      '`0` lets no member rest.',
    ],
    example: '5',
  }),
  ejectStatuses: annotation(statusCodes, {
    default: '500,502-504',
    doc: [
      'The status codes that `eject-after` counts.',
      'The default leaves out what the request itself can cause, such as 501 and 505.',
    ],
    example: '502-504',
  }),
  ejectShare: annotation(wholeNumber(1, 99), {
    default: 34,
    defaultWords: '`34`, a third',
    doc: [
      'The percentage of the ready members of a pool that may rest at a time because of `eject-after`.',
      'One may always, unless it is the last that takes connections.',
    ],
    example: '50',
  }),
  slowStart: annotation(durationOrOff(500 * MILLISECOND, 10 * MINUTE), {
    default: 0,
    defaultWords: '`0`: at once',
    doc: [
      'The time in which a member that is new, or comes back, gets more and more connections, up to its share.',
      'For members that are slow while their caches are empty; not at a start of HAProxy, and not with `source-hash`.',
    ],
    example: '20s',
  }),
  proxyProtocol: annotation(choice('none', 'v1', 'v2'), {
    default: 'none',
    doc: [
      'The version of the PROXY protocol that sends the client address to members at the start of each connection, also of a health check, unless the check has a port on which the member gets no traffic.',
      'The members must expect it: other members read the header as an invalid request.',
    ],
    example: 'v2',
    aliases: [spelled('proxy-protocol', { true: 'v1', v1: 'v1', v2: 'v2', false: 'none' })],
  }),
  acceptProxyProtocol: annotation(bool, {
    default: false,
    doc: [
      'Set it if the clients are proxies that begin each connection with a PROXY protocol header of either version.',
      'Connections without the header are then refused.',
      'Every client that can connect can then pretend to have any address, also for `spec.loadBalancerSourceRanges` and `rate-limit`: use it only if no client except the proxies can reach this address.',
    ],
    example: 'true',
  }),
  timeoutConnect: annotation(duration(10 * MILLISECOND, 5 * MINUTE), {
    default: SECOND,
    doc: [
      'How long a member may take to accept a connection before the next member is tried.',
      'It is short because a client waits for it when a member disappears without notice; members in one data centre accept within a millisecond.',
    ],
    example: '3s',
    aliases: [milliseconds('timeout-member-connect')],
  }),
  timeoutClient: annotation(duration(...idle), {
    default: 10 * MINUTE,
    doc: [
      'How long a client that must send may send nothing before its connection is closed.',
      "The default lets database pools, WebSockets and gRPC idle as usual: gRPC servers allow a keep-alive ping only every 5 minutes, and Octavia's 50 seconds would close all of them.",
      'In TCP mode the shorter one of `timeout-client` and `timeout-server` closes an idle connection, so change both.',
    ],
    example: '1h',
    aliases: [milliseconds('timeout-client-data')],
  }),
  timeoutServer: annotation(duration(...idle), {
    default: 10 * MINUTE,
    doc: [
      'How long a member that must send may send nothing before its connection is closed; in HTTP mode, how long it may take to answer.',
      'The default is that of `timeout-client`, for the same reason.',
    ],
    example: '1h',
    aliases: [milliseconds('timeout-member-data')],
  }),
  timeoutTunnel: annotation(durationOrOff(500 * MILLISECOND, 24 * DAY), {
    default: 0,
    defaultWords: '`0`: `timeout-client` and `timeout-server` apply',
    doc: [
      'How long a connection may be silent in both directions, instead of `timeout-client` and `timeout-server`: in TCP mode after it is established, in HTTP mode after it has become a WebSocket or another tunnel.',
    ],
    example: '12h',
  }),
  timeoutQueue: annotation(duration(10 * MILLISECOND, 10 * MINUTE), {
    default: 5 * SECOND,
    doc: [
      'How long a connection waits before it is refused if every member is at its `member-connection-limit`.',
    ],
    example: '30s',
  }),
  connectionLimit: annotation(wholeNumber(0, 1_000_000), {
    default: 0,
    defaultWords: '`0`: no limit',
    doc: [
      'The number of concurrent connections of each port of the Service, for each address family.',
      'Further clients wait in the listening socket until a connection ends.',
      'Several hosts [by BGP](bgp.md#limits-of-several-hosts) count each for itself.',
    ],
    example: '2000',
    aliases: [minusOneForNone('connection-limit')],
  }),
  rateLimit: annotation(wholeNumber(0, 1_000_000), {
    default: 0,
    defaultWords: '`0`: no limit',
    doc: [
      'How many new connections one client address may make per second on each port of the Service.',
      'Further connections are refused at once and do not count, so such a client still gets this many per second.',
      'Several hosts [by BGP](bgp.md#limits-of-several-hosts) count each for itself.',
    ],
    example: '100',
  }),
  memberConnectionLimit: annotation(wholeNumber(0, 1_000_000), {
    default: 0,
    defaultWords: '`0`: no limit',
    doc: [
      'The number of concurrent connections of one member from one load-balancer host.',
      'Further connections go to other members, or wait for at most `timeout-queue`.',
    ],
    example: '200',
  }),
  trustedProxies: annotation(cidrList, {
    default: [],
    defaultWords: 'none: what clients say is removed',
    doc: [
      'The proxies in front whose [forwarded headers](forwarded-headers.md) and request ids are true, in HTTP mode.',
      'The client of a request is then the one that they name, also for rate limits, source ranges of routes, session affinity and the connection log.',
      'Also for Gateways, and for IngressClasses.',
    ],
    example: '10.0.0.0/24,2001:db8::/64',
  }),
  requestIds: annotation(bool, {
    default: false,
    doc: [
      'In HTTP mode each request gets an id in the header `X-Request-ID`, which its member, its answer and the [connection log](connection-log.md) have.',
      'That of a trusted proxy stays.',
      'Also for Gateways, and for IngressClasses.',
    ],
    example: 'true',
  }),
  compression: annotation(choice('none', 'gzip'), {
    default: 'none',
    doc: [
      'In HTTP mode `gzip` compresses the answers of members for clients that accept it: texts, JSON, XML, SVG, JavaScript and WebAssembly with status 200 to 203.',
      'An answer that its member has compressed, or with `Cache-Control: no-transform`, stays as it is; strong ETags become weak.',
      'It takes processor time of the load balancer; members that compress save it.',
      'Do not use it for pages that show a secret beside what a client has sent (the attack BREACH).',
      'A change is a reload of HAProxy.',
      'Also for Gateways, and for IngressClasses.',
    ],
    example: 'gzip',
  }),
  errorPages: annotation(configMapName, {
    default: '',
    defaultWords: "none: HAProxy's own",
    doc: [
      'In HTTP mode the name of a ConfigMap with [pages](error-pages.md) that clients get instead of short texts, by status.',
      'Of the namespace of the Service or Gateway; an IngressClass has NAMESPACE/NAME.',
    ],
    example: 'error-pages',
    perService: true,
  }),
  log: annotation(choice('none', 'errors', 'all'), {
    default: undefined,
    defaultWords: 'the setting `connectionLog`',
    doc: [
      'Which connections of the TCP ports, in HTTP mode which requests, are written to the [connection log](connection-log.md).',
      '`errors` writes those that fail or are retried on another member, in HTTP mode also answers with a status of 500 or more.',
      'A change is a reload of HAProxy.',
      'Also for Gateways, and for IngressClasses.',
    ],
    example: 'errors',
  }),
  members: annotation(choice('pods', 'nodes', 'direct'), {
    default: undefined,
    defaultWords: 'the setting `members`',
    doc: [
      'Where traffic is sent.',
      '`pods` sends it to the endpoint addresses, which needs a route to the pods.',
      '`nodes` sends it to the node port on the nodes.',
      '`direct` sends packets to the endpoint addresses unchanged, and their answers go past the load balancer: see [direct server return](kernel-path.md#direct-server-return) for what members need.',
      'A Service with `allocateLoadBalancerNodePorts: false` always uses its pods.',
    ],
    example: 'pods',
  }),
  egress: annotation(bool, {
    default: false,
    doc: [
      'Connections that the pods of the Service open leave from its VIP, if the load balancer is the next hop of the pods: see [egress](egress.md).',
    ],
    example: 'true',
    perService: true,
  }),
  whenEmpty: annotation(choice('reject', 'keep-last'), {
    default: 'reject',
    doc: [
      'What happens when no member is ready.',
      '`reject` refuses new connections, so that clients fail at once.',
      '`keep-last` continues to send to the last members, for applications whose readiness is unreliable.',
      'The agent also keeps them in a file for its next start.',
    ],
    example: 'keep-last',
  }),
  whenAllDown: annotation(choice('serve', 'reject'), {
    default: 'serve',
    doc: [
      'What happens when the health monitor finds all ready members down, also if there is only one.',
      '`serve` sends to all of them as if they were up, because a wrong probe, or one fault that all share, is more likely than all members being down; the Service gets an Event with the reason `AllMembersDown`.',
      '`reject` refuses new connections until a probe succeeds.',
    ],
    example: 'reject',
    monitors: monitored,
  }),
  loadBalancerIps: annotation(addressPerFamily, {
    default: [],
    defaultWords: 'none: `spec.loadBalancerIP` applies',
    doc: [
      'The addresses of the Service, instead of `spec.loadBalancerIP`, which has room for one family only.',
      "Each must be of one of the Service's `spec.ipFamilies`.",
    ],
    example: '192.0.2.10,2001:db8::10',
    aliases: [
      ...ofMetallb('loadBalancerIPs', addressPerFamily),
      likewise('kube-vip.io/loadbalancerIPs', addressPerFamily),
      likewise('lbipam.cilium.io/ips', addressPerFamily),
    ],
    perService: true,
  }),
  publicAddress: annotation(addressPerFamily, {
    default: [],
    defaultWords: 'none: clients use the address of the Service',
    doc: [
      'The address that clients use, where [a NAT](addresses.md#a-public-address-that-the-host-does-not-have) translates it to that of the Service.',
      "The pool of the Service's address must allow it (`public.allowed`), and no other address may have it.",
    ],
    example: '203.0.113.9',
    perService: true,
  }),
  addressPool: annotation(objectName, {
    default: undefined,
    defaultWords: 'the first pool that is for the Service and has a free address',
    doc: [
      'The [pool](addresses.md) from which the Service gets its addresses.',
      'An address that it already has stays, even if it belongs to another pool.',
    ],
    example: 'internal',
    aliases: ofMetallb('address-pool', objectName),
  }),
  addressSharingKey: annotation(word, {
    default: undefined,
    defaultWords: 'none: the Service gets whole addresses',
    doc: [
      'Services with the same key share [addresses](addresses.md#its-ports-on-any-address) if no two of them have the same port and protocol.',
      'They must be in one namespace, unless the pool allows others.',
    ],
    example: 'front',
    aliases: [...ofMetallb('allow-shared-ip', word), likewise('lbipam.cilium.io/sharing-key', word)],
  }),
};

export type Field = keyof typeof TABLE;
export const FIELDS = Object.keys(TABLE) as readonly Field[];

/** One field per annotation; durations in milliseconds. */
export type AnnotationValues = {
  readonly [K in Field]: (typeof TABLE)[K]['default'];
};

/** The table with the names of the annotations: `healthMonitorPath` is `health-monitor-path`. */
export const ANNOTATIONS = Object.fromEntries(
  FIELDS.map((field) => [field, { name: kebabCase(field), ...TABLE[field] }]),
) as unknown as { readonly [K in Field]: Annotation<AnnotationValues[K]> };

type Row<T> = Omit<Annotation<T>, 'name'>;

type Rest<T> = Omit<Row<T>, 'kind' | 'default'>;

/** A row; its default is undefined if nothing stands for an absent annotation. */
function annotation<T>(kind: Kind<T>, row: Rest<T> & { readonly default: NoInfer<T> }): Row<T>;
function annotation<T>(kind: Kind<T>, row: Rest<T> & { readonly default: undefined }): Row<T | undefined>;
function annotation(kind: Kind<unknown>, row: Rest<unknown> & { readonly default: unknown }): Row<unknown> {
  return { kind: kind as Kind<NonNullable<unknown>>, ...row };
}
