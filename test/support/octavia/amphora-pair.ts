// A pair of an amphora of Headgate and one with Octavia's own agent, each driven by Octavia's own driver, with a client that
// also has the members.

import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { askOnce } from '../../../agent/haproxy/socket/ask-once.ts';
import type { TestNetwork } from '../host/namespaces.ts';
import { AMPHORA_ID, AmphoraAgent } from './amphora-agent.ts';
import { VIP_MAC, vipPlug } from './plugs.ts';
import { ReferenceAmphora } from './reference-amphora.ts';
import { renderVrrp } from './render.ts';

const OTHER_ID = '4f9a2c1e-8b4d-4f6a-9c0e-1d2b3a4c5d6e';
const OTHER_MAC = '02:00:00:00:01:02';
export const PAIR_VIP = '10.9.0.100';
const LB = '11111111-2222-3333-4444-555555555555';
const MEMBER_ADDRESS = '10.9.0.11';
/** Each answers with its number. */
export const MEMBER_PORTS = [8081, 8082, 8083, 8084] as const;
export const SIDES = ['headgate', 'reference'] as const;
export type Side = (typeof SIDES)[number];
const NAMESPACES: Readonly<Record<Side, string>> = { headgate: 'amphora', reference: 'other' };
const ADDRESSES: Readonly<Record<Side, string>> = { headgate: '10.9.0.21', reference: '10.9.0.22' };
/** The ends of their cables in the bridge. */
const CABLES: Readonly<Record<Side, string>> = { headgate: 'of-ens7', reference: 'of-ens8' };

export interface AmphoraPair {
  readonly amphora: AmphoraAgent;
  readonly network: TestNetwork;
  /** The sides that hold the VIP, with a space between. */
  readonly holders: () => Promise<string>;
  /** Carries a listener for each port out with the driver of each side. Errors: what the driver raises. */
  readonly push: (ports: readonly number[]) => Promise<void>;
  /** How many clients the stick table of a side knows, of the listener of port 80. */
  readonly known: (side: Side) => Promise<number>;
  /** Cuts a side off like a failed switch. */
  readonly cut: (side: Side) => Promise<void>;
  readonly join: (side: Side) => Promise<void>;
}

/** Both serve port 80. */
export async function startAmphoraPair(
  t: Pick<ExecutionContext<unknown>, 'teardown'>,
  master: Side,
): Promise<AmphoraPair> {
  const peer = { amphora: OTHER_ID, vrrpAddress: ADDRESSES.reference, netns: NAMESPACES.reference };
  const amphora = await AmphoraAgent.create(t, { topology: 'ACTIVE_STANDBY', peer });
  const { host } = amphora;
  const { network } = host;
  const script = MEMBER_PORTS.map(
    (port) => `require('http').createServer((_, r) => r.end('${port}')).listen(${port}, '${MEMBER_ADDRESS}')`,
  );
  network.start('client', process.execPath, '-e', script.join(';'));
  await host.plug('ens7', VIP_MAC);
  await host.plug('ens8', OTHER_MAC);
  await amphora.client('plug_vip', PAIR_VIP, {
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
  const push = async (ports: readonly number[]): Promise<void> => {
    const loadBalancer = loadBalancerOf(ports);
    await amphora.push(loadBalancer);
    await reference.order({ call: 'push', loadBalancer });
  };
  await push([80]);
  for (const side of SIDES) {
    const amphorae = SIDES.map((each) => ({
      ...{ role: each === master ? 'MASTER' : 'BACKUP', vrrp_interface: 'eth1', vrrp_id: 1 },
      ...{ vrrp_priority: each === master ? 100 : 90, vrrp_ip: ADDRESSES[each] },
    }));
    const subnet = { cidr: '10.9.0.0/16', gateway: '10.9.0.1' };
    const own = { base_path: bases[side], group: 'aabbccdd', vip: PAIR_VIP, own: SIDES.indexOf(side) };
    await client(side, 'upload_vrrp_config', await renderVrrp({ ...own, ...subnet, amphorae }));
    await client(side, 'start_vrrp');
  }
  return {
    amphora,
    network,
    holders: async () => {
      const held = await Promise.all(SIDES.map((side) => host.addresses(NAMESPACES[side])));
      return SIDES.filter((_, at) => held[at]?.includes(`eth1 ${PAIR_VIP}/32`)).join(' ');
    },
    push,
    known: async (side) => {
      const table = `show table ${idOf('pool', 80)}:${idOf('listener', 80)}`;
      const answer = await askOnce(join(bases[side], `${LB}.sock`), table);
      return Number(/used:(\d+)/.exec(answer)?.[1]);
    },
    cut: async (side) => void (await network.run('bridge', 'ip', 'link', 'set', CABLES[side], 'nomaster')),
    join: async (side) =>
      void (await network.run('bridge', 'ip', 'link', 'set', CABLES[side], 'master', 'br0')),
  };
}

function loadBalancerOf(ports: readonly number[]): object {
  const members = MEMBER_PORTS.map((port, index) => ({
    id: `${index}${index}${index}${index}4444-2222-3333-4444-555555555555`,
    ...{ address: MEMBER_ADDRESS, port },
  }));
  const listeners = ports.map((port) => ({
    ...{ id: idOf('listener', port), protocol: 'HTTP', port },
    pool: { id: idOf('pool', port), protocol: 'HTTP', persistence: { type: 'SOURCE_IP' }, members },
  }));
  return { id: LB, vip: PAIR_VIP, topology: 'ACTIVE_STANDBY', listeners };
}

function idOf(kind: 'listener' | 'pool', port: number): string {
  const number = String(port).padStart(12, '0');
  return `${kind === 'listener' ? '2' : '3'}2222222-2222-3333-4444-${number}`;
}
