// The agent's part with real conntrackds: two hosts over IPv6, and what changes of its files do.

import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { createLog } from '../../../../agent/host/log.ts';
import { ConnectionSync } from '../../../../agent/nftables/conntrackd/connection-sync.ts';
import { conntrackdPaths } from '../../../../agent/nftables/conntrackd/paths.ts';
import type { SyncLink } from '../../../../agent/nftables/conntrackd/sync-link.ts';
import { Deadline } from '../../../support/basics/deadline.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { TestNetwork } from '../../../support/host/namespaces.ts';

const test = requires(ava, { root: true, programs: ['conntrackd', 'ip', 'nft', 'nsenter', 'sysctl'] });

const PATIENCE_MS = 30_000;

for (const family of ['v4', 'v6'] as const)
  test.serial(`Two conntrackds hear each other over IP${family}`, async (t) => {
    const network = await TestNetwork.create(t, ['a', 'b']);
    const link = (own: string, peer: string): SyncLink => ({
      interface: 'eth0',
      address: network[family](own),
      peer: network[family](peer),
      port: 3780,
    });
    const a = await host(t, network.netns('a'), () => link('a', 'b'));
    const b = await host(t, network.netns('b'), () => link('b', 'a'));
    for (const { sync } of [a, b]) await sync.start();
    for (const { sync } of [a, b])
      await until('it hears the peer', async () => sync.status()?.isPeerHeard === true);
    t.is(a.sync.status()?.fault, '');
    t.is(b.sync.status()?.peer, network[family]('a'));
  });

test.serial(
  'Another link, and a file that another process has changed, bring another conntrackd',
  async (t) => {
    const network = await TestNetwork.create(t, ['a', 'b']);
    let port = 3780;
    const { sync, paths } = await host(t, network.netns('a'), () => ({
      interface: 'eth0',
      address: network.v4('a'),
      peer: network.v4('b'),
      port,
    }));
    await sync.start();
    const first = sync.status()?.pid ?? 0;
    sync.configure();
    await delay(0);
    port = 3781;
    sync.configure();
    await until('another runs', async () => ![0, first].includes(sync.status()?.pid ?? 0));
    const second = sync.status()?.pid ?? 0;
    t.regex(await network.run('a', 'ss', '-Hlun'), / 10\.9\.0\.11:3781 /);
    const text = await readFile(paths.config, 'utf8');
    await rm(paths.config);
    sync.configure();
    await until('the file is there again', async () => (await readFile(paths.config, 'utf8')) === text);
    await until('another runs', async () => ![0, second].includes(sync.status()?.pid ?? 0));
  },
);

test.serial(
  'A link that is not on the host is a fault until it is there, and stop() leaves nothing',
  async (t) => {
    const network = await TestNetwork.create(t, ['a', 'b']);
    await network.run('a', 'sysctl', '-qw', 'net.ipv4.ip_nonlocal_bind=0');
    const { sync } = await host(t, network.netns('a'), () => ({
      interface: 'eth0',
      address: '10.9.7.7',
      peer: network.v4('b'),
      port: 3780,
    }));
    await sync.start();
    t.regex(
      sync.status()?.fault ?? '',
      /^Connections are not synchronised: conntrackd ended with exit status 1; /,
    );
    await network.run('a', 'ip', 'address', 'add', '10.9.7.7/16', 'dev', 'eth0');
    await until('it runs', async () => sync.status()?.fault === '');
    await sync.close();
    await sync.stop();
    t.is(await network.run('a', 'nft', 'list', 'tables'), '');
    t.is(await network.run('a', 'ss', '-Hlun'), '');
  },
);

async function host(t: ExecutionContext, netns: string, link: () => SyncLink) {
  const folder = await mkdtemp(join(tmpdir(), 'hg-sync-'));
  const [stateDir, runtimeDir] = [join(folder, 's'), join(folder, 'r')];
  for (const each of [stateDir, runtimeDir]) await mkdir(each);
  const settings = {
    ...{ stateDir, runtimeDir, netns, nft: 'nft', conntrackd: 'conntrackd' },
    conntrackdSupervisor: 'agent' as const,
  };
  const sync = new ConnectionSync({ settings, link, log: createLog({ level: 'error' }) });
  t.teardown(async () => {
    await sync.close();
    await sync.stop();
    await rm(folder, { recursive: true });
  });
  return { sync, paths: conntrackdPaths(stateDir, runtimeDir) };
}

async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  for (const deadline = new Deadline(PATIENCE_MS, 30); ; await delay(10)) {
    if (await condition().catch(() => false)) return;
    if (deadline.isOver) throw new Error(`Not within ${PATIENCE_MS} ms: ${what}`);
  }
}
