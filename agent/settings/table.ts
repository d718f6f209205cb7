// The table of settings: kind, default, documentation, and which changes need a restart. The keys of the file, the flags,
// the variables, the errors, `--help`, the manual page and docs/settings.md are made from it.

import { kebabCase } from '../base/kebab-case.ts';
import { label, labelValue, qualifiedName, subdomain } from '../base/name-forms.ts';
import { quote } from '../base/quote.ts';
import { MAX_RSA_BITS, MIN_RSA_BITS } from '../base/rsa-bits.ts';
import { readAnnotationDefaults } from '../translate/annotations/annotations.ts';
import { DAY, MILLISECOND, MINUTE, SECOND } from '../translate/annotations/kinds.ts';
import { bgp } from './bgp.ts';
import { hosts } from './hosts.ts';
import {
  address,
  choice,
  cidrs,
  directory,
  duration,
  durationOrOff,
  entries,
  file,
  integer,
  type Kind,
  link,
  listenAddress,
  logTarget,
  names,
  paths,
  program,
  text,
  toggle,
  urls,
} from './kinds.ts';
import { addressPools } from './pools-kind.ts';
import { vrrp } from './vrrp.ts';

/** What a default can depend on. */
export interface Host {
  readonly uid: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The hard limit of open files. */
  readonly fileLimit: number;
  /** True if `/etc/passwd` or `/etc/group` has `name`. */
  hasAccount(file: 'passwd' | 'group', name: string): boolean;
}

export interface Setting<T> {
  readonly kind: Kind<T>;
  readonly group: Group;
  /** As in the file; a function if it depends on the host. */
  readonly default: unknown | ((host: Host) => unknown);
  /** The default in words, if it is a function. */
  readonly defaultInWords?: string;
  /** Sentences; `--help` shows the first one. */
  readonly doc: string;
  /** Changes that need a restart: all of them, or some. Without it, every change takes effect on SIGHUP. */
  readonly restart?: true | SomeChanges<T>;
}

export interface SomeChanges<T> {
  needRestart(from: T, to: T): boolean;
  /** The end of a sentence that begins with `A change takes effect on SIGHUP`. */
  readonly inWords: string;
}

export const groups = [
  'Sources and places',
  'Services',
  'Addresses',
  'HAProxy',
  'The connection log',
  'The kernel path',
  'Changes',
  'The pair',
  'BGP',
  'Behaviour of the agent',
] as const;
export type Group = (typeof groups)[number];

const ACCOUNT_IN_WORDS = "an account's name (lower-case letters, digits, _ and -), or nothing";

const isAccount = (name: string): boolean => /^([a-z_][a-z0-9_-]{0,30})?$/.test(name);
const isNetns = (name: string): boolean => /^([A-Za-z0-9][A-Za-z0-9_.-]{0,63})?$/.test(name);
const isSelector = (selector: string): boolean => /^[A-Za-z0-9_.,/=!() -]{0,1000}$/.test(selector);

export const settingsTable = {
  manifests: setting(paths(), 'Sources and places', {
    default: [],
    restart: true,
    doc: 'Folders, or single files, with manifests of Services, EndpointSlices, Nodes, Gateways, routes and Ingresses (`*.yaml`, `*.yml`, `*.json`). The agent follows changes of the files.',
  }),
  kubeconfig: setting(file(), 'Sources and places', {
    default: '',
    restart: true,
    doc: 'The kubeconfig file of the cluster to serve. Empty: none; the agent does not read `KUBECONFIG` or `~/.kube/config`.',
  }),
  inCluster: setting(toggle(), 'Sources and places', {
    default: false,
    restart: true,
    doc: 'Serve the cluster in which the agent runs as a pod, with the rights of its service account.',
  }),
  amphora: setting(file(), 'Sources and places', {
    default: '',
    restart: true,
    doc: "The `amphora-agent.conf` of an [amphora of Octavia](octavia.md). Octavia's controller then says what the agent serves, and no objects of Kubernetes do. Empty: the agent is no amphora.",
  }),
  apiServers: setting(urls(), 'Sources and places', {
    default: [],
    restart: true,
    doc: 'URLs of further API servers of the same cluster, which the agent tries after the one in the kubeconfig.',
  }),
  clusterLostAfter: setting(durationOrOff(SECOND, 365 * DAY), 'Sources and places', {
    default: '24h',
    doc: 'How long no API server of the cluster may answer until the agent [tells that the cluster may be gone](operations.md#headgateclusterlost). It serves on and releases nothing. 0: it never tells.',
  }),
  namespaces: setting(names(), 'Sources and places', {
    default: [],
    restart: true,
    doc: 'Serve only Services, Gateways, routes and Ingresses in these namespaces of the cluster. Empty: all namespaces. Services outside these namespaces are [not released automatically](status.md#services-that-no-agent-sees).',
  }),
  serviceSelector: setting(
    text('SELECTOR', isSelector, 'a label selector as kubectl -l takes it, or nothing'),
    'Sources and places',
    {
      default: '',
      restart: true,
      doc: 'Serve only Services of the cluster with these labels; routes and Ingresses cannot send to other ones. Empty: all Services. Services without these labels are [not released automatically](status.md#services-that-no-agent-sees).',
    },
  ),
  secretNamespaces: setting(names(), 'Sources and places', {
    default: [],
    restart: true,
    doc: 'The namespaces whose Secrets of type `kubernetes.io/tls` the agent may read for [TLS](tls.md). Empty: every namespace in which a Service asks for a certificate. The agent reads no Secret of other namespaces.',
  }),
  certificates: setting(
    entries('a mapping of names to absolute paths', certificateFaults),
    'Sources and places',
    {
      default: {},
      restart: true,
      doc: 'Files with certificates for [TLS](tls.md), for hosts without a cluster: keys are as those of Secrets (`default/shop-tls`), values are paths of a file with certificate and key, or of a folder with `tls.crt` and `tls.key` or `fullchain.pem` and `privkey.pem`. The agent follows changes of the files.',
    },
  ),
  maxRsaBits: setting(integer(MIN_RSA_BITS, MAX_RSA_BITS, 'BITS'), 'Sources and places', {
    default: 4096,
    restart: true,
    doc: 'The longest RSA key that a certificate for [TLS](tls.md) may have. A handshake with a key of twice the length takes six to eight times as long, and others wait for it: a key of 16384 bits lets eight clients hold up everybody for seconds.',
  }),
  jwksUrls: setting(urls(), 'Sources and places', {
    default: [],
    restart: true,
    doc: 'URLs of https, each with all beneath it, from which the agent may read the [public keys of tokens](jwt.md) that routes name: those that stand here, and 64 others. Empty: none, because their authors could have the agent reach what they cannot.',
  }),
  leaseNamespace: setting(text('NAMESPACE', label.check, 'the name of a namespace'), 'Sources and places', {
    default: 'headgate-system',
    restart: true,
    doc: 'The namespace of the Lease that elects the agent that writes to the cluster.',
  }),
  finalizer: setting(toggle(), 'Services', {
    default: true,
    restart: true,
    doc: 'Give Services of the cluster the finalizer `service.kubernetes.io/load-balancer-cleanup`, so that the agent stops the traffic of a deleted Service before the Service disappears. The agent removes the finalizer at the latest two minutes after the deletion.',
  }),
  stateDir: setting(directory(), 'Sources and places', {
    default: stateDirectory,
    defaultInWords:
      '`/var/lib/headgate` as root, otherwise `$XDG_STATE_HOME/headgate` or `~/.local/state/headgate`',
    restart: true,
    doc: 'The folder for the last good state, so that the agent can restart without any source and continue to serve.',
  }),
  // The address of a unix socket has at most 107 bytes, and the names of sockets in this folder up to 36.
  runtimeDir: setting(directory(70), 'Sources and places', {
    default: runtimeDirectory,
    defaultInWords: '`/run/headgate` as root, otherwise `$XDG_RUNTIME_DIR/headgate` or `/tmp/headgate-UID`',
    restart: true,
    doc: 'The folder for the files and sockets of the running daemons. Its path has at most 70 bytes, because the address of a unix socket has room for 107.',
  }),
  netns: setting(
    text('NAME', isNetns, 'the name of a network namespace in /run/netns, or nothing'),
    'Sources and places',
    {
      default: '',
      restart: true,
      doc: 'The network namespace of HAProxy and keepalived, for several load balancers on one host, each with its own folders. The agent itself stays outside. Empty: the network namespace of the agent.',
    },
  ),
  listen: setting(listenAddress(), 'Sources and places', {
    default: '127.0.0.1:9180',
    restart: true,
    doc: 'The address and port for `/metrics`, `/healthz`, `/readyz` and the status page. With port 0 the system chooses a free port, which the log shows.',
  }),

  loadBalancerClass: setting(
    text('CLASS', qualifiedName.check, 'a class name, such as headgate.io/agent'),
    'Services',
    {
      default: 'headgate.io/agent',
      doc: 'The agent serves Services of type LoadBalancer with this `spec.loadBalancerClass`, and never those with another class.',
    },
  ),
  handleUnclassed: setting(toggle(), 'Services', {
    default: true,
    doc: 'Also serve Services of type LoadBalancer without a `spec.loadBalancerClass`. On by default, because most manifests have no class, and a Service that no controller serves stays pending. Turn it off if another controller (such as the one of a cloud) serves such Services.',
  }),
  members: setting(choice('pods', 'nodes'), 'Services', {
    default: 'pods',
    doc: 'The members of load balancers: endpoint addresses, which needs a route from this host to the pods, or node ports of nodes. An annotation of the Service has precedence.',
  }),
  refusedMembers: setting(cidrs(), 'Services', {
    default: [],
    doc: 'Ranges of addresses that no member may have, in addition to link-local addresses, the metadata services of clouds and the VIPs of this load balancer, which are always refused. The same on both hosts of a pair.',
  }),
  memberRanges: setting(cidrs(), 'Services', {
    default: [],
    doc: 'Ranges that every member must be in, such as those of pods and nodes; others are refused. Empty: all addresses. The same on both hosts of a pair.',
  }),
  membersWithoutTarget: setting(toggle(), 'Services', {
    default: true,
    doc: 'Endpoints without a `targetRef` are members. Kubernetes sets it for pods; turn it off if no EndpointSlice is written by hand, because its author can name a pod of any namespace (CVE-2021-25740). The same on both hosts of a pair.',
  }),
  gatewayApi: setting(toggle(), 'Services', {
    default: true,
    restart: true,
    doc: 'Serve the Gateways of the cluster whose GatewayClass has the controller `headgate.io/gateway-controller`. Without such a class the agent reads nothing else of the Gateway API.',
  }),
  ingress: setting(toggle(), 'Services', {
    default: true,
    restart: true,
    doc: 'Serve the Ingresses of the cluster whose IngressClass has the controller `headgate.io/ingress-controller`. Without such a class the agent reads no Ingress.',
  }),
  enforceNetworkPolicy: setting(choice('off', 'ingress'), 'Services', {
    default: 'off',
    restart: true,
    doc: 'With `ingress`, the NetworkPolicies that select the pods of a Service also decide by the addresses of clients who may connect to it, because behind the load balancer pods see its address instead. The agent then reads all Pods and NetworkPolicies: [NetworkPolicy](network-policy.md).',
  }),
  zone: setting(
    text('ZONE', labelValue.check, "a zone's name as in topology.kubernetes.io/zone, or nothing"),
    'Services',
    {
      default: '',
      doc: 'The zone of this host; the agent prefers endpoints with hints for it, if the Service has hints. Empty: hints are not used.',
    },
  ),
  hostsOfOneNamespace: setting(toggle(), 'Services', {
    default: false,
    doc: 'A host belongs to the namespace that had it first, among the Ingresses of a class and among the routes of a Gateway (HTTPRoutes, GRPCRoutes, TLSRoutes): what another namespace adds to it is not served, and its author is told; requests that the rules of the owner do not match get status 404, not a wildcard of another namespace. Off: all namespaces share hosts.',
  }),
  externalIPs: setting(toggle(), 'Services', {
    default: false,
    doc: 'Serve `spec.externalIPs` as VIPs. Off by default, because every user who may write a Service could take over any address with it (CVE-2020-8554), and because Kubernetes is retiring the field (KEP-5707).',
  }),
  clusterIPs: setting(toggle(), 'Services', {
    default: false,
    doc: "Serve cluster IPs as VIPs, for hosts that are the cluster's gateway to its Services.",
  }),
  publishUnready: setting(toggle(), 'Services', {
    default: false,
    restart: true,
    doc: 'Show the addresses of Services, Gateways and Ingresses in their statuses as soon as they are given, as MetalLB does. Off: an address appears once it is served, so that [DNS](dns.md) publishes none that is not.',
  }),
  defaults: setting(entries('a mapping of annotation names to values', defaultFaults), 'Services', {
    default: {},
    doc: 'Default values of annotations, keyed by their names without `headgate.io/`. Entries of flags, the variable and the file are merged.',
  }),

  pools: setting(addressPools(), 'Addresses', {
    default: [],
    doc: 'Address pools for Services of type LoadBalancer, in addition to the AddressPools of the cluster and of manifests: see [Addresses](addresses.md#a-pool) for the keys. A pool of the settings has precedence over an AddressPool of the same name.',
  }),
  releaseAfter: setting(durationOrOff(SECOND, 365 * DAY), 'Addresses', {
    default: '10m',
    doc: 'How long the address of a deleted Service is reserved for a new one of the same namespace and name. 0: it is released at once.',
  }),
  provisioner: setting(file(), 'Addresses', {
    default: '',
    doc: 'A program that the agent calls for each pool address that it gives to a Service or releases: see [Addresses](addresses.md#the-provisioner) for its input. Empty: none.',
  }),

  haproxy: setting(program(), 'HAProxy', {
    default: 'haproxy',
    restart: true,
    doc: 'The HAProxy program, 2.6 or newer.',
  }),
  haproxySupervisor: setting(choice('agent', 'external'), 'HAProxy', {
    default: 'agent',
    restart: true,
    doc: 'Who starts HAProxy: the agent, detached, so that it outlives the agent; or an external supervisor, such as the systemd unit of the package.',
  }),
  haproxyAccess: setting(choice('owner', 'group'), 'HAProxy', {
    default: 'owner',
    restart: true,
    doc: "Who besides root may read the agent's files for HAProxy and use HAProxy's sockets: only their owner; or also their group, for a HAProxy that another user starts, such as the systemd unit of the package. The folders `haproxy` in `stateDir` and in `runtimeDir` must then already exist, with the setgid bit and a group that contains only these two users.",
  }),
  haproxyUser: setting(text('USER', isAccount, ACCOUNT_IN_WORDS), 'HAProxy', {
    default: (host: Host) => (host.uid === 0 && host.hasAccount('passwd', 'haproxy') ? 'haproxy' : ''),
    defaultInWords: '`haproxy` as root if that account exists, otherwise none',
    doc: "The user of HAProxy's workers. Empty: the user that starts HAProxy.",
  }),
  haproxyGroup: setting(text('GROUP', isAccount, ACCOUNT_IN_WORDS), 'HAProxy', {
    default: (host: Host) => (host.uid === 0 && host.hasAccount('group', 'haproxy') ? 'haproxy' : ''),
    defaultInWords: '`haproxy` as root if that group exists, otherwise none',
    doc: "The group of HAProxy's workers. Empty: the group of the user that starts HAProxy.",
  }),
  maxConnections: setting(integer(0, 100_000_000), 'HAProxy', {
    default: 0,
    doc: 'The limit on all concurrent connections, within the limit on open files. 0: as many as the open files allow.',
  }),
  maxConnectionsPerNamespace: setting(integer(0, 100_000_000), 'HAProxy', {
    default: 0,
    doc: 'The concurrent connections that the Services of one namespace may have together; HAProxy closes further ones. 0: nine tenths of all connections, so that no namespace takes those of the others.',
  }),
  dotSegments: setting(choice('reject', 'normalize', 'pass'), 'HAProxy', {
    default: 'reject',
    restart: true,
    doc: 'What happens to requests to routes whose path has `.` or `..` between slashes, also percent-encoded: browsers never send one, and a member that resolves it serves another path than the one whose route HAProxy has chosen, with its limits and users. `reject` answers 400, `normalize` resolves it before a route is chosen, `pass` leaves it as it is. The same on both hosts of a pair.',
  }),
  ambiguousPaths: setting(choice('reject-where-guarded', 'reject', 'pass'), 'HAProxy', {
    default: 'reject-where-guarded',
    restart: true,
    doc: 'What happens to requests to routes whose path has `//`, `;`, `\\`, `%2F`, `%3B`, `%5C` or a control character, such as `%00`: members read these in different ways, perhaps as a path whose route HAProxy would guard. `reject-where-guarded` answers 400 on hosts some of whose paths have other limits or users than the others, `reject` everywhere, `pass` nowhere. A path is looked up in one spelling: `/%61dmin` is `/admin`. The same on both hosts of a pair.',
  }),
  maxServersPerNamespace: setting(integer(0, 100_000_000), 'HAProxy', {
    default: 100_000,
    doc: 'The servers in HAProxy, and members in the kernel, that the Services of one namespace may have together: a member of each port is one, with about 5 kB of memory, a port counts as five on each of its addresses, each certificate of a port as five, and four source ranges of a port count as one. If they ask for more, each [has its share](haproxy.md#shares). 0: no limit. The same on both hosts of a pair.',
  }),
  maxChecksPerNamespace: setting(integer(0, 100_000_000), 'HAProxy', {
    default: (host: Host) => Math.floor(host.fileLimit / 4),
    defaultInWords: 'a quarter of the limit of open files',
    doc: 'The members with a health monitor, and the addresses of ports, that the Services of one namespace may have together: each takes a descriptor of HAProxy. If they ask for more, each [has its share](haproxy.md#shares). 0: no limit. The same on both hosts of a pair.',
  }),
  threads: setting(integer(0, 64), 'HAProxy', {
    default: 0,
    doc: "The number of HAProxy's threads. 0: one for each processor that HAProxy may use.",
  }),

  connectionLog: setting(choice('none', 'errors', 'all'), 'The connection log', {
    default: 'none',
    doc: 'Which connections HAProxy writes to the [connection log](connection-log.md) for Services without the annotation `headgate.io/log`: none, those that fail, or all.',
  }),
  connectionLogTarget: setting(logTarget(), 'The connection log', {
    default: 'journald',
    restart: true,
    doc: 'Where HAProxy sends the connection log: `journald`; `ADDR:PORT`, a syslog server by UDP; `socket:PATH`, the datagram socket of a syslog server; or `file:PATH`, for hosts without any of these, which needs `haproxySupervisor` `agent`.',
  }),
  connectionLogFormat: setting(choice('json', 'haproxy'), 'The connection log', {
    default: 'json',
    restart: true,
    doc: "The lines of the connection log: a JSON object with Kubernetes' names, or HAProxy's own text.",
  }),

  drainTimeout: setting(durationOrOff(SECOND, DAY), 'Changes', {
    default: '5m',
    doc: 'How long the connections of a removed member may continue before they are closed. 0: they are closed at once.',
  }),
  hardStopAfter: setting(duration(SECOND, 7 * DAY), 'Changes', {
    default: '30m',
    doc: 'The maximum lifetime of an old HAProxy worker after a reload.',
  }),
  reloadInterval: setting(duration(100 * MILLISECOND, 10 * MINUTE), 'Changes', {
    default: '1s',
    doc: 'The minimum time between two reloads; the first reload is immediate. If reloads never stop, the agent spaces them up to five times as far apart: see [reloads](haproxy.md#reloads).',
  }),
  landing: setting(toggle(), 'Changes', {
    default: true,
    doc: 'A Service, Gateway or IngressClass that is new, or that only a reload can change, is served first by a second, small HAProxy, the [landing](haproxy.md#the-landing), whose reload takes some 25 ms however much the main HAProxy serves.',
  }),
  landingRest: setting(duration(SECOND, DAY), 'Changes', {
    default: '1m',
    doc: 'After this time without another such one, those in the landing move to the main HAProxy together.',
  }),
  maxOldWorkers: setting(integer(1, 100), 'Changes', {
    default: 4,
    doc: 'If this many old workers are alive, the agent spaces reloads further.',
  }),
  oldWorkerMemory: setting(integer(16, 16_777_216, 'MB'), 'Changes', {
    default: 1024,
    doc: 'If old workers use this much memory, the agent spaces reloads further.',
  }),
  auditInterval: setting(duration(SECOND, DAY), 'Changes', {
    default: '30s',
    doc: 'How often the agent compares what HAProxy runs with the desired state and repairs differences.',
  }),

  healthReadInterval: setting(duration(500 * MILLISECOND, 10 * MINUTE), 'Changes', {
    default: '2s',
    doc: 'How often the agent reads the results of [health monitors](health-monitors.md) for the status, the metrics and the conditions. HAProxy itself acts on them at once; those for ports that the kernel forwards are read each second.',
  }),

  vrrp: setting(vrrp(), 'The pair', {
    default: '',
    restart: {
      needRestart: (from, to) => (from === undefined) !== (to === undefined),
      inWords: '; turning VRRP on or off needs a restart',
    },
    doc: 'VRRP, by which one host of the pair holds the VIPs and the other takes them over when it fails: see [VRRP](high-availability.md) for the keys. Empty: the agent starts no keepalived. Keys that must be equal on both hosts are [changed with care](high-availability.md#changing-the-settings-of-vrrp).',
  }),
  nft: setting(program(), 'The kernel path', {
    default: 'nft',
    restart: true,
    doc: 'The program nft of nftables, 1.0.6 or newer, by which the kernel [forwards UDP and SCTP](kernel-path.md).',
  }),
  connectionSync: setting(toggle(), 'The kernel path', {
    default: false,
    restart: true,
    doc: 'Synchronise the flows of the kernel path with the peer of `vrrp` by conntrackd, so that [connections whose member speaks first, or whose slot has moved](kernel-path.md#synchronised-connections), outlive the loss of a host too. The same on both hosts.',
  }),
  connectionSyncPort: setting(integer(1, 65_535), 'The kernel path', {
    default: 3780,
    restart: true,
    doc: 'The UDP port on which the two conntrackds synchronise, at the addresses of `vrrp`; the same on both hosts.',
  }),
  conntrackd: setting(program(), 'The kernel path', {
    default: 'conntrackd',
    restart: true,
    doc: 'The program conntrackd, 1.4.7 or newer.',
  }),
  conntrackdSupervisor: setting(choice('agent', 'external'), 'The kernel path', {
    default: 'agent',
    restart: true,
    doc: 'Who starts conntrackd: the agent, detached, so that it outlives the agent; or an external supervisor, such as the systemd unit of the package.',
  }),
  kernelTraffic: setting(toggle(), 'The kernel path', {
    default: true,
    restart: true,
    doc: 'Count packets and bytes of each listener of the kernel path, which [costs some three percent](kernel-path.md#metrics) of the processor time of a packet. Without it only new flows are counted.',
  }),
  externalAnnouncer: setting(toggle(), 'The pair', {
    default: false,
    doc: 'Another program leads clients to this host, such as a BGP speaker or a keepalived of your own. Without it, and without `vrrp`, a VIP that no interface of this host has is not served (`AddressUnavailable`), because no client reaches it.',
  }),
  keepalived: setting(program(), 'The pair', {
    default: 'keepalived',
    restart: true,
    doc: 'The keepalived program, 2.2.7 or newer.',
  }),
  keepalivedSupervisor: setting(choice('agent', 'external'), 'The pair', {
    default: 'agent',
    restart: true,
    doc: 'Who starts keepalived: the agent, detached, so that it outlives the agent; or an external supervisor, such as the systemd unit of the package.',
  }),
  pairPeer: setting(address(), 'The pair', {
    default: '',
    restart: true,
    doc: 'The address of the other host of a [pair](high-availability.md), for the connections between the two agents and between the two HAProxies. Empty: the only peer of `vrrp` if `pairCredentials` are set, otherwise none.',
  }),
  pairAddress: setting(address(), 'The pair', {
    default: '',
    restart: true,
    doc: 'The address of this host for the same connections. Empty: the address of `vrrp`.',
  }),
  vrrpKey: setting(file(), 'The pair', {
    default: '',
    doc: 'A file with the key by which keepalived of both hosts [authenticates advertisements](high-availability.md#advertisements-that-cannot-be-forged): 64 to 128 hex digits on one line; mode 0600, or a credential of systemd. The agent reads the file again at SIGHUP. Needs a pair and keepalived 2.4.2; empty, and with an older one: advertisements are not authenticated.',
  }),
  pairCredentials: setting(file(), 'The pair', {
    default: '',
    restart: true,
    doc: 'A PEM file with a private key, its certificate and further trusted certificates, with which the two hosts authenticate each other; mode 0600. The agent reads the file again at SIGHUP.',
  }),
  pairPort: setting(integer(1, 65_535), 'The pair', {
    default: 9181,
    restart: true,
    doc: 'The TCP port of the agents, the same on both hosts.',
  }),
  pairTablesPort: setting(integer(1, 65_535), 'The pair', {
    default: 9182,
    restart: true,
    doc: 'The TCP port on which the HAProxies share session affinity, the same on both hosts.',
  }),
  pairLowerAfter: setting(duration(100 * MILLISECOND, MINUTE), 'The pair', {
    default: '1s',
    doc: 'How long HAProxy may not answer, or its listeners refuse connections, before this host lowers its priority.',
  }),
  pairRaiseAfter: setting(duration(100 * MILLISECOND, 10 * MINUTE), 'The pair', {
    default: '10s',
    doc: 'How long HAProxy and its listeners must work again before this host has its full priority again.',
  }),
  pairDrainTimeout: setting(durationOrOff(SECOND, 60 * MINUTE), 'The pair', {
    default: '1m',
    restart: true,
    doc: 'How long, after a [planned failover](high-availability.md#connections-during-a-planned-failover), earlier connections continue through the host that handed the VIPs over. The same on both hosts. 0: they are closed.',
  }),

  announce: setting(choice('vrrp', 'bgp', 'both'), 'BGP', {
    default: 'vrrp',
    restart: true,
    doc: 'How VIPs become reachable: `vrrp` by keepalived if `vrrp` is set; `bgp` by [BGP](bgp.md), for any number of hosts that serve the same VIPs at once; `both`: by BGP the VIPs of pools with `announce: bgp`, all others by `vrrp`.',
  }),
  hosts: setting(hosts(), 'BGP', {
    default: '',
    restart: {
      needRestart: (from, to) => (from.length === 0) !== (to.length === 0),
      inWords: '; beginning or ending to use it needs a restart',
    },
    doc: 'Every host that serves the VIPs by [BGP](bgp.md#several-hosts), this one too, and the same list on each: 1 to 16 hosts with `name`, `address` (between the agents, on `pairPort`, and between the HAProxies, on `pairTablesPort`) and optional `back` (at most one address of each IP version on the network between the hosts, for BFD and passing) and `anchors` (source addresses of packets to members, so that [another host can take connections over](bgp.md#connections-of-a-dead-host)). More than one need `pairCredentials`. This host is the one with the address `pairAddress`, or else one that this machine has, or else with its hostname. Empty: this host knows no other.',
  }),
  hostName: setting(
    text('NAME', (raw) => raw === '' || subdomain.check(raw), 'a name of a host, or nothing'),
    'BGP',
    {
      default: '',
      restart: true,
      doc: 'The name of this host for `announceFrom` of pools, and for BGPPeers. Empty: its name in `hosts`, or else the hostname.',
    },
  ),
  hostLabels: setting(entries('a mapping of label names to values', labelFaults), 'BGP', {
    default: {},
    restart: true,
    doc: 'Labels of this host for `announceFrom` of pools and for BGPPeers, besides those of the Node with its name.',
  }),
  bgp: setting(bgp(), 'BGP', {
    default: '',
    doc: 'The routers that get the routes of VIPs if `announce` is `bgp` or `both`: see [BGP](bgp.md#settings) for the keys.',
  }),
  bird: setting(program(), 'BGP', {
    default: 'bird',
    restart: true,
    doc: 'The program BIRD, 2.0.12 or newer.',
  }),
  birdSupervisor: setting(choice('agent', 'external'), 'BGP', {
    default: 'agent',
    restart: true,
    doc: 'Who starts BIRD: the agent, detached, so that it outlives the agent; or an external supervisor, such as the systemd unit of the package.',
  }),

  metricsDetail: setting(choice('listener', 'pool', 'member'), 'Behaviour of the agent', {
    default: 'member',
    doc: 'The detail of the metrics of HAProxy: `listener` for listeners only, `pool` also for pools, `member` also for members, with ten series each, and more with health monitors and in http mode.',
  }),
  dashboardUrl: setting(link('namespace', 'name'), 'Behaviour of the agent', {
    default: '',
    doc: "A dashboard to which the [status page](status-page.md#a-dashboard) has links, such as Grafana's. In its query `{namespace}` and `{name}` stand for those of a load balancer. Empty: no links.",
  }),
  routeMetrics: setting(toggle(), 'Behaviour of the agent', {
    default: false,
    restart: true,
    doc: 'Count the responses of each HTTPRoute, GRPCRoute and Ingress by status class: five [series](metrics.md#routes) each, and 4 % of the requests that HAProxy can serve.',
  }),
  logLevel: setting(choice('trace', 'debug', 'info', 'warn', 'error'), 'Behaviour of the agent', {
    default: 'info',
    doc: 'The lowest level that is logged.',
  }),
  stopDataplaneOnExit: setting(toggle(), 'Behaviour of the agent', {
    default: false,
    doc: 'Stop HAProxy and keepalived with the agent if it started them. For demonstrations and tests: otherwise traffic continues without the agent.',
  }),
};

export type SettingsTable = typeof settingsTable;
export type SettingName = keyof SettingsTable;

/** The values of all settings; durations are in milliseconds, paths are absolute. */
export type Settings = {
  readonly [Name in SettingName]: SettingsTable[Name] extends Setting<infer T> ? T : never;
};

/** The rows in the order of the table. */
export function allSettings(): [SettingName, Setting<unknown>][] {
  return Object.entries(settingsTable) as [SettingName, Setting<unknown>][];
}

export function needsRestart<T>({ restart }: Setting<T>, from: T, to: T): boolean {
  return typeof restart === 'object' ? restart.needRestart(from, to) : restart === true;
}

export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(settingsTable, name);
}

/** `drainTimeout` → `drain-timeout`; `externalIPs` → `external-ips`. */
export function flagOf(name: string): string {
  return kebabCase(name);
}

/** `drainTimeout` → `HEADGATE_DRAIN_TIMEOUT`. */
export function variableOf(name: string): string {
  return `HEADGATE_${flagOf(name).replaceAll('-', '_').toUpperCase()}`;
}

function setting<T>(kind: Kind<T>, group: Group, rest: Omit<Setting<T>, 'kind' | 'group'>): Setting<T> {
  return { kind, group, ...rest };
}

function certificateFaults(record: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(record).flatMap(([key, path]) => [
    ...(isSecretKey(key) ? [] : [`certificates: ${quote(key)} is not NAMESPACE/NAME`]),
    ...(path.startsWith('/') && !path.includes('\0')
      ? []
      : [`certificates: ${quote(path)} is not an absolute path`]),
  ]);
}

/** `NAMESPACE/NAME`. */
function isSecretKey(key: string): boolean {
  const [namespace = '', name = '', ...more] = key.split('/');
  return label.check(namespace) && subdomain.check(name) && more.length === 0;
}

function defaultFaults(record: Readonly<Record<string, string>>): readonly string[] {
  return readAnnotationDefaults(record).errors;
}

function stateDirectory({ uid, env }: Host): string {
  if (uid === 0) return '/var/lib/headgate';
  const base = absolute(env.XDG_STATE_HOME) ?? `${absolute(env.HOME) ?? '/tmp'}/.local/state`;
  return `${base}/headgate`;
}

function runtimeDirectory({ uid, env }: Host): string {
  if (uid === 0) return '/run/headgate';
  const base = absolute(env.XDG_RUNTIME_DIR);
  return base === undefined ? `/tmp/headgate-${uid}` : `${base}/headgate`;
}

/** undefined for a relative path, which the XDG specification tells programs to ignore. */
function absolute(path: string | undefined): string | undefined {
  return path?.startsWith('/') ? path : undefined;
}

function labelFaults(record: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(record).flatMap(([name, value]) => [
    ...(qualifiedName.check(name) ? [] : [`${quote(name)} ${qualifiedName.not}`]),
    ...(labelValue.check(value) ? [] : [`${quote(name)}: ${quote(value)} ${labelValue.not}`]),
  ]);
}
