// Our definitions and objects on a real API server: what it takes, what it refuses, what it gives back.

import ava from 'ava';
import { claimManifest } from '../../agent/kubernetes/address-claim.ts';
import { poolStatusManifest } from '../../agent/kubernetes/address-pool.ts';
import { entryOf, readReports } from '../../agent/kubernetes/host-report.ts';
import { parseObject } from '../../agent/kubernetes/parse-object.ts';
import { requires } from '../support/basics/requirements.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { pool, readClaim, request, tcp } from '../support/values/address-requests.ts';
import { allocate } from '../support/values/allocate.ts';

const test = requires(ava, kubeNeeds());

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const POOLS = '/apis/headgate.io/v1alpha1/addresspools';
const CLAIMS = '/apis/headgate.io/v1alpha1/addressclaims';
const PEERS = '/apis/headgate.io/v1alpha1/bgppeers';
const apiVersion = 'headgate.io/v1alpha1';

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t);
  await deployDefinitions(kube);
});
test.after.always(() => kube?.stop());

test('The API server finds nothing to complain of in the definitions', async (t) => {
  for (const name of ['addresspools', 'addressclaims', 'bgppeers']) {
    const { status } = await kube.must('GET', `${DEFINITIONS}/${name}.headgate.io`);
    const conditions = status.conditions as { readonly type: string; readonly status: string }[];
    t.is(conditions.find(({ type }) => type === 'Established')?.status, 'True');
    t.is(
      conditions.find(({ type }) => type === 'NonStructuralSchema'),
      undefined,
    );
  }
});

test('A pool is taken with all its fields and read as it was written; its status is written beside it', async (t) => {
  const spec = {
    blocks: ['192.0.2.0/24', '198.51.100.1-198.51.100.9', '2001:db8::/64'],
    priority: 5,
    auto: false,
    draining: true,
    avoidBuggyIPs: true,
    shareAcrossNamespaces: true,
    serviceAllocation: {
      namespaces: ['prod'],
      serviceSelector: {
        matchLabels: { 'example.org/tier': 'front' },
        matchExpressions: [{ key: 'team', operator: 'In', values: ['x'] }],
      },
    },
  };
  await kube.must('POST', POOLS, { apiVersion, kind: 'AddressPool', metadata: { name: 'full' }, spec });
  const full = await kube.must('GET', `${POOLS}/full`);
  t.deepEqual(full.spec, spec);
  const [object] = parseObject(full, '').objects;
  if (object?.kind !== 'AddressPool') return t.fail();
  t.like(object, {
    ...pool('full', spec.blocks, spec),
    blocks: object.blocks,
    source: 'api',
    uid: full.metadata.uid,
    generation: 1,
  });
  const count = { total: 1n << 64n, free: 1n, used: 2n, held: 3n, conflicting: 4n };
  const status = poolStatusManifest(object, { v4: count, v6: count }, undefined, '2026-01-01T00:00:00Z');
  const path = `${POOLS}/full/status?fieldManager=headgate&force=true`;
  await kube.must('PATCH', path, status, 'application/apply-patch+yaml');
  const written = await kube.must('GET', `${POOLS}/full`);
  t.deepEqual(written.status, status.status);
  t.deepEqual(written.spec, spec);
});

test('The API server itself refuses what cannot be', async (t) => {
  const refused = async (path: string, kind: string, spec: unknown) => {
    const { status } = await kube.api('POST', path, { apiVersion, kind, metadata: { name: 'wrong' }, spec });
    t.is(status, 422, JSON.stringify(spec));
  };
  await refused(POOLS, 'AddressPool', {});
  await refused(POOLS, 'AddressPool', { blocks: [] });
  await refused(POOLS, 'AddressPool', { blocks: ['not an address'] });
  await refused(POOLS, 'AddressPool', { blocks: ['192.0.2.1'], priority: 'high' });
  await refused(POOLS, 'AddressPool', { blocks: ['192.0.2.1'], announce: 'arp' });
  for (const bgp of [
    { communities: ['65001'] },
    { largeCommunities: ['65001:1'] },
    { peers: ['Tor A'] },
    { localPreference: 0 },
    { aggregateLength: 33 },
    { aggregateLength: 16 },
    { aggregateLengthV6: 48 },
  ])
    await refused(POOLS, 'AddressPool', { blocks: ['192.0.2.0/24', '2001:db8::/64'], bgp });
  for (const block of [
    '10.0.0.0/33',
    '10.0.0.1/24',
    '2001:db8::1/64',
    '192.0.2',
    '192.0.2.9-192.0.2.1',
    '192.0.2.1 - 192.0.1.255',
    '192.0.2.1-2001:db8::1-192.0.2.3',
    '192.0.2.1-300.0.2.1',
    '2001:db8::1-zz',
  ])
    await refused(POOLS, 'AddressPool', { blocks: ['198.51.100.0/24', block] });
  await refused(CLAIMS, 'AddressClaim', { address: '192.0.2.1' });
  await refused(CLAIMS, 'AddressClaim', {
    address: '192.0.2.1',
    reserved: true,
    ports: [{ protocol: 'ICMP', port: 1 }],
  });
  await refused(CLAIMS, 'AddressClaim', { service: 'default/web' });
  // Values that the agent cannot read would silently reserve nothing.
  for (const address of [
    '192.0.2.0/24',
    '192.0.2.300',
    '192.0.2',
    '192.0.02.1',
    'web.example',
    '',
    '1:2:3',
    ':::',
  ])
    await refused(CLAIMS, 'AddressClaim', { address, reserved: true });
  for (const wrong of [
    { service: 'web' },
    { service: 'Default/web' },
    { sharingKey: 'a key' },
    { namespace: 'prod/web' },
    { pool: 'a_pool' },
  ])
    await refused(CLAIMS, 'AddressClaim', { address: '192.0.2.1', reserved: true, ...wrong });
});

test('A BGPPeer is taken with all its fields and read as it was written; each host has its own part of the status', async (t) => {
  const spec = {
    ...{
      address: 'fe80::1',
      interface: 'eth0.100',
      asn: 4_200_000_000,
      port: 1179,
      families: ['ipv4', 'ipv6'],
    },
    ...{ source: 'fe80::2', localPort: 1790, multihop: 0, ttlSecurity: true, prepends: 2 },
    ...{ communities: ['65001:77', 'no-export'], largeCommunities: ['65001:1:2'], localPreference: 200 },
    bfd: { interval: '50ms', multiplier: 5 },
    passwordSecret: { name: 'tor', key: 'tor-a' },
    ...{ hosts: ['lb1'], hostSelector: { matchLabels: { rack: 'r1' } } },
  };
  const create = (name: string, own: object) =>
    kube.api('POST', PEERS, { apiVersion, kind: 'BGPPeer', metadata: { name }, spec: own });
  t.is((await create('full', spec)).status, 201);
  const full = await kube.must('GET', `${PEERS}/full`);
  t.deepEqual(full.spec, spec);
  const [object] = parseObject(full, '').objects;
  if (object?.kind !== 'BGPPeer') return t.fail();
  t.like(object, { spec: { families: ['v4', 'v6'], bfd: { interval: 50, multiplier: 5 } }, generation: 1 });
  t.deepEqual(object.passwordSecret, { name: 'tor', key: 'tor-a' });
  t.is((await create('plain', { address: '192.0.2.1', asn: 65_000, bfd: {} })).status, 201);

  const apply = async (manager: string, status: object) => {
    const { uid } = full.metadata;
    const body = { apiVersion, kind: 'BGPPeer', metadata: { name: 'full', uid }, status };
    const path = `${PEERS}/full/status?fieldManager=${manager}&force=true`;
    return (await kube.must('PATCH', path, body, 'application/apply-patch+yaml')).status;
  };
  const now = 1_767_268_800_000;
  const entry = (host: string) => entryOf({ host, state: 'Up', message: '', since: now, reported: now });
  await apply('headgate-host-lb1', { hosts: [entry('lb1')] });
  await apply('headgate-host-lb2', { hosts: [entry('lb2')] });
  const conditions = [
    { type: 'Accepted', status: 'True', reason: 'Accepted', lastTransitionTime: '2026-01-01T12:00:00Z' },
  ];
  const { hosts } = await apply('headgate-hosts', { hostsUp: '2/2', conditions });
  t.deepEqual(hosts.map(({ name }: { name: string }) => name).sort(), ['lb1', 'lb2']);
  t.like(readReports(await kube.must('GET', `${PEERS}/full`)), { reports: { length: 2 } });
  // A host gives up its own entry, or another one that of a host that is gone.
  const left = await apply('headgate-host-lb1', {});
  t.deepEqual(left.hosts, [entry('lb2')]);
  t.is(left.hostsUp, '2/2');
});

test('The API server itself refuses a BGPPeer that cannot be', async (t) => {
  const right = { address: '192.0.2.1', asn: 65_000 };
  const refused = async (name: string, change: object) => {
    const { status, body } = await kube.api('POST', PEERS, {
      ...{ apiVersion, kind: 'BGPPeer', metadata: { name } },
      spec: { ...right, ...change },
    });
    t.is(status, 422, `${name} ${JSON.stringify(change)} ${JSON.stringify(body)}`);
  };
  for (const name of ['a.b', '1a', 'x'.repeat(31)]) await refused(name, {});
  for (const change of [
    { asn: undefined },
    { asn: 0 },
    { asn: 23_456 },
    { asn: 65_535 },
    { address: 'router-1' },
    { address: '192.0.2.1; }' },
    { address: '192.0.2.300' },
    { address: '0.0.0.0' },
    { address: '127.0.0.1' },
    { address: '224.0.0.1' },
    { address: '255.255.255.255' },
    { address: '::' },
    { address: '::1' },
    { address: 'ff02::1' },
    { address: '0:0::0' },
    { source: '0.0.0.0' },
    { address: 'fe80::1' },
    { address: 'FE80::1' },
    { interface: 'eth0' },
    { address: 'fe80::1', interface: 'eth0"; }' },
    { source: '2001:db8::1' },
    { source: '192.0.2.1' },
    { localPort: 1790 },
    { address: 'fe80::1', interface: 'eth0', multihop: 2 },
    { multihop: 2, bfd: {} },
    { families: ['ipv6'] },
    { families: ['ipx'] },
    { address: '2001:db8::1', families: ['ipv4'] },
    { communities: ['65001'] },
    { communities: Array.from({ length: 17 }, () => '65001:1') },
    { largeCommunities: ['1:2'] },
    { bfd: true },
    { bfd: { interval: '5m' } },
    { bfd: { interval: '1ms' } },
    { bfd: { multiplier: 1 } },
    { passwordSecret: {} },
    { passwordSecret: { name: 'a', key: '../etc/passwd' } },
    { prepends: 6 },
    { hosts: Array.from({ length: 65 }, (_, at) => `lb${at}`) },
  ])
    await refused('tor-a', change);
});

test('A pool that says how its VIPs are announced is taken, and read as it was written', async (t) => {
  const bgp = {
    ...{ peers: ['tor-a'], communities: ['65001:77', 'no-export'], largeCommunities: ['65001:1:2'] },
    ...{ localPreference: 4_294_967_295, aggregateLength: 28, aggregateLengthV6: 64 },
    announceFrom: { hosts: ['lb1'], hostSelector: { matchLabels: { rack: 'r1' } } },
  };
  const spec = { blocks: ['203.0.113.0/24', '2001:db8:9::/64'], announce: 'bgp', bgp };
  await kube.must('POST', POOLS, { apiVersion, kind: 'AddressPool', metadata: { name: 'routed' }, spec });
  const [object] = parseObject(await kube.must('GET', `${POOLS}/routed`), '').objects;
  t.like(object, { kind: 'AddressPool', announce: 'bgp', bgp: { peers: ['tor-a'], hosts: ['lb1'] } });
  const { problems } = parseObject(
    {
      apiVersion,
      kind: 'AddressPool',
      metadata: { name: 'x' },
      spec: { ...spec, blocks: ['203.0.113.3-203.0.113.9'] },
    },
    '',
  );
  t.regex(
    problems[0]?.message ?? '',
    /bgp\.aggregateLength: 28 is not possible: 203\.0\.113\.3-203\.0\.113\.9 does not consist of whole networks/,
  );
});

test('A pool gets its defaults, and a thousand blocks are not too much to check', async (t) => {
  const blocks = Array.from(
    { length: 1000 },
    (_, at) => `10.${at >> 8}.${at & 255}.1 - 10.${at >> 8}.${at & 255}.254`,
  );
  const body = { apiVersion, kind: 'AddressPool', metadata: { name: 'large' }, spec: { blocks } };
  const { spec } = await kube.must('POST', POOLS, body);
  t.deepEqual(spec, {
    blocks,
    priority: 0,
    auto: true,
    draining: false,
    avoidBuggyIPs: false,
    shareAcrossNamespaces: false,
  });
});

test('Ends of a range of IPv4 may be equal, and those of IPv6 are in any form', async (t) => {
  const blocks = [
    '192.0.2.1-192.0.2.1',
    '192.0.2.250-192.0.3.2',
    '2001:db8::1-2001:DB8:0::ff',
    '::1',
    '192.0.2.9/32',
  ];
  const body = { apiVersion, kind: 'AddressPool', metadata: { name: 'ends' }, spec: { blocks } };
  t.is((await kube.api('POST', POOLS, body)).status, 201);
});

test('Claims are written, replaced under their version, read as they are, and made for one address once', async (t) => {
  const { claimChanges } = allocate({
    pools: [pool('a', ['192.0.2.0/24', '2001:db8::/64'])],
    claims: [],
    requests: [
      request('default/web', { families: ['v4', 'v6'] }),
      request('default/shared', { sharingKey: 'k', ports: tcp(80, 443) }),
    ],
    releaseAfter: 1_000,
    now: Date.parse('2026-03-01T10:00:00.123Z'),
  });
  t.is(claimChanges.length, 3);
  for (const { claim } of claimChanges) await kube.must('POST', CLAIMS, claimManifest(claim));
  const { items } = await kube.must('GET', CLAIMS);
  t.deepEqual(
    items.map((item: object) => readClaim({ apiVersion, kind: 'AddressClaim', ...item })),
    claimChanges.map(({ claim }) => claim),
  );

  const [{ claim } = { claim: undefined }] = claimChanges;
  if (claim === undefined) return;
  const second = await kube.api('POST', CLAIMS, claimManifest({ ...claim, service: 'default/other' }));
  t.is(second.status, 409);
  const { resourceVersion } = items[0].metadata;
  const held = { ...claim, heldUntil: Date.parse('2026-03-01T10:10:00Z') };
  const path = `${CLAIMS}/${claim.name}`;
  const written = await kube.must('PUT', path, claimManifest(held, resourceVersion));
  t.deepEqual(readClaim(written), held);
  t.is((await kube.api('PUT', path, claimManifest(claim, resourceVersion))).status, 409);
  t.is((await kube.api('PUT', path, claimManifest({ ...claim, address: '192.0.2.99' }))).status, 422);
  const last = await kube.must('PUT', path, claimManifest(claim, written.metadata.resourceVersion));
  t.deepEqual(readClaim(last), claim);
});
