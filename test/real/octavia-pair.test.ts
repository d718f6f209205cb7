// A pair of an amphora of Headgate and one with Octavia's own agent, each driven by Octavia's own driver: while an image is
// rolled out, a load balancer has both.

import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { askOnce } from '../../agent/haproxy/socket/ask-once.ts';
import { eventually } from '../support/basics/eventually.ts';
import { requires } from '../support/basics/requirements.ts';
import { AMPHORA_ID, AmphoraAgent } from '../support/octavia/amphora-agent.ts';
import { VIP_MAC, vipPlug } from '../support/octavia/plugs.ts';
import { ReferenceAmphora } from '../support/octavia/reference-amphora.ts';
import { renderVrrp } from '../support/octavia/render.ts';

const test = requires(ava, {
  root: true,
  haproxy: true,
  programs: ['ip', 'nft', 'nsenter', 'openssl', 'octavia-worker', 'keepalived', 'curl', 'ss'],
});

const OTHER_ID = '4f9a2c1e-8b4d-4f6a-9c0e-1d2b3a4c5d6e';
const OTHER_MAC = '02:00:00:00:01:02';
const VIP = '10.9.0.100';
const LB = '11111111-2222-3333-4444-555555555555';
const LISTENER = '22222222-2222-3333-4444-555555555555';
const POOL = '33333333-2222-3333-4444-555555555555';
const PORTS = [8081, 8082, 8083, 8084] as const;
const CLIENTS = ['10.9.7.1', '10.9.7.2', '10.9.7.3', '10.9.7.4', '10.9.7.5', '10.9.7.6'] as const;
const SIDES = ['headgate', 'reference'] as const;
type Side = (typeof SIDES)[number];
const NAMESPACES: Readonly<Record<Side, string>> = { headgate: 'amphora', reference: 'other' };
const ADDRESSES: Readonly<Record<Side, string>> = { headgate: '10.9.0.21', reference: '10.9.0.22' };
/** The ends of their cables in the bridge. */
const CABLES: Readonly<Record<Side, string>> = { headgate: 'of-ens7', reference: 'of-ens8' };

const BALANCER = {
  id: LB,
  vip: VIP,
  topology: 'ACTIVE_STANDBY',
  listeners: [
    {
      ...{ id: LISTENER, protocol: 'HTTP', port: 80 },
      pool: {
        ...{ id: POOL, protocol: 'HTTP', persistence: { type: 'SOURCE_IP' } },
        members: PORTS.map((port, index) => ({
          id: `${index}${index}${index}${index}4444-2222-3333-4444-555555555555`,
          ...{ address: '10.9.0.11', port },
        })),
      },
    },
  ],
};

async function pair(t: ExecutionContext<unknown>, master: Side) {
  const peer = { amphora: OTHER_ID, vrrpAddress: ADDRESSES.reference, netns: NAMESPACES.reference };
  const amphora = await AmphoraAgent.create(t, { topology: 'ACTIVE_STANDBY', peer });
  const { host } = amphora;
  const { network } = host;
  const script = PORTS.map(
    (port) => `require('http').createServer((_, r) => r.end('${port}')).listen(${port}, '10.9.0.11')`,
  );
  network.start('client', process.execPath, '-e', script.join(';'));
  for (const client of CLIENTS)
    await network.run('client', 'ip', 'address', 'add', `${client}/32`, 'dev', 'eth0');
  await host.plug('ens7', VIP_MAC);
  await host.plug('ens8', OTHER_MAC);
  await amphora.client('plug_vip', VIP, {
    ...{ subnet_cidr: '10.9.0.0/16', gateway: '10.9.0.1', mac_address: VIP_MAC, mtu: 1400 },
    ...{ vrrp_ip: ADDRESSES.headgate, host_routes: [], additional_vips: [] },
  });
  await host
    .networkOf(NAMESPACES.reference, 'ACTIVE_STANDBY')
    .plugVip(vipPlug({ mac: OTHER_MAC, vrrpAddress: ADDRESSES.reference }));
  const reference = await ReferenceAmphora.create(host, {
    ...{ amphora: OTHER_ID, netns: NAMESPACES.reference, vrrpAddress: ADDRESSES.reference },
    peer: { amphora: AMPHORA_ID, vrrpAddress: ADDRESSES.headgate },
  });
  const bases = { headgate: amphora.path('base'), reference: reference.base };
  const client = (side: Side, method: string, ...args: readonly unknown[]): Promise<unknown> =>
    side === 'headgate' ? amphora.client(method, ...args) : reference.client(method, ...args);
  await amphora.push(BALANCER);
  await reference.order({ call: 'push', loadBalancer: BALANCER });
  for (const side of SIDES) {
    const amphorae = SIDES.map((each) => ({
      ...{ role: each === master ? 'MASTER' : 'BACKUP', vrrp_interface: 'eth1', vrrp_id: 1 },
      ...{ vrrp_priority: each === master ? 100 : 90, vrrp_ip: ADDRESSES[each] },
    }));
    const subnet = { cidr: '10.9.0.0/16', gateway: '10.9.0.1' };
    const own = { base_path: bases[side], group: 'aabbccdd', vip: VIP, own: SIDES.indexOf(side) };
    await client(side, 'upload_vrrp_config', await renderVrrp({ ...own, ...subnet, amphorae }));
    await client(side, 'start_vrrp');
  }
  const holders = async (): Promise<string> => {
    const held = await Promise.all(SIDES.map((side) => host.addresses(NAMESPACES[side])));
    return SIDES.filter((_, at) => held[at]?.includes(`eth1 ${VIP}/32`)).join(' ');
  };
  return {
    amphora,
    network,
    holders,
    /** How many clients the stick table of a side knows. */
    known: async (side: Side): Promise<number> => {
      const answer = await askOnce(join(bases[side], `${LB}.sock`), `show table ${POOL}:${LISTENER}`);
      return Number(/used:(\d+)/.exec(answer)?.[1]);
    },
    /** The member of each client. */
    members: (): Promise<readonly string[]> =>
      Promise.all(
        CLIENTS.map(async (from) => {
          const words = ['-s', '-m', '5', '--interface', from, `http://${VIP}/`];
          return (await network.try('client', 'curl', ...words)).stdout;
        }),
      ),
  };
}

for (const master of SIDES) {
  const standby: Side = master === 'headgate' ? 'reference' : 'headgate';
  test.serial(`The VIP and the members of clients move from ${master} to ${standby}, and back`, async (t) => {
    const { network, holders, known, members, amphora } = await pair(t, master);
    await eventually(holders, (names) => names === master);
    const connected = ['-Htn', 'state', 'established', '( sport = :1025 or dport = :1025 )'];
    await eventually(
      () => network.run('amphora', 'ss', ...connected),
      (lines) => lines !== '',
    );
    const before = await members();
    t.true(
      before.every((member) => PORTS.some((port) => String(port) === member)),
      before.join(),
    );
    t.true(new Set(before).size > 1);
    // Each has learned from the other's HAProxy what it has not seen itself.
    await eventually(
      () => known(standby),
      (count) => count === CLIENTS.length,
    );
    const cutAt = performance.now();
    await network.run('bridge', 'ip', 'link', 'set', CABLES[master], 'nomaster');
    await eventually(holders, (names) => names.includes(standby));
    t.log(`The VIP moved ${Math.round(performance.now() - cutAt)} ms after the loss of ${master}`);
    t.deepEqual(await members(), before);
    await network.run('bridge', 'ip', 'link', 'set', CABLES[master], 'master', 'br0');
    await eventually(holders, (names) => SIDES.some((side) => side === names));
    t.deepEqual(await members(), before);
    t.is((await amphora.nextHeartbeat()).refused, undefined);
  });
}
