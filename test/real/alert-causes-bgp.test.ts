// The cause of each alert of BGP on a real host beside a real router, with a real Prometheus and the project's rules.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import { Prometheus } from '../support/report/prometheus.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'prometheus', 'ip', 'nsenter', 'openssl', 'perl', 'sysctl'],
});

const VIP = '198.51.100.1';

test.serial(
  'Without a router no VIP counts as served, and alerts name the sessions; they end with the router',
  async (t) => {
    t.timeout(240_000);
    const world = await BgpWorld.create(t, {
      hosts: ['a'],
      prepare: (host, network) => host.serve({ address: VIP, port: 8080, members: [network.v4('client')] }),
    });
    const { host, agent } = world.host('a');
    const prometheus = await Prometheus.start(t, [new URL(agent.url ?? '').host]);
    const raised = (alert: string) => prometheus.until(`ALERTS{alertname="Headgate${alert}"}`);
    const ended = (alert: string) => prometheus.until(`absent(ALERTS{alertname="Headgate${alert}"})`);
    await world.leadsTo(VIP, 'a');
    await prometheus.until('headgate_bgp_vip_routers == 1');
    t.is((await host.why()).verdict, 'served');

    await world.router.stop('SIGTERM');
    for (const alert of ['VipNotAnnounced', 'BgpNoSession']) await raised(alert);
    await prometheus.until('absent(ALERTS{alertname="HeadgateBgpSessionDown"})');
    await host.until('the Service is not green', async () => (await host.why()).verdict === 'not served');
    const { problems } = await host.why();
    t.like(problems[0], { reason: 'AddressNotAnnounced', port: { port: 8080, protocol: 'TCP' } });
    await world.router.start();
    for (const alert of ['VipNotAnnounced', 'BgpNoSession']) await ended(alert);
    await host.until('the Service is green', async () => (await host.why()).verdict === 'served');

    // A second router that does not exist.
    const settings = join(host.directory, 'headgate.yaml');
    const file = JSON.parse(await readFile(settings, 'utf8'));
    const other = { name: 'tor-b', address: world.network.v4('client'), asn: 65_002 };
    const bgp = { ...file.bgp, peers: [...file.bgp.peers, other] };
    await writeFile(settings, JSON.stringify({ ...file, bgp }));
    agent.signal('SIGHUP');
    await raised('BgpSessionDown');
    t.regex((await host.why()).announced.join(), /is announced to 1 of 2 routers since \d{4}-/);
    await writeFile(settings, JSON.stringify(file));
    agent.signal('SIGHUP');
    await ended('BgpSessionDown');

    await host.serve({ name: 'more', address: '198.51.100.2', port: 8080, members: [] });
    await world.router.configure('', { limit: 'import limit 1 action restart;' });
    await raised('BgpRoutesRefused');
    await world.router.configure('');
    await prometheus.until('headgate_problems{reason="BgpRoutesHeldBack"} == 0');
    await world.leadsTo(VIP, 'a');

    for (let times = 0; times < 5; times++) {
      await world.router.stop('SIGTERM');
      await host.until('the session is down', async () => {
        const { bgp: now } = await host.status();
        return now?.sessions[0]?.state !== 'Established';
      });
      await world.router.start();
      await world.leadsTo(VIP, 'a');
    }
    await raised('BgpFlapping');
  },
);

test.serial(
  'A host of the setting hosts without power raises an alert, which ends with its return',
  async (t) => {
    t.timeout(240_000);
    const world = await BgpWorld.create(t, {
      hosts: ['a', 'b'],
      group: true,
      prepare: (host, network) => host.serve({ address: VIP, port: 8080, members: [network.v4('client')] }),
    });
    await world.leadsTo(VIP, 'a', 'b');
    const prometheus = await Prometheus.start(t, [new URL(world.host('a').agent.url ?? '').host]);
    await prometheus.until('headgate_host_up{host="b"} == 1');
    await world.cut('b');
    await prometheus.until('ALERTS{alertname="HeadgateHostMissing",host="b"}');
    await world.cut('b', false);
    await prometheus.until('absent(ALERTS{alertname="HeadgateHostMissing"})');
    t.pass();
  },
);

/** Packets of TCP with ACK from all ports of the client. */
const FLOOD = `
use Socket; my ($from, $to) = map { inet_aton($_) } @ARGV;
socket(my $s, AF_INET, SOCK_RAW, 6) or die; my $at = pack_sockaddr_in(0, $to);
for my $port (1024 .. 61023) {
  my $head = sub { pack('nnNNCCnnn', $port, 8080, 1, 1, 0x50, 0x10, 512, $_[0], 0) };
  my $sum = unpack('%32n*', $from . $to . pack('nn', 6, 20) . $head->(0));
  $sum = ($sum & 0xffff) + ($sum >> 16) for 1 .. 2;
  send($s, $head->(~$sum & 0xffff), 0, $at);
}`;

test.serial('A flood of packets without a connection raises an alert, and ends no session', async (t) => {
  t.timeout(480_000);
  const world = await BgpWorld.create(t, {
    hosts: ['a', 'b'],
    group: true,
    prepare: (host, network) => host.serve({ address: VIP, port: 8080, members: [network.v4('client')] }),
  });
  await world.leadsTo(VIP, 'a', 'b');
  const all = world.hosts.map(({ agent }) => new URL(agent.url ?? '').host);
  const prometheus = await Prometheus.start(t, all);
  await prometheus.until('count(headgate_passing_limited_total) == 2');
  for (let times = 0; times < 3; times++)
    await world.network.run('client', 'perl', '-e', FLOOD, world.network.v4('client'), VIP);
  await prometheus.until('ALERTS{alertname="HeadgatePassingLimited"}');
  t.is((await world.host('a').host.status()).bgp?.sessions[0]?.state, 'Established');
  t.pass();
});
