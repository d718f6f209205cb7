// A machine that is no host of the pair has its VIPs: the pair reports it, and does nothing against it.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import type { TestHost } from '../support/host/agent.ts';
import { type Side, startAgentPair } from '../support/vrrp/agent-pair.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl'],
});

const VIP = '10.9.1.1';
const VIP6 = 'fd09::100';
/** Three rounds of questions and answers, and on a busy machine as long again. */
const FOUND_MS = 60_000;
/** Until an answer is forgotten and another question had none. */
const ENDS_MS = 150_000;

const saidBy = async (host: TestHost, service: string): Promise<readonly string[]> => {
  const { problems } = await host.why(service);
  return problems.filter(({ reason }) => reason === 'AddressConflict').map(({ message }) => message);
};

// Conformance: an address that another host has
test.serial(
  'A foreign machine with a VIP is found by the standby, and by the active host when it speaks',
  async (t) => {
    const prepare = async (host: TestHost): Promise<void> => {
      await host.serve({ name: 'six', address: VIP6, members: [], spec: { ipFamilies: ['IPv6'] } });
      await host.serve({ address: VIP, port: 8080, members: ['10.9.0.13'] });
    };
    const pair = await startAgentPair(t, VIP, { prepare, others: ['foreign'] });
    const { network, active, standby, roles } = pair;
    const shown = await network.run('foreign', 'ip', '-o', 'link', 'show', 'dev', 'eth0');
    const ether = /link\/ether (\S+)/.exec(shown)?.[1] ?? '';

    await network.run('foreign', 'ip', 'address', 'add', `${VIP6}/128`, 'dev', 'eth0', 'nodad');
    await network.run('foreign', 'ip', 'address', 'add', `${VIP}/32`, 'dev', 'eth0');
    // Both were asked for already, and again after five minutes: a new address is asked for at once.
    const found = (side: Side, service: string, what: string) =>
      side.host.until(
        what,
        async () => {
          const said = await saidBy(side.host, service);
          if (said.length === 0) throw new Error(await network.run(side.name, 'nft', 'list', 'ruleset'));
          return said.some((message) => message.includes(` is also held by ${ether},`));
        },
        FOUND_MS,
      );
    for (const { host } of [active, standby]) {
      await host.serve({ name: 'new', address: '10.9.1.2', port: 8080, members: ['10.9.0.13'] });
      await host.serve({
        name: 'new-six',
        address: 'fd09::101',
        members: [],
        spec: { ipFamilies: ['IPv6'] },
      });
    }
    await network.run('foreign', 'ip', 'address', 'add', 'fd09::101/128', 'dev', 'eth0', 'nodad');
    await network.run('foreign', 'ip', 'address', 'add', '10.9.1.2/32', 'dev', 'eth0');
    await found(standby, 'default/new', 'the standby has found it');
    await found(standby, 'default/new-six', 'the standby has found it by IPv6');
    t.regex((await standby.host.command('status')).stdout, /10\.9\.1\.2 is also held by/);
    t.true(standby.agent.hasLogged('10.9.1.2 is also held by'));
    const metric = await standby.agent.metrics();
    t.true((metric('headgate_problems', { reason: 'AddressConflict' }) ?? 0) >= 2);

    // A gratuitous ARP for each of its addresses, as after a change of the Ethernet address.
    await network.run('foreign', 'sysctl', '-qw', 'net.ipv4.conf.eth0.arp_notify=1');
    await network.run('foreign', 'ip', 'link', 'set', 'dev', 'eth0', 'address', ether);
    await found(active, 'default/web', 'the active host has heard it');
    t.is(await roles(), 'master,backup', 'nothing is done against it');

    await network.cut('foreign');
    for (const { host } of [active, standby])
      await host.until(
        'it is gone',
        async () =>
          (await saidBy(host, 'default/new')).length + (await saidBy(host, 'default/web')).length === 0,
        ENDS_MS,
      );
    t.true(standby.agent.hasLogged('Solved: 10.9.1.2 is also held by'));
    t.false(standby.agent.hasLogged('Cannot find out whether another machine has a VIP'));
  },
);
