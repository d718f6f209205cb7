// The text of /metrics with every metric that the agent has: docs/metrics.md is written from it, and compared with it.

import { listenerSeries, memberSeries } from '../../../agent/dataplane/series-labels.ts';
import { parseInfo } from '../../../agent/haproxy/socket/readings.ts';
import { allColumns, infoCounters } from '../../../agent/haproxy/stats/columns.ts';
import { haproxyFamilies } from '../../../agent/haproxy/stats/families.ts';
import { checkLabel } from '../../../agent/haproxy/stats/refusal-counts.ts';
import { routeSeries } from '../../../agent/haproxy/stats/route-counts.ts';
import { newSeries, type Series, type SeriesKind } from '../../../agent/haproxy/stats/series.ts';
import type { Sample } from '../../../agent/haproxy/stats/statistics.ts';
import { createLog } from '../../../agent/host/log.ts';
import type { Listener, LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { egressFamilies } from '../../../agent/nftables/egress/egress-families.ts';
import { kernelFamilies } from '../../../agent/nftables/families.ts';
import { operatingFamilies } from '../../../agent/report/operating/operating-metrics.ts';
import type { LoadBalancerStatus } from '../../../agent/report/operating/operating-status.ts';
import { verdictFamilies } from '../../../agent/report/operating/verdict-metrics.ts';
import { BirdAnnouncer } from '../../../agent/vips/bird/bird-announcer.ts';
import { KeepalivedAnnouncer } from '../../../agent/vips/keepalived/keepalived-announcer.ts';
import { Metrics } from '../../../health/metrics.ts';
import type { Verdict } from '../../../health/page-model.ts';
import { startHealthServer } from '../../../health/server.ts';

import { bgpPeer, bgpSettings } from '../bgp/bgp-values.ts';
import { listenerIdentity } from '../values/load-balancers.ts';

const STATE = {
  objects: { Service: 1 },
  loadBalancers: 1,
  ignoredServices: 0,
  certificates: [{ name: 'default/web-tls', expires: 0 }],
  waiting: 0,
  problems: new Map([['InvalidFile', 1]]),
  haproxy: { serving: true, reloadPending: [], persistFault: '', landed: 0, serversToDelete: 0 },
  api: {
    isLeader: true,
    isLost: false,
    lease: 'headgate-system/headgate',
    watches: [{ kind: 'Service', connected: true, lack: 'none' as const }],
  },
  vrrp: {
    instances: [{ name: 'vrrp-51', state: 'master', priority: 200, anchors: ['192.0.2.3'], vips: 3 }],
    rivals: [],
    fault: '',
  },
  connectionSync: { peer: '192.0.2.2', pid: 1, isPeerHeard: true },
  pair: {
    lowered: [{ reason: 'maintenance' }],
    maintenance: true,
    parity: { model: 'same', running: 'differs' },
    twoMasters: [],
    peerAddress: '192.0.2.2',
    peer: undefined,
    peerNotReady: '',
    handover: { left: 1 },
    credentialsExpire: 0,
  },
  hosts: {
    hosts: [
      {
        ...{ name: 'lb2', isSelf: false, fault: '', bfd: 'up' as const, lowered: [] },
        parity: { model: 'same', running: 'same' },
      } as const,
    ],
    credentialsExpire: 0,
  },
  operating: { member: { ONLINE: 1 } },
  addresses: {
    pools: [{ name: 'a', family: 'v4', free: '1', used: '0', held: '0', conflicting: '0' }] as const,
    unkept: 0,
    provisioning: 0,
  },
};

const NO_PACKETS = { packets: 0, bytes: 0 };

const MEMBER = {
  name: '10.0.0.1:80',
  id: 1,
  address: '10.0.0.1',
  port: 80,
  weight: 1,
  state: 'ready',
  target: 'Pod/web-1',
} as const;

const NAMED = 'default:web:tcp:80:v4';
const { labels: LABELS } = listenerIdentity(NAMED);
const LISTENER = { name: NAMED, labels: LABELS };
const WEB = { key: 'default/web', listeners: [{ name: NAMED, labels: LABELS, pool: { members: [MEMBER] } }] };
const STATUS: LoadBalancerStatus = {
  key: WEB.key,
  status: 'ERROR',
  listeners: [
    {
      name: NAMED,
      status: 'ERROR',
      pool: 'ERROR',
      ready: 1,
      down: 1,
      failing: 0,
      taking: 0,
      fails: 'none',
      members: [{ name: MEMBER.name, status: 'ERROR', cause: '', fails: false }],
    },
  ],
  problems: [],
  isMonitored: true,
};

const VERDICTS: Readonly<Record<Verdict, number>> = {
  served: 0,
  'served in part': 0,
  'no ready member': 0,
  'members down': 0,
  'members fail': 0,
  'not served': 1,
};

/** Ends TLS. */
const SOURCE = { tls: {} } as unknown as Listener;
const SERIES: Readonly<Record<SeriesKind, string>> = {
  listener: listenerSeries(LISTENER),
  pool: listenerSeries(LISTENER),
  member: memberSeries(LISTENER, MEMBER.name, MEMBER),
  route: routeSeries('HTTPRoute/default/api'),
  listenerCheck: `${listenerSeries(LISTENER)},${checkLabel('a|token')}`,
  routeCheck: `${routeSeries('HTTPRoute/default/api')},${checkLabel('a|token')}`,
};

/** A sample with every metric. */
const SAMPLE: Sample = {
  info: parseInfo(
    [
      'Version: 2.6',
      'Stopping: 0',
      'Pid',
      'Start_time_sec',
      'Nbthread',
      'Idle_pct',
      'CurrConns',
      'Maxconn',
      'Tasks',
      'Run_queue',
    ]
      .concat('Ulimit-n', 'PoolAlloc_MB', 'PoolUsed_MB')
      .map((line) => (line.includes(':') ? line : `${line}: 1`))
      .join('\n'),
  ),
  process: infoCounters.map(() => 1),
  series: {
    listener: [series('listener')],
    pool: [series('pool')],
    member: [series('member')],
    route: [series('route')],
    listenerCheck: [series('listenerCheck')],
    routeCheck: [series('routeCheck')],
  },
  oldWorkers: 0,
  oldConnections: 0,
  seconds: 0.1,
  age: () => 0,
};

function series(kind: SeriesKind): Series {
  return {
    ...newSeries(kind),
    values: allColumns.map(() => 1),
    labels: SERIES[kind],
    source: SOURCE,
    isHttp: true,
    hasCheck: true,
    status: 'DRAIN',
  };
}

const VRRP = new KeepalivedAnnouncer({
  settings: {
    stateDir: '/nowhere',
    runtimeDir: '/nowhere',
    keepalived: 'keepalived',
    keepalivedSupervisor: 'external',
    netns: '',
    vrrp: {
      interface: 'eth0',
      address: '192.0.2.1',
      peers: [],
      advertInterval: 200,
      instances: [{ virtualRouterId: 51, priority: 200, anchors: ['192.0.2.3'] }],
    },
    auditInterval: 1_000,
  },
  metrics: new Metrics('0.0.0', () => STATE).dataplane,
  log: createLog({ level: 'error' }),
});

const HOST = { name: 'this', address: '192.0.2.1', back: ['10.9.9.1'], anchors: [] };
const BGP = new BirdAnnouncer({
  settings: {
    ...{
      runtimeDir: '/nowhere',
      bird: 'bird',
      birdSupervisor: 'external',
      nft: 'nft',
      passingTable: 'headgate_passing',
      netns: '',
    },
    bgp: bgpSettings({ peers: [bgpPeer({ bfd: { interval: 300, multiplier: 3 } })] }),
  },
  desired: new Map(),
  group: () => ({ self: HOST, hosts: [HOST, { ...HOST, name: 'other' }] }),
  hosts: {
    isAnnouncedElsewhere: () => false,
    blind: () => new Set(),
    onBlind: () => undefined,
    differing: () => new Set(),
  },
  vips: { serves: () => false, isRouted: () => true, routeSpec: () => undefined, hasMembers: () => true },
  peers: { areRead: () => true, secret: () => ({ why: '' }), problems: () => [] },
  onChanged: () => undefined,
  log: createLog({ level: 'error' }),
});

export async function everyMetric(): Promise<string> {
  const metrics = new Metrics('0.0.0', () => STATE);
  metrics.loop.eventReceived('manifests');
  metrics.loop.planned('none');
  metrics.loop.acknowledged(0.001);
  metrics.loop.programmed(0.001, 'runtime');
  metrics.dataplane.commandsAcknowledged('AddServer');
  metrics.dataplane.commandRefused('AddServer');
  metrics.dataplane.repaired('audit');
  metrics.dataplane.reloaded('repair', 'done');
  metrics.dataplane.persisted('done');
  metrics.dataplane.keepalivedReloaded('done');
  metrics.pair.pairRefused('address');
  metrics.addresses.claimWritten('done');
  metrics.addresses.provisioned('assign', 'done');
  metrics.api.apiEvent('Service', 'ADDED');
  metrics.api.apiList('Service', 'start');
  metrics.api.apiWatchEnded('Service', 'ended');
  const nothing = (): string => '';
  const listen = { address: '127.0.0.1', port: 0 };
  const own = async () => [...(await metrics.families()), ...VRRP.families(), ...BGP.families()];
  const loadBalancers = new Map([[WEB.key, WEB as unknown as LoadBalancer]]);
  const round = async () => [
    ...haproxyFamilies(SAMPLE),
    // The others have names of HAProxy's.
    ...kernelFamilies([WEB.listeners[0] as unknown as Listener], {
      counts: new Map(),
      countsTraffic: true,
      isUp: true,
      down: () => new Map(),
      detail: 'listener',
    }).filter(({ name }) => name.endsWith('_packets_total')),
    ...egressFamilies({
      pods: [{ owner: WEB.key, vip: '192.0.2.10', pods: 1 }],
      counts: new Map([['192.0.2.10', { opened: NO_PACKETS, sent: NO_PACKETS, received: NO_PACKETS }]]),
      countsTraffic: true,
    }),
    ...(await operatingFamilies([STATUS], loadBalancers, 'member')),
    ...verdictFamilies({
      counts: VERDICTS,
      unserved: () => [{ key: WEB.key, verdict: 'not served' }],
    }),
  ];
  const { server, address } = await startHealthServer(listen, {
    metrics: { round, own },
    alive: nothing,
    ready: nothing,
    look: () => Promise.reject(new Error('There is no browser')),
  });
  try {
    return await (await fetch(`http://${address}/metrics`)).text();
  } finally {
    server.close();
  }
}
