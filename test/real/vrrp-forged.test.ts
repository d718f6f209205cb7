// Forged advertisements: the host `client` sends some in the name of the standby.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { keepalivedExecutable } from '../support/vrrp/keepalived.ts';
import { ANCHOR, type Pair, startPair, until, vips } from '../support/vrrp/vrrp-pair.ts';

const test = requires(ava, { root: true, programs: ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl'] });

/** Some advertisements of `client` have reached b by then. */
const FORGING_MS = 5_000;

/** Sends advertisements with the address of a, which the master must obey if it takes them. */
async function forge(t: ExecutionContext<unknown>, { network }: Pair, ttl: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-forged-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const config = join(folder, 'keepalived.conf');
  await writeFile(
    config,
    `global_defs {
  vrrp_version 3
}
vrrp_instance forged {
  state MASTER
  interface eth0
  virtual_router_id 51
  priority 254
  advert_int 0.5
  unicast_src_ip ${network.v4('a')}
  unicast_ttl ${ttl}
  unicast_peer {
    ${network.v4('b')}
  }
  virtual_ipaddress {
    ${ANCHOR}/32 dev eth0
  }
}
`,
  );
  await network.run('client', 'ip', 'address', 'add', `${network.v4('a')}/32`, 'dev', 'lo');
  const files = ['-f', config, '-p', join(folder, 'pid'), '-r', join(folder, 'vrrp-pid')];
  const child = network.start('client', keepalivedExecutable, '-n', '-G', ...files);
  t.teardown(() => void child.kill('SIGTERM'));
}

test.serial('A master ignores advertisements that have passed a router', async (t) => {
  const pair = await startPair(t, vips(0, 3));
  const { b } = pair;
  await forge(t, pair, 254);
  await delay(FORGING_MS);
  t.is((await b.ask()).state, 'master');
  t.is((await b.held()).length, 5);
});

test.serial(
  'A master obeys forged advertisements of its own network, unless a rule checks the MAC address',
  async (t) => {
    const pair = await startPair(t, vips(0, 3));
    const { network, a, b } = pair;
    const [, mac] = /link\/ether (\S+)/.exec(await network.run('a', 'ip', 'link', 'show', 'eth0')) ?? [];
    // As docs/security.md has it.
    const rules = `table inet vrrp {
    chain input {
      type filter hook input priority filter;
      ip protocol 112 ether saddr != ${mac} drop
      ip6 nexthdr 112 ether saddr != ${mac} drop
      ip6 nexthdr 112 ip6 hoplimit != 255 drop
    }
  }`;
    await network.run('b', 'nft', rules);
    await forge(t, pair, 255);
    await delay(FORGING_MS);
    t.is((await b.ask()).state, 'master');
    t.is((await b.held()).length, 5);
    await network.run('b', 'nft', 'delete', 'table', 'inet', 'vrrp');
    await until('b gives way', async () => b.state() === 'backup', pair);
    t.not(a.state(), 'unknown');
  },
);
