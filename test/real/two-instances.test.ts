// Two load balancers on one host, each with an agent, a HAProxy and a keepalived in its own network namespace.

import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { type RunningAgent, TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { MEMBER_PORT, VIP_PORT, webObjects } from '../support/values/service-objects.ts';
import { keepalivedFlags } from '../support/vrrp/keepalived.ts';

const programs = ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl'];
const test = requires(ava, { haproxy: true, root: true, programs });

/** Milliseconds for the start of both on a busy machine. */
const PATIENCE = 60_000;

interface Instance {
  readonly name: string;
  readonly host: TestHost;
  readonly agent: RunningAgent;
  readonly vip: string;
  readonly virtualRouter: string;
}

test.serial('Two instances of one host serve at the same time without an effect on each other', async (t) => {
  const network = await TestNetwork.create(t, ['blue', 'green', 'client', 'member']);
  network.serve('member', MEMBER_PORT);
  const blue = await startInstance(t, network, 'blue', 51);
  const green = await startInstance(t, network, 'green', 52);
  for (const { name, host, vip, virtualRouter } of [blue, green]) {
    await host.until(
      'it is served',
      async () => (await network.whoServes(vip, VIP_PORT)) === 'member',
      PATIENCE,
    );
    t.deepEqual([...(await network.held(name))].sort(), [anchorOf(virtualRouter), vip].sort());
    const { vrrp, fault } = await host.status();
    t.deepEqual(
      vrrp?.instances.map((each) => [each.name, each.state]),
      [[virtualRouter, 'master']],
    );
    t.is(fault, '');
    const { stdout } = await host.command('check');
    t.regex(stdout, /virtual router \d+: no other keepalived of this host has it/);
  }

  const { pid, instances } = (await green.host.status()).vrrp ?? {};
  const worker = await green.host.worker();
  await blue.agent.kill();
  await blue.host.start();
  await blue.host.write('web.yaml', webObjects({ address: '10.9.1.99', members: [network.v4('member')] }));
  await blue.host.until(
    'its new VIP is served',
    async () => (await network.whoServes('10.9.1.99', VIP_PORT)) === 'member',
    PATIENCE,
  );
  const after = await green.host.status();
  t.is(after.vrrp?.pid, pid);
  t.is(after.vrrp?.instances[0]?.transitions, instances?.[0]?.transitions);
  t.is(await green.host.worker(), worker);
  t.is(await network.whoServes(green.vip, VIP_PORT), 'member');
  t.false((await network.held('green')).includes('10.9.1.99'));
});

async function startInstance(
  t: ExecutionContext<unknown>,
  network: TestNetwork,
  name: string,
  id: number,
): Promise<Instance> {
  const virtualRouter = `vrrp-${id}`;
  const vip = `10.9.1.${id}`;
  const vrrp = {
    interface: 'eth0',
    address: network.v4(name),
    // No process answers.
    peers: ['10.9.0.250'],
    virtualRouterId: id,
    anchors: [anchorOf(virtualRouter)],
  };
  const flags = ['--netns', network.netns(name), '--vrrp', JSON.stringify(vrrp), ...keepalivedFlags];
  const host = await TestHost.create(t, { flags });
  await host.write('web.yaml', webObjects({ address: vip, members: [network.v4('member')] }));
  return { name, host, agent: await host.start(), vip, virtualRouter };
}

function anchorOf(virtualRouter: string): string {
  return `10.9.0.${virtualRouter.replace('vrrp-', '')}`;
}
