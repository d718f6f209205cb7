// The most hosts that the setting `hosts` can have, of which five run.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import { echoMember, OpenConnections } from '../support/bgp/open-connections.ts';
import { VIP_PORT, webObjects } from '../support/values/service-objects.ts';
import { order } from '../support/vrrp/agent-pair.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'ip', 'nft', 'nsenter', 'openssl', 'ss', 'sysctl'],
});

const VIP = '198.51.100.1';
const HOSTS = Array.from({ length: 16 }, (_, at) => `h${at + 1}`);
/** Not neighbours in the list. */
const RUNNING = HOSTS.filter((_, at) => at % 4 === 0 || at === 15);
const COUNT = 300;
const ANSWERED_MS = 3_000;

test.serial('Five of sixteen hosts serve, show the others as away, and end no open connection', async (t) => {
  t.timeout(240_000);
  const world = await BgpWorld.create(t, {
    hosts: HOSTS,
    later: HOSTS.filter((name) => !RUNNING.includes(name)),
    group: true,
    prepare: (host, network) =>
      host.write('web.yaml', webObjects({ address: VIP, members: [network.v4('router')] })),
  });
  const { network } = world;
  await echoMember(network, 'router');
  const whole = async (...names: readonly string[]): Promise<void> => {
    await world.leadsTo(VIP, ...names);
    for (const name of names)
      await until(
        `${name} passes packets on`,
        async () => (await world.host(name).bgp()).passing.next !== '',
      );
  };
  await whole(...RUNNING);
  const first = world.host('h1');
  await until('it has all that run', async () => {
    const { hosts } = await first.host.status();
    return hosts?.hosts.filter(({ fault, bfd }) => fault === '' && bfd !== 'down').length === RUNNING.length;
  });
  const { stdout } = await first.host.command('status');
  t.regex(stdout, /Hosts: +16, 5 of them connected and not lowered/);
  const opened = new OpenConnections(network, VIP, VIP_PORT, COUNT);
  await until('all are open', async () => (await opened.count()).answered === COUNT);
  const [away = ''] = RUNNING.slice(2);
  const locked = await order(world.host(away).host, 'maintenance', 'on');
  t.true(locked.ok, locked.message);
  await whole(...RUNNING.filter((name) => name !== away));
  await new Promise((resolve) => setTimeout(resolve, ANSWERED_MS));
  t.like(await opened.count(), { answered: COUNT, broken: [] });
  t.true((await order(world.host(away).host, 'maintenance', 'off')).ok);
  await whole(...RUNNING);
  await new Promise((resolve) => setTimeout(resolve, ANSWERED_MS));
  t.like(await opened.count(), { answered: COUNT, broken: [] });
});
