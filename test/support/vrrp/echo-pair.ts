// Two agents of agent-pair.ts with ten VIPs whose member echoes, and the rules and routes of a handover on a host.

import type { ExecutionContext } from 'ava';
import type { TestNetwork } from '../host/namespaces.ts';
import { MEMBER_PORT } from '../values/service-objects.ts';
import { type AgentPair, type AgentPairOptions, type Side, startAgentPair } from './agent-pair.ts';
import { said } from './moving-vip.ts';

export const VIPS = Array.from({ length: 10 }, (_, at) => `10.9.2.${1 + at}`);

const TABLE = 'headgate_handover_51';
const WEB = '10.9.1.1';

/** The host of the member is `member`; that of `default/web` is on the client. */
export async function startEchoes(
  t: ExecutionContext<unknown>,
  options: Omit<AgentPairOptions, 'prepare' | 'others'> = {},
): Promise<AgentPair> {
  const prepare: AgentPairOptions['prepare'] = (host, network) =>
    host.serve({ address: WEB, port: 8080, members: [network.v4('client')] });
  const pair = await startAgentPair(t, WEB, { ...options, prepare, others: ['member'] });
  const { network, active, standby } = pair;
  const script = `require('net').createServer((socket) => socket.on('error', () => 0).pipe(socket)).listen(${MEMBER_PORT}, '${network.v4('member')}', () => console.log())`;
  await said(network.start('member', process.execPath, '-e', script));
  for (const { host } of [active, standby])
    for (const [at, address] of VIPS.entries())
      await host.serve({ name: `echo-${at}`, address, members: [network.v4('member')] });
  for (const { host } of [active, standby])
    await host.until('all are served', async () => {
      const { loadBalancers, vrrp, pair: own } = await host.status();
      const isServed = loadBalancers === 1 + VIPS.length && own?.pending === 0;
      return isServed && vrrp?.vips === loadBalancers && own.peerNotReady === '';
    });
  return pair;
}

/** The rules and routes of a handover on a host. */
export async function leftOn(network: TestNetwork, side: Side): Promise<string> {
  return (await lentOn(network, side)) + (await rulesOn(network, side));
}

/** The VIPs that a host serves without holding them. */
export async function lentOn(network: TestNetwork, { name }: Side): Promise<string> {
  const text = await network.run(name, 'ip', '-o', 'address', 'show', 'dev', 'lo');
  return VIPS.filter((vip) => text.includes(` ${vip}/32 `)).join();
}

/** The VIPs whose connections a host passes on; '' if there are no rules. */
export async function rulesOn(network: TestNetwork, { name }: Side): Promise<string> {
  const { stdout } = await network.try(name, 'nft', 'list', 'set', 'netdev', TABLE, 'vips_v4');
  return stdout;
}
