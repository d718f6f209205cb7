// Addresses of pools on a host without a cluster that could keep the claims: pools of the settings, Services of a folder,
// a real HAProxy.

import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { type RunningAgent, TestHost } from '../support/host/agent.ts';
import { removeFolder } from '../support/host/remove-folder.ts';
import { type Json, VIP_PORT, type Web, webObjects } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true });

const unnamed = { loadBalancerIP: undefined };

/** A host with a settings file, and one Service per file that names no address. */
class PoolHost {
  readonly host: TestHost;
  readonly settings: string;

  static async create(t: ExecutionContext, pools: (host: TestHost) => object[], more: object = {}) {
    const host = await TestHost.create(t);
    const settings = join(host.directory, 'headgate.yaml');
    await writeFile(settings, JSON.stringify({ pools: pools(host), ...more }));
    return new PoolHost(host, settings);
  }

  private constructor(host: TestHost, settings: string) {
    this.host = host;
    this.settings = settings;
  }

  start(): Promise<RunningAgent> {
    return this.host.start(['--config', this.settings]);
  }

  serve(name: string, more: Partial<Web> = {}): Promise<void> {
    const web = { name, address: '', members: [this.host.address(11)], ...more };
    return this.host.write(`${name}.yaml`, webObjects({ ...web, spec: { ...unnamed, ...web.spec } }));
  }

  async addresses(name: string): Promise<readonly string[]> {
    return (await this.host.why(`default/${name}`)).addresses;
  }

  /** Waits for it to be bound. */
  async served(name: string): Promise<string> {
    let address = '';
    await this.host.until(`${name} is served`, async () => {
      [address = ''] = await this.addresses(name);
      return address !== '' && (await this.host.config()).includes(`${address}:${VIP_PORT}`);
    });
    return address;
  }

  async claims(): Promise<readonly Json[]> {
    const text = await readFile(join(this.host.stateDir, 'addresses', 'claims.json'), 'utf8');
    return JSON.parse(text).items.map(({ spec }: { spec: Json }) => spec);
  }

  async rendered(): Promise<string> {
    const output = join(this.host.directory, 'rendered');
    const { status, stderr } = await this.host.command('render', [
      '--config',
      this.settings,
      '--output',
      output,
    ]);
    if (status !== 0) throw new Error(stderr);
    return readFile(join(output, 'haproxy', 'haproxy.cfg'), 'utf8');
  }
}

const range = (host: TestHost) => [{ name: 'local', blocks: [`${host.address(100)}-${host.address(109)}`] }];

test.serial(
  'A Service without an address gets one of the pool, and keeps it through all faults',
  async (t) => {
    const pools = await PoolHost.create(t, range);
    const { host } = pools;
    await pools.serve('web');
    await pools.serve('shop');
    // `render` before any agent has run says what the agent will do.
    const before = await pools.rendered();
    const agent = await pools.start();
    const address = await pools.served('web');
    t.regex(address, new RegExp(`^${host.address(10).slice(0, -2)}10\\d$`));
    t.not(await pools.served('shop'), address);
    t.is(await host.config(), before);
    t.is(await pools.rendered(), before);
    t.is((await host.why()).verdict, 'served');
    const status = await host.status();
    t.like(status.addresses, { home: 'file', leading: true, unkept: 0, fault: '' });
    t.deepEqual(status.addresses.pools, [
      { name: 'local', family: 'v4', total: '10', free: '8', used: '2', held: '0', conflicting: '0' },
    ]);
    const metric = await agent.metrics();
    t.is(metric('headgate_address_pool_addresses', { pool: 'local', state: 'used' }), 2);

    // Gone and back: the same address, although others have come meanwhile.
    await host.remove('web.yaml');
    await host.until('it is kept', async () =>
      (await pools.claims()).some(
        ({ service, heldUntil }) => service === 'default/web' && heldUntil !== undefined,
      ),
    );
    for (const name of ['a', 'b', 'c', 'd', 'e']) await pools.serve(name);
    for (const name of ['a', 'b', 'c', 'd', 'e']) t.not(await pools.served(name), address);
    await pools.serve('web');
    t.is(await pools.served('web'), address);

    // A restart after the pool was removed from the settings: no Service moves.
    await agent.stop();
    await writeFile(pools.settings, '{}');
    await pools.start();
    t.is(await pools.served('web'), address);
    t.true((await host.why()).problems.some(({ reason }) => reason === 'AddressOutOfPool'));
  },
);

test.serial(
  'Claims are written again after the state folder is removed, and the next agent has them',
  async (t) => {
    const pools = await PoolHost.create(t, range, { releaseAfter: '0' });
    const { host } = pools;
    for (const name of ['a', 'b', 'c']) await pools.serve(name);
    const agent = await pools.start();
    const address = await pools.served('c');
    // Its place is free for a new choice.
    await host.remove('a.yaml');
    await host.until('it is let go', async () => (await pools.claims()).length === 2);
    const claims = await pools.claims();
    await removeFolder(host.stateDir);
    await host.soon('they are kept again', async () => (await pools.claims().catch(() => [])).length > 0);
    t.deepEqual(await pools.claims(), claims);
    const said = 'Another process has changed the claims file: written again';
    await host.until('it is told', async () => agent.hasLogged(said));
    t.is((await host.status()).addresses.fault, '');
    await agent.kill();
    await pools.start();
    t.is(await pools.served('c'), address);
    t.deepEqual(await pools.claims(), claims);
  },
);

test.serial('A damaged claims file loses only its unreadable claims, and is set aside', async (t) => {
  const pools = await PoolHost.create(t, range);
  const { host } = pools;
  for (const name of ['a', 'b', 'c']) await pools.serve(name);
  const agent = await pools.start();
  const addresses = new Map<string, string>();
  for (const name of ['a', 'b', 'c']) addresses.set(name, await pools.served(name));
  await host.until('all is kept', async () => (await host.status()).addresses.unkept === 0);
  await agent.stop();
  const path = join(host.stateDir, 'addresses', 'claims.json');
  const text = await readFile(path, 'utf8');
  const damaged = text.slice(0, text.lastIndexOf('"address"'));
  await writeFile(path, damaged);
  // Without the pool no Service can get a new address.
  await writeFile(pools.settings, '{}');
  const next = await pools.start();
  const spared = JSON.parse(text)
    .items.slice(0, 2)
    .map(({ spec }: { spec: Json }) => spec.address);
  for (const [name, address] of addresses) {
    if (spared.includes(address)) t.is(await pools.served(name), address);
    else t.deepEqual(await pools.addresses(name), []);
  }
  t.is(await readFile(`${path}.damaged`, 'utf8'), damaged);
  t.true(next.hasLogged('is damaged, and set aside'));
});

test.serial('An address outside all pools that a manifest names is served', async (t) => {
  const pools = await PoolHost.create(t, range);
  const { host } = pools;
  await host.serve({ name: 'own', address: host.address(1) });
  await host.serve({ name: 'asked', address: host.address(105) });
  await host.serve({ name: 'asked-too', address: host.address(105) });
  await pools.start();
  t.is(await pools.served('own'), host.address(1));
  t.is(await pools.served('asked'), host.address(105));
  const { verdict, problems } = await host.why('default/asked-too');
  t.is(verdict, 'not served');
  t.deepEqual(
    problems.map(({ reason, message }) => [reason, message]),
    [
      [
        'AddressInUse',
        `Cannot give ${host.address(105)}: Service "default/asked" has it; to share it, give both the same annotation "headgate.io/address-sharing-key"`,
      ],
    ],
  );
});

test.serial('Pools of the settings are read again at SIGHUP', async (t) => {
  const pools = await PoolHost.create(t, () => []);
  const { host } = pools;
  await pools.serve('web');
  const agent = await pools.start();
  t.deepEqual(await pools.addresses('web'), []);
  t.true((await host.why()).problems.some(({ reason }) => reason === 'AddressPending'));
  await writeFile(pools.settings, JSON.stringify({ pools: range(host) }));
  agent.signal('SIGHUP');
  const address = await pools.served('web');
  await host.until('the claim is kept', async () => (await pools.claims()).length === 1);
  t.is((await pools.claims())[0]?.address, address);
});

test.serial(
  'Services with one key share an address by their ports; a taken port is refused alone',
  async (t) => {
    const pools = await PoolHost.create(t, (host) => [{ name: 'machine', blocks: [host.address(100)] }], {
      defaults: { 'address-sharing-key': 'machine' },
    });
    const { host } = pools;
    const created = (hour: number) => `2026-01-01T0${hour}:00:00Z`;
    const port = (number: number) => ({ name: `p${number}`, port: number, protocol: 'TCP' });
    await pools.serve('a', { created: created(1) });
    await pools.serve('b', { created: created(2), port: VIP_PORT + 1 });
    await pools.start();
    t.is(await pools.served('a'), host.address(100));
    await host.until('b has its port', async () =>
      (await host.config()).includes(`${host.address(100)}:${VIP_PORT + 1}`),
    );
    // A port that is added later and is taken.
    await pools.serve('b', { created: created(2), spec: { ports: [port(VIP_PORT + 1), port(VIP_PORT)] } });
    await host.until('it is refused', async () => (await host.why('default/b')).problems.length > 0);
    const { problems } = await host.why('default/b');
    t.deepEqual(
      problems.filter(({ reason }) => reason === 'AddressInUse').map(({ message }) => message),
      [`Cannot have ${host.address(100)} TCP port ${VIP_PORT}: Service "default/a" has it`],
    );
  },
);

test.serial(
  'The program gets each address after its claim is stored, again after a failure, and its release',
  async (t) => {
    const pools = await PoolHost.create(t, range, { releaseAfter: 0 });
    const { host } = pools;
    const [told, mark, program] = ['told', 'fails', 'program'].map((name) => join(host.directory, name)) as [
      string,
      string,
      string,
    ];
    await writeFile(mark, '');
    await writeFile(
      program,
      `#!/bin/sh\ncat >>${told}\nif [ -e ${mark} ]; then echo no port left >&2; exit 3; fi\n`,
    );
    await chmod(program, 0o755);
    await writeFile(
      pools.settings,
      JSON.stringify({ pools: range(host), provisioner: program, releaseAfter: 0 }),
    );
    const lines = async () =>
      (await readFile(told, 'utf8').catch(() => ''))
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Json);
    await pools.serve('web');
    const agent = await pools.start();
    const address = await pools.served('web');
    const request = { address, pool: 'local', service: 'default/web', ports: [], others: [] };
    await host.until('it failed', async () =>
      (await host.why()).problems.some(({ reason }) => reason === 'ProvisionerFailed'),
    );
    t.deepEqual((await lines())[0], { action: 'assign', ...request });
    t.regex((await host.why()).problems[0]?.message ?? '', /failed with status 3: "no port left"$/);
    t.is((await agent.metrics())('headgate_provisioner_pending'), 1);
    await rm(mark);
    await host.until('it is done', async () => (await agent.metrics())('headgate_provisioner_pending') === 0);
    t.deepEqual((await host.why()).problems, []);
    const calls = await lines();
    t.true(calls.length > 1 && calls.every(({ action }) => action === 'assign'));
    await host.remove('web.yaml');
    await host.until('it is released', async () => (await lines()).length > calls.length);
    t.deepEqual((await lines()).at(-1), { action: 'release', ...request });
    // It is counted when the program has ended, a moment after it wrote.
    const done = { action: 'release', result: 'done' };
    await host.until(
      'the release is counted',
      async () => (await agent.metrics())('headgate_provisioner_calls_total', done) === 1,
    );
  },
);
