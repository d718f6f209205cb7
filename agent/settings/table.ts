// Every setting in one table: its kind, its default, what it is for, and whether a change needs a restart.
// The file's keys, the flags, the variables, the errors, `--help` and docs/settings.md all come from here.

import { readAnnotationDefaults } from '../translate/annotations/annotations.ts';
import { DAY, MILLISECOND, MINUTE, SECOND } from '../translate/annotations/kinds.ts';
import {
  address,
  choice,
  directories,
  directory,
  duration,
  durationOrOff,
  entries,
  file,
  integer,
  type Kind,
  listenAddress,
  names,
  program,
  text,
  toggle,
  urls,
} from './kinds.ts';
import { addressPools } from './pools-kind.ts';
import { vrrp } from './vrrp.ts';

/** What a default may depend on. */
export interface Host {
  readonly uid: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether `name` is in `/etc/passwd` or `/etc/group`. */
  hasAccount(file: 'passwd' | 'group', name: string): boolean;
}

export interface Setting<T> {
  readonly kind: Kind<T>;
  readonly group: Group;
  /** As the file would hold it; a function where it depends on the host. */
  readonly default: unknown | ((host: Host) => unknown);
  /** The default in words, where it is a function. */
  readonly defaultInWords?: string;
  /** Whole sentences; the first one is what `--help` shows. */
  readonly doc: string;
  /** Taken at start only: SIGHUP reports a change but does not follow it. Or which changes these are. */
  readonly restart: boolean | SomeChanges<T>;
}

export interface SomeChanges<T> {
  needRestart(from: T, to: T): boolean;
  /** As the end of a sentence that begins with `A change takes effect on SIGHUP`. */
  readonly inWords: string;
}

export const groups = [
  'Sources and places',
  'Services',
  'Addresses',
  'HAProxy',
  'Changes',
  'The pair',
  'Behaviour of the agent',
] as const;
export type Group = (typeof groups)[number];

const ACCOUNT = /^([a-z_][a-z0-9_-]{0,30})?$/;
const ACCOUNT_IN_WORDS = "an account's name (lower-case letters, digits, _ and -), or nothing";
const CLASS = /^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;
const NETNS = /^([A-Za-z0-9][A-Za-z0-9_.-]{0,63})?$/;
const NAMESPACE = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const SELECTOR = /^[A-Za-z0-9_.,/=!() -]{0,1000}$/;
const ZONE = /^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$/;

export const settingsTable = {
  manifests: setting(directories(), 'Sources and places', {
    default: [],
    restart: true,
    doc: 'Folders with manifests of Services, EndpointSlices and Nodes (`*.yaml`, `*.yml`, `*.json`), which are watched for changes.',
  }),
  kubeconfig: setting(file(), 'Sources and places', {
    default: '',
    restart: true,
    doc: 'The kubeconfig file of a cluster whose Services, EndpointSlices and Nodes are served. Empty: none; neither `KUBECONFIG` nor `~/.kube/config` is looked at.',
  }),
  inCluster: setting(toggle(), 'Sources and places', {
    default: false,
    restart: true,
    doc: 'Serve the cluster that this agent runs in as a pod, with the rights of its service account.',
  }),
  apiServers: setting(urls(), 'Sources and places', {
    default: [],
    restart: true,
    doc: 'URLs of more API servers of the same cluster, tried in turn after the one that the kubeconfig names.',
  }),
  namespaces: setting(names(), 'Sources and places', {
    default: [],
    restart: true,
    doc: 'The namespaces of the cluster that are looked at. Empty: all. What others leave out is let go of [by hand](status.md#services-that-no-agent-sees).',
  }),
  serviceSelector: setting(
    text('SELECTOR', SELECTOR, 'a label selector as kubectl -l takes it, or nothing'),
    'Sources and places',
    {
      default: '',
      restart: true,
      doc: 'Only Services of the cluster with these labels are looked at. Empty: all. What others leave out is let go of [by hand](status.md#services-that-no-agent-sees).',
    },
  ),
  leaseNamespace: setting(text('NAMESPACE', NAMESPACE, 'the name of a namespace'), 'Sources and places', {
    default: 'headgate-system',
    restart: true,
    doc: 'The namespace of the Lease by which the agents of a cluster agree who writes to it.',
  }),
  finalizer: setting(toggle(), 'Services', {
    default: true,
    restart: true,
    doc: 'Give Services of the cluster the finalizer `service.kubernetes.io/load-balancer-cleanup`, so that none is gone before its traffic is. Two minutes after a deletion it goes in any case.',
  }),
  stateDir: setting(directory(), 'Sources and places', {
    default: stateDirectory,
    defaultInWords:
      '`/var/lib/headgate` as root, otherwise `$XDG_STATE_HOME/headgate` or `~/.local/state/headgate`',
    restart: true,
    doc: 'Where the last good state is kept, so that a restart without any source serves what was served before.',
  }),
  // The address of a unix socket holds 107 bytes, and sockets live in here under names of up to 36.
  runtimeDir: setting(directory(70), 'Sources and places', {
    default: runtimeDirectory,
    defaultInWords: '`/run/headgate` as root, otherwise `$XDG_RUNTIME_DIR/headgate` or `/tmp/headgate-UID`',
    restart: true,
    doc: 'Where the files and sockets of the running daemons are. At most 70 bytes long, because the address of a unix socket has room for 107.',
  }),
  netns: setting(
    text('NAME', NETNS, 'the name of a network namespace in /run/netns, or nothing'),
    'Sources and places',
    {
      default: '',
      restart: true,
      doc: 'The network namespace that HAProxy and keepalived run in, while the agent stays where it is. Empty: that of the agent. For several load balancers on one host, each with its own folders.',
    },
  ),
  listen: setting(listenAddress(), 'Sources and places', {
    default: '127.0.0.1:9180',
    restart: true,
    doc: 'Where `/metrics`, `/healthz`, `/readyz` and, for browsers, the status page are served. Port 0 takes a free port, which the log names.',
  }),

  loadBalancerClass: setting(text('CLASS', CLASS, 'a class name, such as headgate.io/agent'), 'Services', {
    default: 'headgate.io/agent',
    restart: false,
    doc: 'Services of type LoadBalancer with this `spec.loadBalancerClass` are ours; those with another class never are.',
  }),
  handleUnclassed: setting(toggle(), 'Services', {
    default: true,
    restart: false,
    doc: 'Serve Services of type LoadBalancer without a `spec.loadBalancerClass`, too. On by default, because most manifests name no class and a Service that nobody serves stays pending. Turn it off where another controller (that of a cloud, for instance) serves such Services.',
  }),
  members: setting(choice('pods', 'nodes'), 'Services', {
    default: 'pods',
    restart: false,
    doc: 'What connections are sent to: endpoint addresses, which needs a route from this host to the pods, or node ports of nodes. An annotation of the Service has precedence.',
  }),
  zone: setting(
    text('ZONE', ZONE, "a zone's name as in topology.kubernetes.io/zone, or nothing"),
    'Services',
    {
      default: '',
      restart: false,
      doc: 'The zone this host is in; endpoints with hints for it are preferred where the Service asks for that. Empty: hints are not used.',
    },
  ),
  externalIPs: setting(toggle(), 'Services', {
    default: false,
    restart: false,
    doc: 'Serve `spec.externalIPs` as VIPs. Off by default, because whoever may write a Service could take over any address with it (CVE-2020-8554), and because Kubernetes is retiring the field (KEP-5707).',
  }),
  clusterIPs: setting(toggle(), 'Services', {
    default: false,
    restart: false,
    doc: "Serve cluster IPs as VIPs, on hosts that are the cluster's gateway to its Services.",
  }),
  defaults: setting(entries('a mapping of annotation names to values', defaultFaults), 'Services', {
    default: {},
    restart: false,
    doc: 'What an annotation that a Service does not have means: names without `headgate.io/`, and values as the annotation would have them. Entries of a flag, a variable and the file are merged.',
  }),

  pools: setting(addressPools(), 'Addresses', {
    default: [],
    restart: false,
    doc: 'Pools that Services of type LoadBalancer get their addresses from, besides the AddressPools of the cluster and of manifests. [Addresses](addresses.md#a-pool) has their keys. Of two of one name, the one of the settings holds.',
  }),
  releaseAfter: setting(durationOrOff(SECOND, 365 * DAY), 'Addresses', {
    default: '10m',
    restart: false,
    doc: 'How long the address of a Service that is gone is kept for one of the same namespace and name. 0: not at all.',
  }),
  provisioner: setting(file(), 'Addresses', {
    default: '',
    restart: false,
    doc: 'A program that is told of each address of a pool that is given to a Service or released. [Addresses](addresses.md#a-program-that-is-told) says what it gets. Empty: none.',
  }),

  haproxy: setting(program(), 'HAProxy', {
    default: 'haproxy',
    restart: true,
    doc: 'The HAProxy program, 2.6 or newer.',
  }),
  haproxySupervisor: setting(choice('agent', 'external'), 'HAProxy', {
    default: 'agent',
    restart: true,
    doc: 'Who starts HAProxy: the agent, detached, so that it outlives the agent; or something external, such as the systemd unit of the package.',
  }),
  haproxyAccess: setting(choice('owner', 'group'), 'HAProxy', {
    default: 'owner',
    restart: true,
    doc: "Who besides root may read the files that are written for HAProxy and use HAProxy's sockets: their owner; or their group, too, for a HAProxy that another user than the agent starts, such as the systemd unit of the package. The folders `haproxy` in `stateDir` and in `runtimeDir` must then be there already, with the setgid bit and a group that only these two users are in.",
  }),
  haproxyUser: setting(text('USER', ACCOUNT, ACCOUNT_IN_WORDS), 'HAProxy', {
    default: (host: Host) => (host.uid === 0 && host.hasAccount('passwd', 'haproxy') ? 'haproxy' : ''),
    defaultInWords: '`haproxy` as root where that account exists, otherwise none',
    restart: false,
    doc: "The user that HAProxy's workers become. Empty: they stay who they are.",
  }),
  haproxyGroup: setting(text('GROUP', ACCOUNT, ACCOUNT_IN_WORDS), 'HAProxy', {
    default: (host: Host) => (host.uid === 0 && host.hasAccount('group', 'haproxy') ? 'haproxy' : ''),
    defaultInWords: '`haproxy` as root where that group exists, otherwise none',
    restart: false,
    doc: "The group of HAProxy's workers. Empty: they keep theirs.",
  }),
  maxConnections: setting(integer(0, 100_000_000), 'HAProxy', {
    default: 0,
    restart: false,
    doc: 'Concurrent connections in all, as far as the limit on open files allows. 0: as many as it allows.',
  }),
  threads: setting(integer(0, 64), 'HAProxy', {
    default: 0,
    restart: false,
    doc: "HAProxy's threads. 0: HAProxy chooses, one per processor it may use.",
  }),

  drainTimeout: setting(durationOrOff(SECOND, DAY), 'Changes', {
    default: '5m',
    restart: false,
    doc: 'How long the connections of a removed member may go on before they are closed. 0: they are closed at once.',
  }),
  hardStopAfter: setting(duration(SECOND, 7 * DAY), 'Changes', {
    default: '30m',
    restart: false,
    doc: 'How long an old HAProxy worker may live on for its connections after a reload.',
  }),
  reloadInterval: setting(duration(100 * MILLISECOND, 10 * MINUTE), 'Changes', {
    default: '1s',
    restart: false,
    doc: 'The least time between two reloads; the first one comes at once. Where reloads go on and on they are up to five times as far apart: see [reloads](haproxy.md#reloads).',
  }),
  maxOldWorkers: setting(integer(1, 100), 'Changes', {
    default: 4,
    restart: false,
    doc: 'With this many old workers alive, reloads are spaced further.',
  }),
  oldWorkerMemory: setting(integer(16, 16_777_216, 'MB'), 'Changes', {
    default: 1024,
    restart: false,
    doc: 'With old workers taking this much memory, reloads are spaced further.',
  }),
  auditInterval: setting(duration(SECOND, DAY), 'Changes', {
    default: '30s',
    restart: false,
    doc: 'How often what HAProxy runs is compared with what it should run, and repaired.',
  }),

  healthReadInterval: setting(duration(500 * MILLISECOND, 10 * MINUTE), 'Changes', {
    default: '2s',
    restart: false,
    doc: 'How often the agent reads what [health monitors](health-monitors.md) have found, for the status, the metrics and the conditions. HAProxy itself acts on it at once.',
  }),

  vrrp: setting(vrrp(), 'The pair', {
    default: '',
    restart: {
      needRestart: (from, to) => (from === undefined) !== (to === undefined),
      inWords: '; from none to some, or back, it takes a restart',
    },
    doc: 'VRRP, by which one host of the pair holds the VIPs and the other takes them when it is gone: see [VRRP](high-availability.md) for the keys. Empty: the agent starts no keepalived. What the two hosts must have alike is [changed with care](high-availability.md#changing-the-settings-of-vrrp).',
  }),
  keepalived: setting(program(), 'The pair', {
    default: 'keepalived',
    restart: true,
    doc: 'The keepalived program, 2.2.7 or newer.',
  }),
  keepalivedSupervisor: setting(choice('agent', 'external'), 'The pair', {
    default: 'agent',
    restart: true,
    doc: 'Who starts keepalived: the agent, detached, so that it outlives the agent; or something external, such as the systemd unit of the package.',
  }),
  pairPeer: setting(address(), 'The pair', {
    default: '',
    restart: true,
    doc: 'The address of the other host of a [pair](high-availability.md), for what the two agents and the two HAProxies tell each other. Empty: that of the only peer of `vrrp`, where `pairCredentials` are given, otherwise none.',
  }),
  pairAddress: setting(address(), 'The pair', {
    default: '',
    restart: true,
    doc: 'The address of this host for the same. Empty: that of `vrrp`.',
  }),
  pairCredentials: setting(file(), 'The pair', {
    default: '',
    restart: true,
    doc: 'A PEM file with a private key, its certificate and the certificates that are trusted beside it, by which the two hosts know each other; mode 0600. The file is read again at SIGHUP.',
  }),
  pairPort: setting(integer(1, 65_535), 'The pair', {
    default: 9181,
    restart: true,
    doc: 'The TCP port of the agents, the same on both hosts.',
  }),
  pairTablesPort: setting(integer(1, 65_535), 'The pair', {
    default: 9182,
    restart: true,
    doc: 'The TCP port by which the HAProxies share session affinity, the same on both hosts.',
  }),
  pairLowerAfter: setting(duration(100 * MILLISECOND, MINUTE), 'The pair', {
    default: '1s',
    restart: false,
    doc: 'How long HAProxy may be silent, or its listeners refuse connections, before this host gives way to its peer.',
  }),
  pairRaiseAfter: setting(duration(100 * MILLISECOND, 10 * MINUTE), 'The pair', {
    default: '10s',
    restart: false,
    doc: 'How long both must be well again before this host stands in full.',
  }),
  pairDrainTimeout: setting(durationOrOff(SECOND, 60 * MINUTE), 'The pair', {
    default: '1m',
    restart: true,
    doc: 'How long, after a [planned failover](high-availability.md#connections-during-a-planned-failover), connections that were made before continue through the host that gave the VIPs away. The same on both hosts. 0: they are cut.',
  }),

  metricsDetail: setting(choice('listener', 'pool', 'member'), 'Behaviour of the agent', {
    default: 'member',
    restart: false,
    doc: 'How far down the metrics of HAProxy go: `listener` for listeners only, `pool` for pools as well, `member` for every member, which is ten series each, and more with health monitors and in http mode.',
  }),
  logLevel: setting(choice('trace', 'debug', 'info', 'warn', 'error'), 'Behaviour of the agent', {
    default: 'info',
    restart: false,
    doc: 'The least level that is logged.',
  }),
  stopDataplaneOnExit: setting(toggle(), 'Behaviour of the agent', {
    default: false,
    restart: false,
    doc: 'Stop what the agent started when it stops itself. For demonstrations and tests: without it, traffic goes on without the agent.',
  }),
};

export type SettingsTable = typeof settingsTable;
export type SettingName = keyof SettingsTable;

/** The value of every setting; durations are in milliseconds, paths are absolute. */
export type Settings = {
  readonly [Name in SettingName]: SettingsTable[Name] extends Setting<infer T> ? T : never;
};

/** The table's rows in its order. */
export function allSettings(): [SettingName, Setting<unknown>][] {
  return Object.entries(settingsTable) as [SettingName, Setting<unknown>][];
}

/** Whether a change of it is not followed by SIGHUP. */
export function needsRestart<T>({ restart }: Setting<T>, from: T, to: T): boolean {
  return typeof restart === 'boolean' ? restart : restart.needRestart(from, to);
}

/** What it takes for a change to take effect, in words. */
export function changeInWords({ restart }: Setting<unknown>): string {
  if (restart === true) return 'A change takes a restart';
  return `A change takes effect on SIGHUP${restart === false ? '' : restart.inWords}`;
}

export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(settingsTable, name);
}

/** `drainTimeout` → `drain-timeout`; `externalIPs` → `external-ips`. */
export function flagOf(name: string): string {
  return name.replaceAll(/([a-z])([A-Z])/g, '$1-$2').toLowerCase();
}

/** `drainTimeout` → `HEADGATE_DRAIN_TIMEOUT`. */
export function variableOf(name: string): string {
  return `HEADGATE_${flagOf(name).replaceAll('-', '_').toUpperCase()}`;
}

function setting<T>(kind: Kind<T>, group: Group, rest: Omit<Setting<T>, 'kind' | 'group'>): Setting<T> {
  return { kind, group, ...rest };
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

/** The XDG specification has relative paths ignored. */
function absolute(path: string | undefined): string | undefined {
  return path?.startsWith('/') ? path : undefined;
}
