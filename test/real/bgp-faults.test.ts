// Faults of three hosts that announce by BGP, one after the other in one world: whole agents with the real BIRD and HAProxy, a
// router, and a client that opens a connection every 10 ms.

import { readFile, rm } from 'node:fs/promises';
import ava, { type ExecutionContext } from 'ava';
import { birdPaths } from '../../agent/vips/bird/paths.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import { NewConnections, type NewCount } from '../support/bgp/new-connections.ts';
import type { TestHost } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { VIP_PORT, webObjects } from '../support/values/service-objects.ts';
import { order } from '../support/vrrp/agent-pair.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'ip', 'nft', 'nsenter', 'openssl', 'ss', 'sysctl'],
});

const VIP = '198.51.100.1';
const ALL = ['a', 'b', 'c'] as const;
/** Three intervals of BFD of 300 ms, and the kernel of the router. A busy machine is later. */
const BFD_MS = 2_000;

let world: BgpWorld;
const undos: (() => unknown)[] = [];

const web = (host: TestHost, network: TestNetwork) =>
  host.write('web.yaml', webObjects({ address: VIP, members: [network.v4('client')] }));

test.before(async (t) => {
  const context = {
    teardown: (undo: () => unknown) => undos.push(undo),
    timeout: (milliseconds: number) => t.timeout(milliseconds),
  };
  world = await BgpWorld.create(context as never, { hosts: ALL, group: true, later: ['c'], prepare: web });
});

test.after.always(async () => {
  for (const undo of undos.reverse()) await undo();
});

/** The connections that a client opens during work that begins with all hosts at work. */
async function during(
  t: ExecutionContext<unknown>,
  hosts: readonly string[],
  work: () => Promise<void>,
): Promise<NewCount> {
  t.timeout(120_000);
  await world.leadsTo(VIP, ...hosts);
  const client = await NewConnections.open(world.network, VIP, VIP_PORT);
  await work();
  const count = await client.stop();
  t.log(JSON.stringify(count));
  t.true(count.answered > 10, String(count.answered));
  return count;
}

test.serial('A host that joins fails no connection', async (t) => {
  const { failures } = await during(t, ['a', 'b'], async () => {
    await world.join('c');
    await world.leadsTo(VIP, ...ALL);
  });
  t.deepEqual(failures, {});
});

test.serial(
  'A host that loses its power fails connections for the time of BFD, and none when it is back',
  async (t) => {
    const lost = await during(t, ALL, async () => {
      await world.fail('c');
      await world.leadsTo(VIP, 'a', 'b');
    });
    t.true(lost.outageMs < BFD_MS, String(lost.outageMs));
    const back = await during(t, ['a', 'b'], async () => {
      await world.recover('c');
      await world.leadsTo(VIP, ...ALL);
    });
    t.deepEqual(back.failures, {});
  },
);

test.serial(
  'A host whose BFD is lost is left out, and gets traffic within 5 s once BFD is back',
  async (t) => {
    const { network } = world;
    const { failures } = await during(t, ALL, async () => {
      await network.run(
        'c',
        'nft',
        `table inet cut {
          chain in { type filter hook input priority 0; iifname eth0 udp dport 3784 drop; }
        }`,
      );
      await world.leadsTo(VIP, 'a', 'b');
      await network.run('c', 'nft', 'delete', 'table', 'inet', 'cut');
      const began = performance.now();
      await until('it is back', async () => (await world.router.hopsOf(VIP)).length === 3);
      const tookMs = performance.now() - began;
      t.log(`back after ${Math.round(tookMs)} ms`);
      t.true(tookMs < 5_000, String(tookMs));
    });
    t.deepEqual(failures, {});
  },
);

test.serial('A BIRD that is killed fails no connection, one that hangs is left out and named', async (t) => {
  const { failures } = await during(t, ALL, async () => {
    process.kill((await world.host('c').bgp()).pid, 'SIGKILL');
    await until('it is left out', async () => (await world.router.hopsOf(VIP)).length === 2);
    await world.leadsTo(VIP, ...ALL);
  });
  t.deepEqual(failures, {});
  const { pid } = await world.host('c').bgp();
  const hung = await during(t, ALL, async () => {
    process.kill(pid, 'SIGSTOP');
    await world.leadsTo(VIP, 'a', 'b');
    let seen = '';
    await until(
      'the host says so',
      async () => {
        const status = await world.host('c').host.status();
        seen = JSON.stringify([status.problems, status.bgp]);
        return status.problems.some(({ reason }) => /^Bgp/.test(reason));
      },
      { seen: () => seen, seconds: 15 },
    );
    process.kill(pid, 'SIGCONT');
    await world.leadsTo(VIP, ...ALL);
  });
  t.deepEqual(hung.failures, {}, 'HAProxy of that host serves all the time');
});

test.serial(
  'An agent that is killed fails no connection, and its HAProxy that is killed only for a moment',
  async (t) => {
    const c = world.host('c');
    const { failures } = await during(t, ALL, async () => {
      await c.agent.kill();
      c.agent = await c.host.start();
      await world.leadsTo(VIP, ...ALL);
    });
    t.deepEqual(failures, {});
    const killed = await during(t, ALL, async () => {
      await c.host.killHaproxy(await c.host.worker());
      await until('HAProxy serves again', () =>
        c.host.worker().then(
          () => true,
          () => false,
        ),
      );
      await world.leadsTo(VIP, ...ALL);
    });
    t.true(killed.outageMs < BFD_MS, JSON.stringify(killed));
  },
);

test.serial('Hosts that are upgraded and started again one after the other fail no connection', async (t) => {
  const { failures } = await during(t, ALL, async () => {
    for (const name of ALL) {
      t.like(await order(world.host(name).host, 'maintenance', 'on'), { ok: true });
      await world.fail(name);
      await world.recover(name);
      await world.leadsTo(VIP, ...ALL.filter((each) => each !== name));
      // No session is established yet.
      t.like(await order(world.host(name).host, 'maintenance', 'off'), { ok: true, active: 'this host' });
      await world.leadsTo(VIP, ...ALL);
    }
  });
  t.deepEqual(failures, {});
});

test.serial('A router that starts again has all VIPs within seconds', async (t) => {
  await world.leadsTo(VIP, ...ALL);
  await world.router.stop('SIGKILL');
  await world.router.start();
  const began = performance.now();
  await until('all hosts are back', async () => (await world.router.hopsOf(VIP)).length === 3);
  t.log(`${Math.round(performance.now() - began)} ms`);
  t.true(performance.now() - began < 10_000);
  await world.leadsTo(VIP, ...ALL);
});

test.serial(
  'A host whose files of BIRD are all removed has them again, and takes further VIPs',
  async (t) => {
    const c = world.host('c');
    const { failures } = await during(t, ALL, async () => {
      const { directory } = birdPaths(c.host.runtimeDir);
      await rm(directory, { recursive: true });
      await until('the files are there again', async () => {
        const { pid, sessions } = await c.bgp();
        return pid > 0 && sessions[0]?.state === 'Established' && (await c.bgp()).fault === '';
      });
      await c.host.write(
        'other.yaml',
        webObjects({ name: 'other', address: '198.51.100.2', members: [world.network.v4('client')] }),
      );
      await world.leadsTo('198.51.100.2', 'c');
      await c.host.remove('other.yaml');
      await world.leadsTo('198.51.100.2');
      await world.leadsTo(VIP, ...ALL);
    });
    t.deepEqual(failures, {});
  },
);

test.serial(
  'A BIRD whose files are all removed while no agent runs is followed by one that has the session',
  async (t) => {
    const c = world.host('c');
    const before = (await c.bgp()).pid;
    const { failures } = await during(t, ALL, async () => {
      await c.agent.kill();
      await rm(birdPaths(c.host.runtimeDir).directory, { recursive: true });
      c.agent = await c.host.start();
      await until('another BIRD has the session', async () => {
        const { pid, sessions } = await c.bgp();
        return pid > 0 && pid !== before && sessions[0]?.state === 'Established';
      });
      await world.leadsTo(VIP, ...ALL);
    });
    t.deepEqual(failures, {});
    t.is(await readFile(`/proc/${before}/cmdline`, 'utf8').catch(() => ''), '', 'there is one BIRD');
  },
);
