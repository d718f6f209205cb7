// The data of a status page for tests: one served load balancer on a single host.

import type { PageDetail, PageHistory, PageSummary, PageView } from '../../../health/page-model.ts';

export const summary: PageSummary = {
  host: 'lb1',
  version: '0.0.0',
  startedAt: '2026-01-01T00:00:00.000Z',
  fault: '',
  role: 'alone',
  instances: [],
  peer: undefined,
  bgp: undefined,
  lowered: [],
  maintenance: false,
  kernel: undefined,
  disk: { folder: '/var/lib/headgate', writtenAt: '', faults: [] },
  dashboard: '',
  haproxy: { version: '2.6.12', serving: true, reloadPending: [] },
  counts: {
    served: 1,
    'served in part': 0,
    'no ready member': 0,
    'members down': 0,
    'members fail': 0,
    'not served': 0,
  },
  members: { ready: 1, down: 0, all: 1 },
  vips: 1,
  broken: [],
  cluster: undefined,
  pools: [],
  morePools: 0,
  problems: [],
  problemCount: 0,
  problemObjects: 0,
};

const history: PageHistory = {
  ...{ seconds: 5, rate: [0, 1], open: [0, 3], bytesIn: [0, 100], bytesOut: [0, 900] },
  ...{ errors: [0, 0], retries: [0, 0], latency: [null, null] },
};

export const detail: PageDetail = {
  key: 'default/web',
  verdict: 'served',
  reasons: [],
  vips: ['192.0.2.1'],
  listeners: [
    {
      name: 'default:web:tcp:80:v4',
      protocol: 'TCP',
      port: 80,
      engine: 'haproxy',
      isServed: true,
      addresses: ['192.0.2.1'],
      sessions: 3,
      sessionRate: 1,
      ...{ hosts: [], moreHosts: 0, certificates: [], moreCertificates: 0 },
      members: [
        { name: '10.0.0.1:8080', target: 'web-1', state: 'ONLINE', why: '', sessions: 3, sessionRate: 1 },
      ],
    },
  ],
  moreListeners: 0,
  ...{ pools: [], morePools: 0, users: [] },
  moreMembers: 0,
  open: 3,
  rate: 1,
  history,
  dashboard: '',
};

export const view: PageView = {
  summary,
  list: {
    rows: [
      {
        key: 'default/web',
        verdict: 'served',
        status: 'ONLINE',
        vips: ['192.0.2.1'],
        moreVips: 0,
        ports: ['TCP 80'],
        morePorts: 0,
        ready: 1,
        down: 0,
        members: 1,
        problems: 0,
        isOfKernel: false,
        open: 3,
        rate: 1,
        rates: [0, 1],
      },
    ],
    found: 1,
    page: 1,
    pages: 1,
  },
  namespaces: ['default'],
  load: { ...history, busy: [0, 2] },
  detail: undefined,
};
