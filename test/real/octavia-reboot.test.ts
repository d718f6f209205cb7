// A whole amphora after a reboot: its namespace and processes are gone, and the kernel gives the interfaces other names in
// another order.

import { rm } from 'node:fs/promises';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { AmphoraAgent } from '../support/octavia/amphora-agent.ts';
import { VIP_MAC } from '../support/octavia/plugs.ts';
import { answerDatagrams, askByDatagrams } from '../support/traffic/datagrams.ts';

const test = requires(ava, {
  root: true,
  haproxy: true,
  programs: ['ip', 'nft', 'nsenter', 'openssl', 'octavia-worker', 'curl'],
});

const VIP = '10.9.0.100';
const VIP6 = 'fd09::100';
const MEMBER_MAC = '02:00:00:00:01:02';
const LB = '11111111-2222-3333-4444-555555555555';
const LISTENER = '22222222-2222-3333-4444-555555555555';
const POOL = '33333333-2222-3333-4444-555555555555';
const UDP = '77777777-2222-3333-4444-555555555555';
const UDP_POOL = '88888888-2222-3333-4444-555555555555';
const member = (number: number, address: string, port: number) => ({
  id: `${number}${number}${number}${number}4444-2222-3333-4444-555555555555`,
  address,
  port,
});

test('After a reboot an amphora is as it was, whatever the kernel calls its interfaces', async (t) => {
  const amphora = await AmphoraAgent.create(t);
  const { host } = amphora;
  const { network } = host;
  // Members in a network of their own.
  await network.run('client', 'ip', 'address', 'add', '10.20.0.7/24', 'dev', 'eth0');
  const web = "require('http').createServer((_, r) => r.end('web')).listen(8081, '10.20.0.7')";
  network.start('client', process.execPath, '-e', web);
  answerDatagrams(network, 'client');
  await host.plug('ens7', VIP_MAC);
  await amphora.client('plug_vip', VIP, {
    ...{ subnet_cidr: '10.9.0.0/16', gateway: '10.9.0.1', mac_address: VIP_MAC, mtu: 1400 },
    ...{ vrrp_ip: '10.9.0.21', host_routes: [] },
    additional_vips: [{ ip_address: VIP6, subnet_cidr: 'fd09::/64', gateway: 'fd09::1', host_routes: [] }],
  });
  await host.plug('ens8', MEMBER_MAC);
  const fixed = { ip_address: '10.20.0.5', subnet_cidr: '10.20.0.0/24', host_routes: [] };
  await amphora.client('plug_network', { mac_address: MEMBER_MAC, mtu: 1450, fixed_ips: [fixed] });
  await amphora.push({
    ...{ id: LB, vip: VIP },
    listeners: [
      {
        ...{ id: LISTENER, protocol: 'HTTP', port: 80 },
        pool: { id: POOL, protocol: 'HTTP', members: [member(1, '10.20.0.7', 8081)] },
      },
      {
        ...{ id: UDP, protocol: 'UDP', port: 53 },
        pool: { id: UDP_POOL, protocol: 'UDP', members: [member(2, '10.20.0.7', 5353)] },
      },
    ],
  });
  const serves = async (): Promise<boolean> => {
    const { stdout } = await network.try('client', 'curl', '-s', '-m', '3', `http://${VIP}/`);
    return stdout === 'web' && (await askByDatagrams(network, VIP, 53)).by.join() === 'client';
  };
  await until('both listeners answer', serves);
  const states = async () => [await host.addresses(), await host.routes(), await host.rules()];
  const before = await states();

  await amphora.stop('SIGKILL');
  await amphora.killHaproxy(LB);
  await rm(amphora.path('run'), { recursive: true });
  for (const [inside, outside] of [
    ['eth1', 'ens9'],
    ['eth2', 'ens3'],
  ] as const)
    await network.run(
      'amphora',
      'ip',
      'link',
      'set',
      inside,
      'netns',
      network.netns('node'),
      'name',
      outside,
    );
  await network.run('node', 'ip', 'netns', 'delete', network.netns('amphora'));

  await amphora.start();
  t.deepEqual(await states(), before);
  await until('both listeners answer again', serves);
  const beat = await amphora.nextHeartbeat();
  t.deepEqual(Object.keys(beat.listeners).sort(), [LISTENER, UDP].sort());
  t.is(beat.refused, undefined);
});
