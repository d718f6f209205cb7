import test from 'ava';
import { SecretText } from '../../../../agent/base/secret-text.ts';
import type { LoadBalancerView } from '../../../../agent/octavia/load-balancers/load-balancers.ts';
import {
  type AmphoraFacts,
  amphoraListeners,
  amphoraStatus,
} from '../../../../agent/octavia/report/amphora-report.ts';

const ID = '3f9a2c1e-8b4d-4f6a-9c0e-1d2b3a4c5d6e';
const TEXT = {
  listeners: [{ id: 'web', type: 'HTTP' as const, bind: '10.0.0.10:80' }],
  pools: [{ name: 'pool:web', pool: 'pool', listener: 'web', members: ['one'] }],
  files: new Set<string>(),
};
const VIEW: LoadBalancerView = {
  id: 'lb',
  uploaded: TEXT,
  running: TEXT,
  isWanted: true,
  isBehind: false,
  haproxy: { isRunning: true, text: 'abc', since: new Date(0), cause: 'bind differs', fault: '' },
};

const facts = (change: Partial<AmphoraFacts> = {}): AmphoraFacts => ({
  version: '1.2.3',
  startedAt: new Date(0),
  settings: {
    amphoraId: ID,
    isActiveStandby: false,
    paths: { base: '/b', certificates: '/c' },
    haproxy: '/h',
    rest: {
      ...{ address: '::', port: 9443, certificate: '/s', clientAuthority: '/a' },
      ...{ minVersion: 'TLSv1.2', requestTimeoutMs: 1 },
    },
    heartbeat: {
      controllers: [{ host: '192.0.2.1', port: 5555 }],
      intervalMs: 10_000,
      key: new SecretText('secret key'),
    },
    logFacilities: { user: 0, administrative: 1 },
  },
  address: '[::]:9443',
  loadBalancers: [VIEW],
  heartbeat: { sent: 7, last: { at: new Date(1_000), to: '192.0.2.1:5555', bytes: 80 }, fault: '' },
  isVrrpWell: true,
  ...change,
});

test('amphoraStatus() says which text runs since when, and the last heartbeat, but not its key', (t) => {
  const status = amphoraStatus(facts());
  t.is(status.fault, '');
  t.deepEqual(status.loadBalancers, [
    {
      ...{ id: 'lb', listeners: 1, isRunning: true, text: 'abc', since: '1970-01-01T00:00:00.000Z' },
      ...{ isBehind: false, lastReload: 'bind differs', fault: '' },
    },
  ]);
  t.like(status.heartbeat, { controllers: ['192.0.2.1:5555'], sent: 7, lastTo: '192.0.2.1:5555' });
  t.false(JSON.stringify(status).includes('secret key'));
});

test('amphoraStatus() has a fault for a HAProxy that should run, for keepalived and for heartbeats', (t) => {
  const haproxy = { ...VIEW.haproxy, isRunning: false };
  const faultOf = (change: Partial<AmphoraFacts>) => amphoraStatus(facts(change)).fault;
  t.is(faultOf({ loadBalancers: [{ ...VIEW, haproxy }] }), 'HAProxy of lb does not run');
  t.is(faultOf({ loadBalancers: [{ ...VIEW, haproxy, isWanted: false }] }), '');
  t.is(faultOf({ isVrrpWell: false }), 'keepalived is configured, but does not run');
  t.is(
    faultOf({ heartbeat: { sent: 0, last: undefined, fault: 'no controller' } }),
    'No heartbeat is sent: no controller',
  );
});

test('amphoraListeners() has the listeners of both engines with their pools', (t) => {
  const row = (columns: Record<string, string>) => new Map(Object.entries(columns));
  const rows = [
    row({ pxname: 'web', svname: 'FRONTEND', status: 'OPEN', scur: '4' }),
    row({ pxname: 'pool:web', svname: 'BACKEND', status: 'DOWN' }),
    row({ pxname: 'pool:web', svname: 'one', status: 'DOWN' }),
  ];
  const stats = { tx: 0, rx: 0, conns: 2, totconns: 0 };
  const listeners = amphoraListeners([VIEW], [{ text: TEXT, rows }], [{ id: 'udp', stats, pool: undefined }]);
  t.deepEqual(listeners, [
    {
      ...{ id: 'web', loadBalancer: 'lb', type: 'HTTP', place: '10.0.0.10:80', engine: 'haproxy' },
      ...{ status: 'OPEN', connections: 4 },
      pools: [{ id: 'pool', status: 'DOWN', members: { one: 'DOWN' } }],
    },
    {
      ...{ id: 'udp', loadBalancer: '', type: 'UDP', place: '', engine: 'kernel' },
      ...{ status: 'OPEN', connections: 2, pools: [] },
    },
  ]);
});

test('amphoraListeners() has a listener of a HAProxy that does not run without a status', (t) => {
  t.like(amphoraListeners([VIEW], [], [])[0], { id: 'web', status: '', pools: [{ id: 'pool', status: '' }] });
});
