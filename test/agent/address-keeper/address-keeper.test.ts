import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { ClaimHome } from '../../../agent/address-keeper/kept-claims.ts';
import { AddressKeeper, type AddressSettings, CLAIM_FILE } from '../../../agent/address-keeper.ts';
import { claimManifest } from '../../../agent/kubernetes/address-objects.ts';
import { Cluster } from '../../../agent/kubernetes/cluster.ts';
import type { KubernetesObject } from '../../../agent/kubernetes/objects.ts';
import { claim, pool } from '../../support/address-requests.ts';
import { FakeApi } from '../../support/fake-api.ts';
import { until } from '../../support/kube-objects.ts';
import { parsedObject, serviceJson } from '../../support/kubernetes-json.ts';
import { silentLog } from '../../support/silent-log.ts';
import { SETTINGS } from '../../support/translated.ts';

const TRANSLATING = { ...SETTINGS, handleUnclassed: true };
const CLAIMS = '/apis/headgate.io/v1alpha1/addressclaims';

interface Keeper {
  readonly keeper: AddressKeeper;
  readonly cluster: Cluster;
  readonly api: FakeApi;
  /** May be moved by the test. */
  readonly place: { home: ClaimHome; leads: boolean };
  /** What the keeper told of by itself, not by the answer of assign(). */
  readonly told: string[];
  readonly kept: string[];
  readonly stateDir: string;
  /** Puts Services into the cluster and gives what assign() answers, or tells later where the machine was slow. */
  serve(...services: KubernetesObject[]): Promise<ReadonlySet<string>>;
  remove(name: string): Promise<ReadonlySet<string>>;
  addressesOf(key: string): readonly string[] | undefined;
  claimsInFile(): Promise<readonly string[]>;
}

/** Not started yet. */
async function keeperFor(
  t: ExecutionContext,
  { settings = {}, inCluster = false }: { settings?: Partial<AddressSettings>; inCluster?: boolean } = {},
): Promise<Keeper> {
  const stateDir = await mkdtemp(join(tmpdir(), 'headgate-keeper-'));
  const cluster = new Cluster();
  const api = new FakeApi();
  const place = { home: (inCluster ? 'cluster' : 'file') as ClaimHome, leads: true };
  const told: string[] = [];
  const kept: string[] = [];
  const keeper = new AddressKeeper({
    cluster,
    settings: {
      pools: [pool('a', ['192.0.2.0/24'])],
      releaseAfter: 600_000,
      provisioner: '',
      stateDir,
      ...settings,
    },
    translating: TRANSLATING,
    api: inCluster ? api : undefined,
    home: () => place.home,
    isLeader: () => place.leads,
    mayClaim: async () => true,
    onChanged: (keys) => told.push(...keys),
    onKept: (key) => kept.push(key),
    onProblems: () => undefined,
    log: silentLog(),
    metrics: { claimWritten: () => undefined, provisioned: () => undefined },
  });
  t.teardown(async () => {
    await keeper.close();
    await rm(stateDir, { recursive: true, force: true });
  });
  const source = inCluster ? 'api' : 'manifests';
  const assigned = async (change: Parameters<Cluster['apply']>[0]): Promise<ReadonlySet<string>> => {
    const before = told.length;
    const { keys } = cluster.apply(change, source);
    const answer = keeper.assign(keys);
    // What takes longer than a slice is told, not answered.
    const isDecided = () => [...keys].every((key) => answer.has(key) || told.indexOf(key, before) >= 0);
    for (let turns = 0; turns < 100 && !isDecided(); turns++) await turn();
    return new Set([...answer, ...told.slice(before)]);
  };
  return {
    keeper,
    cluster,
    api,
    place,
    told,
    kept,
    stateDir,
    serve: (...services) => assigned({ upserted: services, removed: [] }),
    remove: (name) => assigned({ upserted: [], removed: [{ kind: 'Service', key: `default/${name}` }] }),
    addressesOf: (key) => keeper.ofPools(key)?.addresses.map(({ address }) => address),
    claimsInFile: async () => {
      const { items } = JSON.parse(await readFile(join(stateDir, ...CLAIM_FILE), 'utf8'));
      return items.map(
        ({ spec }: { spec: { service: string; address: string } }) => `${spec.service} ${spec.address}`,
      );
    },
  };
}

const service = (name: string, uid = '') =>
  parsedObject(serviceJson(name, { metadata: uid === '' ? {} : { uid } }));

test('assign() gives an address at once, and tells of it only when its claim is kept', async (t) => {
  const { keeper, serve, addressesOf, kept, claimsInFile } = await keeperFor(t);
  await keeper.start();
  t.deepEqual([...(await serve(service('web')))], ['default/web']);
  const [address] = addressesOf('default/web') ?? [];
  t.regex(address ?? '', /^192\.0\.2\.\d+$/);
  t.false(keeper.isKept('default/web'));
  await until('the claim is kept', () => keeper.isKept('default/web'));
  t.deepEqual(kept, ['default/web']);
  t.deepEqual(await claimsInFile(), [`default/web ${address}`]);
  t.like(keeper.status(), { home: 'file', leading: true, unkept: 0, fault: '' });
  t.like(keeper.status().pools[0], { name: 'a', family: 'v4', used: 1 });
});

test('The same Service again is not looked at', async (t) => {
  const { keeper, serve } = await keeperFor(t);
  await keeper.start();
  const web = service('web');
  t.is((await serve(web)).size, 1);
  t.is(keeper.assign(['default/web']).size, 0);
});

test('The address of a Service that is gone is held, and the Service gets it back', async (t) => {
  const { keeper, serve, remove, addressesOf } = await keeperFor(t);
  await keeper.start();
  await serve(service('web'));
  const before = addressesOf('default/web');
  await remove('web');
  t.like(keeper.status().pools[0], { used: 0, held: 1 });
  await serve(service('web'));
  t.deepEqual(addressesOf('default/web'), before);
});

test('A hold ends by itself after releaseAfter', async (t) => {
  const { keeper, serve, remove, claimsInFile } = await keeperFor(t, { settings: { releaseAfter: 30 } });
  await keeper.start();
  await serve(service('web'));
  await until('the claim is kept', () => keeper.isKept('default/web'));
  await remove('web');
  await until('nothing is held', () => keeper.status().pools[0]?.held === 0);
  await until('the file has forgotten it', async () => (await claimsInFile()).length === 0);
  t.is(keeper.status().pools[0]?.free, keeper.status().pools[0]?.total);
});

test('A started keeper has what the file of claims says, whatever the names would give', async (t) => {
  const { keeper, cluster, addressesOf, stateDir } = await keeperFor(t);
  await mkdir(join(stateDir, 'addresses'));
  const items = [claimManifest(claim('192-0-2-77', { address: '192.0.2.77', service: 'default/web' }))];
  await writeFile(join(stateDir, ...CLAIM_FILE), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  cluster.apply({ upserted: [service('web')], removed: [] }, 'manifests');
  await keeper.start();
  t.deepEqual(addressesOf('default/web'), ['192.0.2.77']);
});

test('While thousands of addresses are given, everything else gets its turn, and assign() answers later', async (t) => {
  const { keeper, cluster, told, addressesOf } = await keeperFor(t, {
    settings: { pools: [pool('a', ['10.0.0.0/16'])] },
  });
  const many = Array.from({ length: 5_000 }, (_, at) => service(`many-${at}`));
  cluster.apply({ upserted: many, removed: [] }, 'manifests');
  let turns = 0;
  let isOver = false;
  const started = keeper.start().then(() => {
    isOver = true;
  });
  await until('it is at work', () => keeper.status().pools[0]?.used !== 0);
  t.false(isOver);
  // One that comes meanwhile is not forgotten.
  t.is(keeper.assign(cluster.apply({ upserted: [service('late')], removed: [] }, 'manifests').keys).size, 0);
  while (!isOver) {
    await turn();
    turns++;
  }
  await started;
  t.true(turns > 10, `${turns} turns`);
  await until('the late one has its address', () => told.includes('default/late'));
  t.is(addressesOf('default/late')?.length, 1);
  t.is(keeper.status().pools[0]?.used, 5_001);
});

test('A host that does not lead gives nothing, follows the claims it sees, and goes on once it leads', async (t) => {
  const { keeper, cluster, place, api, serve, addressesOf, told } = await keeperFor(t, { inCluster: true });
  place.leads = false;
  await keeper.start();
  await serve(service('web', 'u-web'), service('shop', 'u-shop'));
  t.deepEqual(addressesOf('default/web') ?? [], []);
  t.deepEqual(api.requests, []);

  const theirs = claim('192-0-2-9', { address: '192.0.2.9', service: 'default/web', serviceUID: 'u-web' });
  const stored = parsedObject({
    ...claimManifest(theirs),
    metadata: { name: theirs.name, uid: 'c', resourceVersion: '7' },
  });
  keeper.take(cluster.apply({ upserted: [stored], removed: [] }, 'api'));
  await until('it is followed', () => addressesOf('default/web')?.length === 1);
  t.true(told.includes('default/web'));
  t.deepEqual(addressesOf('default/web'), ['192.0.2.9']);

  place.leads = true;
  keeper.take();
  await until('the other one has an address', () => api.objects.size === 1);
  t.deepEqual(addressesOf('default/web'), ['192.0.2.9']);
  t.is(addressesOf('default/shop')?.length, 1);
  t.true([...api.objects.keys()][0]?.startsWith(`${CLAIMS}/`));
});

test('Where nobody knows where claims belong, nothing is given and what is published is served', async (t) => {
  const { keeper, place, serve, addressesOf, api } = await keeperFor(t, { inCluster: true });
  place.home = 'unknown';
  await keeper.start();
  const published = parsedObject({
    ...serviceJson('web', { metadata: { uid: 'u' } }),
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.30' }] } },
  });
  await serve(published, service('new', 'n'));
  t.deepEqual(addressesOf('default/web'), ['192.0.2.30']);
  t.deepEqual(addressesOf('default/new') ?? [], []);
  t.deepEqual(api.requests, []);
});

test('A claim that somebody has removed is made again by who leads', async (t) => {
  const { keeper, cluster, api, serve, addressesOf } = await keeperFor(t, { inCluster: true });
  await keeper.start();
  await serve(service('web', 'u'));
  await until('the claim is kept', () => keeper.isKept('default/web'));
  const before = addressesOf('default/web');
  const [path = ''] = api.objects.keys();
  const object = parsedObject({
    ...api.objects.get(path),
    metadata: { ...api.objects.get(path).metadata, uid: 'c' },
  });
  keeper.take(cluster.apply({ upserted: [object], removed: [] }, 'api'));
  api.objects.clear();
  keeper.take(
    cluster.apply(
      { upserted: [], removed: [{ kind: 'AddressClaim', key: path.split('/').at(-1) ?? '' }] },
      'api',
    ),
  );
  await until('the claim is there again', () => api.objects.has(path));
  t.deepEqual(addressesOf('default/web'), before);
});

test('configure() gives addresses of a pool that is new to those who wait', async (t) => {
  const { keeper, serve, addressesOf, told, stateDir } = await keeperFor(t, {
    settings: { pools: [pool('a', ['192.0.2.1/32'])] },
  });
  await keeper.start();
  await serve(service('first'), service('second'));
  const waiting = ['default/first', 'default/second'].filter((key) => addressesOf(key)?.length === 0);
  t.is(waiting.length, 1);
  const before = told.length;
  keeper.configure(
    {
      pools: [pool('a', ['192.0.2.1/32']), pool('b', ['192.0.2.2/32'])],
      releaseAfter: 1_000,
      provisioner: '',
      stateDir,
    },
    TRANSLATING,
  );
  await until('it is told', () => told.includes(waiting[0] ?? '', before));
  t.deepEqual(addressesOf(waiting[0] ?? ''), ['192.0.2.2']);
});
