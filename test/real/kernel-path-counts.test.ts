// What the kernel path counts, with real nftables and real traffic between namespaces.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import type { RunningAgent, TestHost } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { nftExecutable } from '../support/host/nft.ts';
import { readPage } from '../support/report/read-page.ts';
import { askByConnections, askByDatagrams, UDP_MEMBER_PORT } from '../support/traffic/datagrams.ts';
import { sendAcknowledgements } from '../support/traffic/forged-segment.ts';
import { DNS, dns, kernelServed, kernelStarted, kernelTable, VIP } from '../support/traffic/kernel-path.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'nft', 'conntrack', 'perl'], root: true });

/** A datagram of one byte, with the headers of IP and UDP. */
const QUERY_BYTES = 20 + 8 + 1;
const OF_DNS = { service: 'dns', family: 'v4' };

interface Rig {
  readonly host: TestHost;
  readonly network: TestNetwork;
}

interface Counted {
  readonly flows: number;
  readonly packets: readonly [number, number];
  readonly bytes: readonly [number, number];
}

async function counted(agent: RunningAgent): Promise<Counted> {
  const read = await agent.metrics();
  const of = (name: string): number => read(`headgate_listener_${name}_total`, OF_DNS);
  return {
    flows: of('connections'),
    packets: [of('received_packets'), of('sent_packets')],
    bytes: [of('received_bytes'), of('sent_bytes')],
  };
}

/** What the kernel has counted for the only listener of IPv4. */
async function countedByKernel(network: TestNetwork): Promise<Counted> {
  const table = `${await kernelTable(network)}_counts`;
  const text = await network.run('a', nftExecutable, 'list', 'table', 'ip', table);
  const of = (direction: string): readonly [packets: number, bytes: number] => {
    const counter = new RegExp(` \\. 53${direction} counter packets (\\d+) bytes (\\d+)`);
    const [, packets, bytes] = counter.exec(text) ?? [];
    return [Number(packets), Number(bytes)];
  };
  const [received, sent] = [of(' \\. original'), of(' \\. reply')];
  return { flows: of('')[0], packets: [received[0], sent[0]], bytes: [received[1], sent[1]] };
}

/** Asks on one flow, and gives the counts before and after, by which time the metrics have them. */
async function asked({ host, network }: Rig, agent: RunningAgent, count: number) {
  const before = await countedByKernel(network);
  await askByDatagrams(network, VIP, DNS, { count, isOneFlow: true });
  const after = await countedByKernel(network);
  await host.until(
    'the metrics have them',
    async () => JSON.stringify(await counted(agent)) === JSON.stringify(after),
  );
  return { before, after };
}

test.serial('Packets and bytes are counted in both directions, of each packet of a flow', async (t) => {
  const rig = await kernelServed(t);
  const { before, after } = await asked(rig, rig.agent, 25);
  t.is(after.flows, before.flows + 1);
  t.deepEqual(after.packets, [before.packets[0] + 25, before.packets[1] + 25]);
  t.is(after.bytes[0], before.bytes[0] + 25 * QUERY_BYTES);
  // The member answers with its name, a blank and the address that it sees.
  const answer = QUERY_BYTES - 1 + `m1 ${rig.network.v4('a')}`.length;
  t.is(after.bytes[1], before.bytes[1] + 25 * answer);

  // A client on the load balancer itself.
  await askByDatagrams(rig.network, VIP, DNS, { count: 5, isOneFlow: true, host: 'a' });
  await rig.host.until('all are counted', async () => {
    const { packets } = await counted(rig.agent);
    return packets[0] === after.packets[0] + 5 && packets[1] === after.packets[1] + 5;
  });
});

test.serial('No count goes back: rules that are loaded again, a restart, a foreign flush', async (t) => {
  const rig = await kernelServed(t);
  let { after: last } = await asked(rig, rig.agent, 20);
  const isNoLess = async (agent: RunningAgent): Promise<void> => {
    let now = last;
    await rig.host.until('it is counted', async () => {
      now = await counted(agent);
      return now.flows > 0;
    });
    for (const [was, is] of [
      [
        [last.flows, ...last.packets, ...last.bytes],
        [now.flows, ...now.packets, ...now.bytes],
      ],
    ] as const)
      was.forEach((value, at) => {
        t.true((is[at] ?? 0) >= value, `${is} after ${was}`);
      });
    last = now;
  };
  await rig.agent.kill();
  const agent = await rig.host.start();
  await isNoLess(agent);
  last = (await asked(rig, agent, 20)).after;
  await rig.network.run('a', nftExecutable, 'flush', 'ruleset');
  await rig.host.until(
    'the rules are back',
    async () => (await agent.metrics())('headgate_repairs_total', { what: 'rules' }) === 1,
  );
  await isNoLess(agent);
  await rig.host.until(
    'it answers',
    async () => (await askByDatagrams(rig.network, VIP, DNS)).by[0]?.startsWith('m') === true,
  );
  const { before, after } = await asked(rig, agent, 20);
  t.is(after.packets[0], before.packets[0] + 20);
});

test.serial('Packets of connections that nobody has are no new connections', async (t) => {
  const { host, network } = await kernelStarted(t);
  const ports = [{ name: 'dns-tcp', port: DNS }];
  const engine = { 'headgate.io/engine': 'kernel' };
  await host.write('dns.yaml', dns(['m1'], network, { ports }, 'dns', DNS, engine));
  network.serve('m1', UDP_MEMBER_PORT);
  await host.until('it answers', async () => (await askByConnections(network, VIP, DNS, 1, 300))[0] === 'm1');
  const before = await countedByKernel(network);
  await sendAcknowledgements(network, 'client', VIP, DNS, 9);
  await host.until('the member has refused them', async () => {
    const { packets } = await countedByKernel(network);
    return packets[1] >= before.packets[1] + 9;
  });
  t.is((await countedByKernel(network)).flows, before.flows);
  await askByConnections(network, VIP, DNS, 1, 300);
  t.is((await countedByKernel(network)).flows, before.flows + 1);
});

test.serial(
  'The status page has the new flows of a load balancer, and does not call it unserved',
  async (t) => {
    const { host, network, agent } = await kernelServed(t);
    await host.until('it has a rate', async () => {
      await askByDatagrams(network, VIP, DNS, { count: 3 });
      const { list } = await readPage(agent.url);
      return (list.rows[0]?.rate ?? 0) > 0;
    });
    const { summary, list, detail } = await readPage(agent.url, 'open=default%2Fdns');
    t.like(summary.kernel, { loadBalancers: 1, fault: '' });
    t.like(list.rows[0], { key: 'default/dns', isOfKernel: true, open: undefined });
    t.like(detail?.listeners[0], { engine: 'kernel', isServed: true, sessions: undefined });
    t.true((detail?.history.rate ?? []).some((rate) => (rate ?? 0) > 0));
    t.true(summary.disk.writtenAt !== '' && summary.disk.faults.length === 0);
  },
);

test.serial('Without kernelTraffic only new flows are counted', async (t) => {
  const { host, network, agent } = await kernelServed(t);
  await agent.stop();
  const second = await host.start(['--kernel-traffic=false']);
  await host.write('dns.yaml', dns(['m1'], network));
  // Flows that fall between the reading of the counters and the load of the rules are not counted.
  await host.until('flows are counted', async () => {
    await askByDatagrams(network, VIP, DNS, { count: 3 });
    return (await second.metrics())('headgate_listener_connections_total', OF_DNS) >= 3;
  });
  const { text } = await second.get('/metrics');
  t.false(/headgate_listener_(?:received|sent)_packets_total/.test(text));
  t.notRegex(
    await network.run('a', nftExecutable, 'list', 'chains', 'ip'),
    /chain through \{\n.*filter \+ 10/,
  );
});
