import test from 'ava';
import { type AgentState, Metrics } from '../../health/metrics.ts';

const NOTHING: AgentState = {
  objects: {},
  loadBalancers: 0,
  ignoredServices: 0,
  certificates: [],
  waiting: 0,
  problems: new Map(),
  operating: {},
  haproxy: { serving: true, reloadPending: [], persistFault: '', landed: 0, serversToDelete: 0 },
  addresses: { pools: [], unkept: 0, provisioning: 0 },
  api: undefined,
  vrrp: undefined,
  pair: undefined,
  hosts: undefined,
  connectionSync: undefined,
};

/** The samples of one metric: labels to value. */
async function rowsOf(metrics: Metrics, name: string): Promise<Readonly<Record<string, number>>> {
  const family = (await metrics.families()).find((each) => each.name === name);
  const parts = family?.parts ?? [];
  return Object.fromEntries(
    parts.flatMap(({ rows, value }) => rows.map((row) => [row.labels, value(row)] as const)),
  );
}

const withState = (more: Partial<AgentState>): Metrics =>
  new Metrics('0.0.0', () => ({ ...NOTHING, ...more }));

test('Metrics of the cluster, VRRP and the peer have no samples on a host without them', async (t) => {
  const metrics = withState({});
  for (const name of [
    'headgate_leader',
    'headgate_api_connected',
    'headgate_cluster_lost',
    'headgate_vrrp_state',
    'headgate_keepalived_fault',
    'headgate_pair_peer_heard',
    'headgate_pair_parity',
    'headgate_standing_lowered',
  ])
    t.deepEqual(await rowsOf(metrics, name), {}, name);
});

test('A kind is connected if all of its watches are, and one that the API server does not have has no sample', async (t) => {
  const watches = [
    { kind: 'Service', connected: true, lack: 'none' },
    { kind: 'Service', connected: false, lack: 'none' },
    { kind: 'Node', connected: true, lack: 'none' },
    { kind: 'AddressPool', connected: false, lack: 'unknown' },
  ] as const;
  const metrics = withState({ api: { isLeader: false, lease: 'system/headgate', watches, isLost: true } });
  t.deepEqual(await rowsOf(metrics, 'headgate_api_connected'), { 'kind="Service"': 0, 'kind="Node"': 1 });
  t.deepEqual(await rowsOf(metrics, 'headgate_leader'), { 'lease="system/headgate"': 0 });
  t.deepEqual(await rowsOf(metrics, 'headgate_cluster_lost'), { '': 1 });
});

test('Each state of a VRRP instance has a sample, and one of them is 1', async (t) => {
  const instance = {
    name: 'vrrp-51',
    state: 'backup',
    priority: 150,
    anchors: ['192.0.2.1', '2001:db8::1'],
    vips: 4,
  };
  const metrics = withState({ vrrp: { instances: [instance], rivals: ['vrrp-51'], fault: 'ill' } });
  const labels = 'vrrp_instance="vrrp-51",anchor="192.0.2.1"';
  t.deepEqual(await rowsOf(metrics, 'headgate_vrrp_state'), {
    [`${labels},state="master"`]: 0,
    [`${labels},state="backup"`]: 1,
    [`${labels},state="fault"`]: 0,
    [`${labels},state="unknown"`]: 0,
  });
  t.deepEqual(await rowsOf(metrics, 'headgate_vrrp_rival'), { 'vrrp_instance="vrrp-51"': 1 });
  t.deepEqual(await rowsOf(metrics, 'headgate_keepalived_fault'), { '': 1 });
  const well = withState({ vrrp: { instances: [instance], rivals: [], fault: '' } });
  t.deepEqual(await rowsOf(well, 'headgate_keepalived_fault'), { '': 0 });
});

test('Problems and standing reasons that are absent have a sample with 0', async (t) => {
  const metrics = withState({
    problems: new Map([['InvalidFile', 3]]),
    pair: {
      lowered: [{ reason: 'haproxy' }],
      maintenance: false,
      parity: { model: 'same', running: 'unknown' },
      twoMasters: [],
      peerAddress: '192.0.2.2',
      peer: undefined,
      peerNotReady: 'It is not heard',
      handover: undefined,
      credentialsExpire: 0,
    },
  });
  const problems = await rowsOf(metrics, 'headgate_problems');
  t.is(problems['reason="InvalidFile"'], 3);
  t.is(problems['reason="ConfigurationRejected"'], 0);
  const lowered = await rowsOf(metrics, 'headgate_standing_lowered');
  t.is(lowered['reason="haproxy"'], 1);
  t.is(lowered['reason="maintenance"'], 0);
  t.deepEqual(await rowsOf(metrics, 'headgate_pair_parity'), { 'of="model"': 1, 'of="running"': 0 });
  t.deepEqual(await rowsOf(metrics, 'headgate_pair_peer_heard'), { 'peer="192.0.2.2"': 0 });
});

test('Connections that a handover left have no sample until they are counted', async (t) => {
  const pair = {
    lowered: [],
    maintenance: false,
    parity: { model: 'same', running: 'same' },
    twoMasters: [],
    peerAddress: '192.0.2.2',
    peer: undefined,
    peerNotReady: '',
    credentialsExpire: 0,
  };
  const samples = (left: number | undefined) =>
    rowsOf(withState({ pair: { ...pair, handover: { left } } }), 'headgate_handover_connections');
  t.deepEqual(await samples(undefined), {});
  t.deepEqual(await samples(0), { 'peer="192.0.2.2"': 0 });
  t.deepEqual(await samples(7), { 'peer="192.0.2.2"': 7 });
});

test('A gauge has no sample for an object that is gone', async (t) => {
  let pools: AgentState['addresses']['pools'] = [
    { name: 'public', family: 'v4', free: '3', used: '1', held: '0', conflicting: '0' },
  ];
  const metrics = new Metrics('0.0.0', () => ({ ...NOTHING, addresses: { ...NOTHING.addresses, pools } }));
  const rows = await rowsOf(metrics, 'headgate_address_pool_addresses');
  t.is(rows['pool="public",family="v4",state="free"'], 3);
  pools = [];
  t.deepEqual(await rowsOf(metrics, 'headgate_address_pool_addresses'), {});
});

test('Metrics reads the state once for each scrape', async (t) => {
  let reads = 0;
  const metrics = new Metrics('0.0.0', () => {
    reads++;
    return NOTHING;
  });
  await metrics.families();
  t.is(reads, 1);
  await metrics.families();
  t.is(reads, 2);
});

test('Counters of failures begin at 0', async (t) => {
  const metrics = withState({});
  const failed = 'reason="repair",result="failed"';
  t.is((await rowsOf(metrics, 'headgate_haproxy_reloads_total'))[failed], 0);
  metrics.dataplane.reloaded('repair', 'failed');
  t.is((await rowsOf(metrics, 'headgate_haproxy_reloads_total'))[failed], 1);
  t.is((await rowsOf(metrics, 'headgate_repairs_total'))['what="audit"'], 0);
});

test('Each certificate has a sample with its expiry, and thousands of them are one table', async (t) => {
  const certificates = Array.from({ length: 10_000 }, (_, at) => ({
    name: `default/tls-${at}`,
    expires: 1_000 * at,
  }));
  const metrics = withState({ certificates });
  const name = 'headgate_certificate_expiry_seconds';
  const samples = await rowsOf(metrics, name);
  t.is(Object.keys(samples).length, 10_000);
  t.is(samples['namespace="default",secret="tls-77"'], 77);
  const family = (await metrics.families()).find((each) => each.name === name);
  t.is(family?.parts.length, 1);
  t.is(family?.type, 'gauge');
});

test('The metrics of hosts have a sample for each other host, and whether it is up without BFD too', async (t) => {
  const host = { lowered: [], parity: { model: 'same', running: 'differs' } } as const;
  const metrics = withState({
    hosts: {
      hosts: [
        { ...host, name: 'lb1', isSelf: true, fault: '', bfd: '', lowered: ['maintenance'] },
        { ...host, name: 'lb2', isSelf: false, fault: '', bfd: 'down' },
        { ...host, name: 'lb3', isSelf: false, fault: 'it is not heard', bfd: 'up' },
        { ...host, name: 'lb4', isSelf: false, fault: '', bfd: '' },
      ],
      credentialsExpire: 5_000,
    },
  });
  t.deepEqual(await rowsOf(metrics, 'headgate_host_up'), {
    'host="lb2"': 0,
    'host="lb3"': 1,
    'host="lb4"': 1,
  });
  t.like(await rowsOf(metrics, 'headgate_host_connected'), { 'host="lb2"': 1, 'host="lb3"': 0 });
  t.like(await rowsOf(metrics, 'headgate_host_lowered'), { 'host="lb1"': 1, 'host="lb2"': 0 });
  t.like(await rowsOf(metrics, 'headgate_host_parity'), {
    'host="lb2",of="model"': 1,
    'host="lb2",of="running"': 0,
  });
  t.deepEqual(await rowsOf(withState({}), 'headgate_host_up'), {});
});
