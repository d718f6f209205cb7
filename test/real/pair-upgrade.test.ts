// A pair whose hosts are upgraded one after the other, as docs/high-availability.md has an operator do it, under the eyes of a client.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import type { RunningAgent, TestHost } from '../support/host/agent.ts';
import { otherVersion } from '../support/host/other-version.ts';
import { areAlike, order, pairOf, startAgentPair } from '../support/vrrp/agent-pair.ts';
import { SteadyClient } from '../support/vrrp/steady-client.ts';

const programs = ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl', 'openssl'];
const test = requires(ava, { haproxy: true, root: true, programs });

const VIP = '10.9.1.1';
const PORT = 8080;

test.serial('Both hosts of a pair are upgraded, one goes back, and clients do not notice', async (t) => {
  // One that tells less than this one, and one that tells more.
  const less = '{ ...report, pending: undefined, loadBalancers: undefined }';
  const more = "{ weather: { sky: 'clear' }, ...report, capacity: 7 }";
  const older = await otherVersion(t, { version: '0.0.1', tells: less });
  const newer = await otherVersion(t, { version: '99.0.0', tells: more });
  const pair = await startAgentPair(t, VIP, {
    prepare: async (host, network) => {
      host.headgate = older;
      await host.serve({ name: 'web', address: VIP, port: PORT, members: [network.v4('client')] });
    },
  });
  const { network, roles } = pair;
  const [active, standby] = [pair.active.host, pair.standby.host];
  const hosts = [active, standby];
  const agents = new Map<TestHost, RunningAgent>(
    [pair.active, pair.standby].map(({ host, agent }) => [host, agent]),
  );
  /** As docs/high-availability.md says, but for the failover before. */
  const replace = async (host: TestHost, headgate: string): Promise<void> => {
    t.like(await order(host, 'maintenance', 'on'), { status: 0, ok: true });
    await agents.get(host)?.stop();
    host.headgate = headgate;
    agents.set(host, await host.start());
    t.like(await order(host, 'maintenance', 'off'), { status: 0, ok: true });
    await areAlike(hosts);
  };
  const before = await dataplanes(hosts);
  const client = new SteadyClient(network, 'client', VIP, PORT);

  await replace(standby, newer);
  t.is((await pairOf(active)).peer?.version, '99.0.0');
  t.is((await pairOf(standby)).peer?.version, '0.0.1');
  t.like(await order(active, 'failover'), { status: 0, ok: true, active: 'peer' });
  await replace(active, newer);
  t.is((await pairOf(standby)).peer?.version, '99.0.0');
  t.is(await roles(), 'backup,master');

  // It did not please: back on the host that is standby now, with what the newer one has left on disk.
  await replace(active, older);
  t.is((await pairOf(standby)).peer?.version, '0.0.1');
  t.is(await roles(), 'backup,master');

  const { answered, failures } = await client.stop();
  t.true(answered > 100);
  t.deepEqual(failures, {});
  t.deepEqual(await dataplanes(hosts), before);
  for (const agent of agents.values()) {
    t.false(agent.hasLogged('Both hosts of the pair'));
    await agent.stop();
  }
});

/** The processes that carry the traffic. */
function dataplanes(hosts: readonly TestHost[]): Promise<readonly unknown[]> {
  return Promise.all(
    hosts.map(async (host) => [await host.master(), await host.worker(), (await host.status()).vrrp?.pid]),
  );
}
