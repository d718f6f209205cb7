// What SIGHUP makes of other settings of VRRP on a pair of whole agents.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { areAlike, startAgentPair } from '../support/vrrp/agent-pair.ts';

const programs = ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl', 'openssl'];
const test = requires(ava, { haproxy: true, root: true, programs });

const VIP = '10.9.1.1';

test.serial(
  'SIGHUP gives keepalived new settings, and reports the settings that it does not apply',
  async (t) => {
    const { active, standby, roles } = await startAgentPair(t, VIP, {
      prepare: (host, network) =>
        host.serve({ name: 'web', address: VIP, port: 8080, members: [network.v4('client')] }),
    });
    // Longer than before: a busy machine may leave keepalived without the processor for three of a shorter one.
    const advertInterval = '1500ms';
    const vrrp = async () => (await active.host.status()).vrrp;
    const pid = (await vrrp())?.pid;
    for (const { host, agent, configure, priority } of [
      { ...active, priority: 240 },
      { ...standby, priority: 220 },
    ]) {
      await configure({ advertInterval, priority });
      agent.signal('SIGHUP');
      await host.until(
        'it has them',
        async () => (await host.status()).vrrp?.instances[0]?.priority === priority,
      );
      t.true(agent.hasLogged('A changed setting is in effect'));
      t.regex(await host.stateFile('keepalived/keepalived.conf'), /advert_int 1\.5\n/);
    }
    await areAlike([active.host, standby.host]);
    t.is(await roles(), 'master,backup');

    await active.configure({ interface: 'eth9' });
    active.agent.signal('SIGHUP');
    await active.host.until('the fault is said', async () => /eth9/.test((await vrrp())?.fault ?? ''));
    t.is(await roles(), 'master,backup');
    await active.configure({ peers: [] });
    active.agent.signal('SIGHUP');
    const isRefused = async () =>
      active.agent.hasLogged('Cannot use the new settings: the old ones stay in effect');
    await active.host.until('they are refused', isRefused);
    await active.configure({ priority: 240, advertInterval });
    active.agent.signal('SIGHUP');
    await active.host.until('all is well', async () => (await vrrp())?.fault === '');
    t.is((await vrrp())?.pid, pid);
  },
);
