// Advertisements that cannot be forged: two agents, their link, and the real keepalived. With KEEPALIVED=PATH of 2.4.2 or newer
// they are authenticated; with an older one everything is as without a key.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava from 'ava';
import { keepalivedProgram } from '../../agent/vips/keepalived/process/process.ts';
import { requires } from '../support/basics/requirements.ts';
import type { TestHost } from '../support/host/agent.ts';
import { webObjects } from '../support/values/service-objects.ts';
import { type Side, startAgentPair } from '../support/vrrp/agent-pair.ts';
import { keepalivedExecutable } from '../support/vrrp/keepalived.ts';
import { SteadyClient } from '../support/vrrp/steady-client.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['keepalived', 'ip', 'nsenter', 'sysctl', 'bash', 'timeout', 'nft'],
});

const VIP = '10.9.3.1';
const PORT = 8080;
/** Some advertisements of `client` have reached the master by then. */
const FORGING_MS = 5_000;

test.serial(
  'A forged advertisement does not end the master, and keys are replaced under traffic',
  async (t) => {
    const { canAuthenticate, version } = await keepalivedProgram(keepalivedExecutable);
    const keys = new Map<TestHost, string>();
    const pair = await startAgentPair(t, VIP, {
      prepare: async (host, network) => {
        const path = join(host.directory, 'vrrp-key');
        keys.set(host, path);
        await writeFile(path, 'a1'.repeat(32), { mode: 0o600 });
        await host.write(
          'web.yaml',
          webObjects({ address: VIP, port: PORT, members: [network.v4('client')] }),
        );
      },
      vrrpKey: (host) => keys.get(host) ?? '',
    });
    const { network, active, standby } = pair;
    const sides = [active, standby];
    const client = new SteadyClient(network, 'client', VIP, PORT);
    if (!canAuthenticate) {
      for (const { host } of sides) {
        const { vrrp } = await host.status();
        t.deepEqual([vrrp?.auth.level, vrrp?.auth.key], ['off', '']);
        t.is(vrrp?.auth.why, `keepalived ${version} cannot: 2.4.2 or newer can`);
        t.notRegex(await host.stateFile('keepalived/keepalived.conf'), /auth_hmac/);
        t.regex((await host.command('check')).stdout, /2\.4\.2 or newer/);
      }
      t.deepEqual((await client.stop()).failures, {});
      return;
    }
    await enforce(sides);
    for (const { host, agent } of sides) {
      t.regex((await host.command('status')).stdout, /Advertisements: +enforced, key [0-9a-f]{8}\n/);
      t.false(agent.text.includes('a1a1a1'), 'No log has a key');
    }

    t.is(await pair.roles(), 'master,backup', 'before the forged ones');
    await forge();
    t.is(await pair.roles(), 'master,backup');
    t.deepEqual(
      (await network.held(standby.name)).filter((each) => each === VIP),
      [],
    );

    // In any order, with any time between the hosts.
    const before = (await active.host.status()).vrrp?.auth.key;
    for (const { host, agent } of [standby, active]) {
      await writeFile(keys.get(host) ?? '', 'b2'.repeat(48), { mode: 0o600 });
      const began = await host.command('vrrp-key', ['--json']);
      if (host === standby.host) {
        t.is(began.status, 1);
        t.regex(began.stdout, /the peer does not have this key yet/);
        await delay(2_000);
      } else t.is(began.status, 0, began.stdout);
      t.false(agent.text.includes('b2b2b2'), 'No log has a key');
    }
    await enforce(sides);
    t.not((await active.host.status()).vrrp?.auth.key, before);
    for (const { host } of sides) t.notRegex(await host.stateFile('keepalived/keepalived.conf'), /a1a1/);
    t.is(await pair.roles(), 'master,backup');
    for (const { host } of sides) {
      const { vrrp, problems } = await host.status();
      t.is(
        vrrp?.instances[0]?.transitions,
        host === active.host ? (vrrp?.instances[0]?.transitions ?? 0) : 1,
      );
      t.deepEqual(
        problems.filter(({ reason }) => reason === 'TwoMasters'),
        [],
      );
    }
    const { answered, failures } = await client.stop();
    t.deepEqual(failures, {});
    t.log(`keepalived ${version}: ${answered} connections, none failed`);

    async function forge(): Promise<void> {
      const config = join(active.host.directory, 'forged.conf');
      await writeFile(
        config,
        `global_defs {
  vrrp_version 3
}
vrrp_instance forged {
  state MASTER
  interface eth0
  virtual_router_id 51
  priority 255
  advert_int 0.5
  unicast_src_ip ${network.v4(standby.name)}
  unicast_ttl 255
  unicast_peer {
    ${network.v4(active.name)}
  }
  virtual_ipaddress {
    10.9.0.1/32 dev lo
  }
}
`,
      );
      await network.run('client', 'ip', 'address', 'add', `${network.v4(standby.name)}/32`, 'dev', 'lo');
      const files = ['-p', join(active.host.directory, 'f.pid'), '-r', join(active.host.directory, 'fv.pid')];
      const child = network.start('client', keepalivedExecutable, '-n', '-G', '-f', config, ...files);
      t.teardown(() => void child.kill('SIGTERM'));
      await delay(FORGING_MS);
    }
  },
);

async function enforce(sides: readonly Side[]): Promise<void> {
  for (const { host } of sides)
    await host.until('it is enforced', async () => {
      const { vrrp } = await host.status();
      if (vrrp?.auth.level !== 'enforce' || vrrp.auth.why !== '') throw new Error(JSON.stringify(vrrp?.auth));
      return true;
    });
}
