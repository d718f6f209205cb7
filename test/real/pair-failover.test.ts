// The whole pair: two agents, each with its HAProxy and keepalived in a network namespace of its own, and a client.

import { rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { PEER_WAIT_MS } from '../../agent/pair/standing/promotion.ts';
import { requires } from '../support/basics/requirements.ts';
import { processesOf, signal, type TestHost } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { type Json, webObjects } from '../support/values/service-objects.ts';
import {
  type AgentPair,
  INSTANCE,
  order,
  pairOf,
  roleOf,
  startAgentPair,
} from '../support/vrrp/agent-pair.ts';

const programs = ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl', 'openssl'];
const test = requires(ava, { haproxy: true, root: true, programs });

const VIP = '10.9.1.1';
const LISTENER = 'default:web:tcp:8080:v4';

test.serial('A failover moves the traffic once, and is refused while the peer is behind', async (t) => {
  const { active, standby, network, roles } = await startPair(t);
  t.like(await order(active.host, 'failover'), { status: 0, ok: true, active: 'peer' });
  await active.host.until('the roles are exchanged', async () => (await roles()) === 'backup,master');
  t.is(await network.whoServes(VIP), 'member');
  t.like(await order(active.host, 'failover'), { status: 0, ok: true, active: 'peer', tookMs: 0 });

  // The new active host alone hears of a change.
  await serve(standby.host, network, 'shop', '10.9.1.2');
  await standby.host.until('the peer is behind', async () =>
    /behind/.test((await pairOf(standby.host)).peerNotReady),
  );
  const refused = await order(standby.host, 'failover');
  t.like(refused, { status: 1, ok: false, active: 'this host' });
  t.regex(refused.message, /^Refused: The peer is behind/);
  t.is(await roles(), 'backup,master');
  t.like(await order(standby.host, 'failover', '--force'), { status: 0, ok: true, active: 'peer' });
  await active.host.until('they are exchanged again', async () => (await roles()) === 'master,backup');

  const transitions = (await active.host.status()).vrrp?.instances[0]?.transitions ?? 0;
  await serve(active.host, network, 'shop', '10.9.1.2');
  await active.host.until('they are alike', async () => (await pairOf(active.host)).peerNotReady === '');
  t.is(await roles(), 'master,backup');
  t.is((await active.host.status()).vrrp?.instances[0]?.transitions, transitions);
});

test.serial(
  "After a failover the peer's agent may end and come back: traffic stays there until that host is dead",
  async (t) => {
    const pair = await startAgentPair(t, VIP, {
      prepare: (host, network) => serve(host, network, 'web', VIP),
      // What would take the VIPs back.
      vrrp: { a: { priority: 250 }, b: { priority: 200 } },
    });
    const { network } = pair;
    const [a, b] = pair.active.name === 'a' ? [pair.active, pair.standby] : [pair.standby, pair.active];
    await a.host.until('a is master', async () => (await roleOf(a.host)) === 'master');
    t.like(await order(a.host, 'failover'), { status: 0, ok: true, active: 'peer' });
    const transitions = async () => (await a.host.status()).vrrp?.instances[0]?.transitions;
    const before = await transitions();
    const standsBack = async (): Promise<void> => {
      const { lowered } = await pairOf(a.host);
      t.deepEqual(
        lowered.map(({ reason }) => reason),
        ['failover'],
      );
      t.is(await roleOf(a.host), 'backup');
      t.is(await transitions(), before);
      t.is(await network.whoServes(VIP), 'member');
    };
    await b.agent.stop();
    await a.host.until('b is unknown', async () => (await pairOf(a.host)).peer === undefined);
    await delay(PEER_WAIT_MS + 500);
    await standsBack();
    const again = await b.host.start();
    await a.host.until('b is heard and master', async () => {
      const { fault, peer } = await pairOf(a.host);
      return fault === '' && peer?.roles[INSTANCE] === 'master';
    });
    // Some of its reports.
    await delay(1_500);
    await standsBack();
    await again.kill();
    await network.cut(b.name);
    await a.host.until('a is master', async () => (await roleOf(a.host)) === 'master');
    await a.host.until('it stands in full', async () => (await pairOf(a.host)).lowered.length === 0);
    t.is(await network.whoServes(VIP), 'member');
  },
);

test.serial(
  'A locked host hands over the traffic, stays locked, and still replaces a dead peer',
  async (t) => {
    const { active, standby, network, roles } = await startPair(t);
    t.like(await order(active.host, 'maintenance', 'on'), { status: 0, ok: true, active: 'peer' });
    await active.agent.kill();
    await active.host.start();
    await active.host.until('it is backup again', async () => (await roles()) === 'backup,master');
    t.true((await pairOf(active.host)).maintenance);

    await network.cut(standby.name);
    await active.host.until(
      'the locked host serves',
      async () => (await network.whoServes(VIP)) === 'member',
    );
    t.is(await roleOf(active.host), 'master');
    await network.join(standby.name);
    await active.host.until('it gives way', async () => (await roles()) === 'backup,master');
    t.like(await order(active.host, 'maintenance', 'off'), { status: 0, ok: true });
    await active.host.until(
      'it stands in full',
      async () => (await pairOf(active.host)).lowered.length === 0,
    );
    t.is(await roles(), 'backup,master');
  },
);

test.serial('A standby that was down during a thousand changes catches up before it is raised', async (t) => {
  const { active, standby, network, roles } = await startPair(t);
  await standby.agent.kill();
  for (const pid of processesOf(standby.host.directory)) signal(pid, 'SIGKILL');
  for (const { host } of [active, standby]) await host.write('many.yaml', many(network, 1_000));
  await active.host.until(
    'the peer is not heard',
    async () => (await pairOf(active.host)).peer === undefined,
  );
  await active.host.until('all are served', async () => {
    const { loadBalancers, pair, haproxy } = await active.host.status();
    return loadBalancers === 1_001 && pair?.pending === 0 && haproxy.reloadPending.length === 0;
  });
  const refused = await order(active.host, 'failover');
  t.like(refused, { status: 1, ok: false, active: 'this host' });

  const agent = await standby.host.launch();
  let hasBeenLowered = false;
  await standby.host.until('it has caught up', async () => {
    const { parity, lowered, pending } = await pairOf(standby.host);
    const isBehind = parity.model !== 'same' || parity.running !== 'same' || pending > 0;
    hasBeenLowered ||= lowered.some(({ reason }) => reason === 'catching-up');
    t.false(isBehind && lowered.length === 0);
    return !isBehind && lowered.length === 0;
  });
  t.true(hasBeenLowered);
  await standby.host.until('it stands in full', async () => {
    const { instances } = (await standby.host.status()).vrrp ?? { instances: [] };
    return instances[0]?.priority === 200;
  });
  t.false(agent.hasLogged('"master"'));
  await active.host.until('it is backup', async () => (await roles()) === 'master,backup');
  t.like(await order(active.host, 'failover'), { status: 0, ok: true, active: 'peer' });
  t.is(await network.whoServes(VIP), 'member');
});

test.serial(
  'The agent of the active host can be killed and started again, and the traffic stays',
  async (t) => {
    const { active, standby, roles } = await startPair(t);
    const transitionsOf = async (host: TestHost) => (await host.status()).vrrp?.instances[0]?.transitions;
    const before = await transitionsOf(standby.host);
    await active.agent.kill();
    const agent = await active.host.start();
    await active.host.until('they are alike', async () => (await pairOf(active.host)).peerNotReady === '');
    await active.host.until('its role is known', async () => (await roles()) === 'master,backup');
    t.is(await transitionsOf(standby.host), before);
    t.false(agent.hasLogged('This host is lowered'));
  },
);

test.serial('Two masters are reported by both agents until VRRP packets pass again', async (t) => {
  const { active, standby, network } = await startPair(t);
  await network.cut(standby.name);
  for (const { host, agent } of [active, standby]) {
    await host.until('it is reported', async () => (await pairOf(host)).twoMasters.join() === INSTANCE);
    const status = await host.status();
    t.regex(status.fault, /Both hosts of the pair are master|Two hosts are master/);
    t.true(status.problems.some(({ reason }) => reason === 'TwoMasters'));
    t.true(agent.hasLogged('Both hosts of the pair'));
    t.is((await agent.metrics())('headgate_pair_two_masters'), 1);
    t.is((await host.command('status')).status, 1);
  }
  await network.join(standby.name);
  for (const { host } of [active, standby])
    await host.until('it is over', async () => (await pairOf(host)).twoMasters.length === 0);
});

test.serial(
  'A host whose HAProxy hangs loses the VIPs until HAProxy has been well for a while',
  async (t) => {
    const { active, network, roles } = await startPair(t);
    const worker = await active.host.worker();
    signal(worker, 'SIGSTOP');
    await active.host.until('the peer has taken over', async () => (await roles()) === 'backup,master');
    t.is(await network.whoServes(VIP), 'member');
    t.true((await pairOf(active.host)).lowered.some(({ reason }) => reason === 'haproxy'));
    t.is((await active.agent.metrics())('headgate_standing_lowered', { reason: 'haproxy' }), 1);
    signal(worker, 'SIGCONT');
    await active.host.until(
      'it stands in full',
      async () => (await pairOf(active.host)).lowered.length === 0,
    );
    t.is(await roles(), 'backup,master');
  },
);

test.serial('A host whose HAProxy admin socket is removed keeps the VIPs', async (t) => {
  const { active, roles } = await startPair(t);
  const { agent, host } = active;
  await rm(host.paths.adminSocket);
  // Three times `pairLowerAfter`.
  await delay(3_000);
  t.false(agent.hasLogged('This host is lowered'));
  t.is(await roles(), 'master,backup');
});

test.serial('A host whose HAProxy answers without listeners loses the VIPs', async (t) => {
  const { active, network, roles } = await startPair(t);
  const turn = (word: string) => active.host.haproxy(`${word} frontend ${LISTENER}`);
  await turn('disable');
  await active.host.until('the peer has taken over', async () => (await roles()) === 'backup,master');
  t.is(await network.whoServes(VIP), 'member');
  const { lowered } = await pairOf(active.host);
  t.deepEqual(
    lowered.map(({ reason }) => reason),
    ['listeners'],
  );
  t.is((await active.agent.metrics())('headgate_standing_lowered', { reason: 'listeners' }), 1);
  t.true(active.agent.hasLogged('This host is lowered in the pair'));
  await turn('enable');
  await active.host.until('it stands in full', async () => (await pairOf(active.host)).lowered.length === 0);
  t.is(await roles(), 'backup,master');
});

/** One of the hosts serves `default/web` at the VIP. */
function startPair(t: ExecutionContext): Promise<AgentPair> {
  return startAgentPair(t, VIP, { prepare: (host, network) => serve(host, network, 'web', VIP) });
}

function many(network: TestNetwork, count: number): readonly Json[] {
  const members = [network.v4('client')];
  return Array.from({ length: count }, (_, at) => {
    const address = `10.9.${100 + Math.floor(at / 250)}.${1 + (at % 250)}`;
    return webObjects({ name: `web-${at}`, address, port: 8080, members });
  }).flat();
}

function serve(host: TestHost, network: TestNetwork, name: string, address: string): Promise<void> {
  return host.serve({ name, address, port: 8080, members: [network.v4('client')] });
}
