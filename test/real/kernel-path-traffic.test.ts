// What the kernel path does with packets besides queries and answers, and on hosts and VIPs that it shares.

import { once } from 'node:events';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { askByDatagrams, UDP_MEMBER_PORT } from '../support/traffic/datagrams.ts';
import { DNS, dns, kernelServed, kernelStarted, VIP, VIP6 } from '../support/traffic/kernel-path.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'nft', 'conntrack'], root: true });

const WEB = [{ name: 'dns-tcp', port: 80 }];
const KERNEL = { 'headgate.io/engine': 'kernel' };
/** Less than the 1,500 bytes of the interfaces, and more than the 1,280 that IPv6 demands. */
const SMALL_MTU = '1300';

test.serial('An ICMP error of a member reaches the client', async (t) => {
  const { host, network, kill } = await kernelServed(t);
  await host.write('dns.yaml', dns(['m1'], network));
  await host.until('it goes to one member', async () => {
    const { by } = await askByDatagrams(network, VIP, DNS, { count: 10 });
    return by.every((name) => name === 'm1');
  });
  kill.get('m1')?.();
  for (const vip of [VIP, VIP6])
    await host.until(
      `its port is unreachable at ${vip}`,
      async () => (await askByDatagrams(network, vip, DNS)).by[0] === 'refused',
    );
  t.is((await host.why('default/dns')).verdict, 'served');
});

test.serial(
  'Packets that are too long for a link make the sender send shorter ones, in both directions',
  async (t) => {
    const { host, network } = await kernelStarted(t);
    const bytes = 300_000;
    network.start(
      'm1',
      process.execPath,
      '-e',
      `require('net').createServer((socket) => {
      let got = 0;
      socket.on('error', () => 0).on('data', (data) => {
        got += data.length;
        if (got === ${bytes}) socket.end(Buffer.alloc(${bytes}));
      });
    }).listen(${UDP_MEMBER_PORT}, '::')`,
    );
    await host.write('dns.yaml', dns(['m1'], network, { ports: WEB }, 'dns', 80, KERNEL));
    const transfer = (address: string) => exchanged(network, address, 80, bytes);
    await host.until('a short way is open', async () => (await transfer(VIP)) === bytes);
    for (const [family, to] of [
      ['-4', network.v4('client')],
      ['-4', network.v4('m1')],
      ['-6', network.v6('client')],
      ['-6', network.v6('m1')],
    ] as const)
      await network.run('a', 'ip', family, 'route', 'replace', to, 'dev', 'eth0', 'mtu', SMALL_MTU);
    t.is(await transfer(VIP), bytes);
    t.is(await transfer(VIP6), bytes);
    const learnt = await network.run('m1', 'ip', 'route', 'get', network.v4('a'));
    t.regex(learnt, new RegExp(`mtu ${SMALL_MTU}`), 'the member has learnt it from an ICMP error');
    t.regex(await network.run('client', 'ip', 'route', 'get', VIP), new RegExp(`mtu ${SMALL_MTU}`));
  },
);

test.serial(
  'A member that is a client of its own VIP reaches itself, from the address of the load balancer',
  async (t) => {
    const { host, network } = await kernelServed(t);
    await host.write('dns.yaml', dns(['m1'], network));
    await host.until('it goes to one member', async () => {
      const { by } = await askByDatagrams(network, VIP, DNS, { count: 10 });
      return by.every((name) => name === 'm1');
    });
    // Without VRRP the kernel chooses among the host's own addresses.
    for (const [vip, own] of [
      [VIP, [network.v4('a')]],
      [VIP6, [network.v6('a'), VIP6]],
    ] as const) {
      const { by, from } = await askByDatagrams(network, vip, DNS, {
        count: 5,
        host: 'm1',
        timeoutMs: 2_000,
      });
      t.deepEqual([...new Set(by)], ['m1']);
      t.true(
        [...from].every((each) => own.includes(each)),
        `${[...from]}`,
      );
    }
  },
);

test.serial('A Service of IPv6 alone is served by a host that forwards no IPv4', async (t) => {
  const { host, network } = await kernelStarted(t);
  await network.run('a', 'sysctl', '-qw', 'net.ipv4.ip_forward=0');
  const spec = { ipFamilies: ['IPv6'], ipFamilyPolicy: 'SingleStack' };
  const annotations = { 'headgate.io/load-balancer-ips': VIP6 };
  await host.write('dns.yaml', dns(['m1', 'm2', 'm3'], network, spec, 'dns', DNS, annotations));
  await host.until(
    'it answers',
    async () => (await askByDatagrams(network, VIP6, DNS)).by[0]?.startsWith('m') === true,
  );
  const { by } = await askByDatagrams(network, VIP6, DNS, { count: 40 });
  t.deepEqual([...new Set(by)].sort(), ['m1', 'm2', 'm3']);
  await host.until('it is reported', async () => (await host.why('default/dns')).verdict === 'served');
  t.is((await host.status()).fault, '');
});

test.serial(
  'Two ports of one VIP have different engines, and a change of one leaves the other alone',
  async (t) => {
    const { host, network } = await kernelStarted(t);
    for (const member of ['m1', 'm2']) network.serve(member, UDP_MEMBER_PORT);
    const write = (kernel: readonly string[], haproxy: readonly string[]): Promise<void> =>
      host.write('dns.yaml', [
        ...dns(kernel, network, { ports: WEB }, 'by-kernel', 80, KERNEL),
        ...dns(haproxy, network, { ports: [{ name: 'dns-tcp', port: 81 }] }, 'by-haproxy', 81),
      ]);
    await write(['m1'], ['m2']);
    await host.until('the kernel answers', async () => (await network.whoServes(VIP, 80)) === 'm1');
    await host.until('HAProxy answers', async () => (await network.whoServes(VIP, 81)) === 'm2');
    t.regex(await network.run('a', 'ss', '-Hltn'), / 10\.9\.0\.100:81 /);
    t.notRegex(await network.run('a', 'ss', '-Hltn'), / 10\.9\.0\.100:80 /);
    await write(['m2'], ['m2']);
    await host.until('the kernel follows', async () => (await network.whoServes(VIP, 80)) === 'm2');
    t.is(await network.whoServes(VIP, 81), 'm2');
    await write(['m2'], ['m1']);
    await host.until('HAProxy follows', async () => (await network.whoServes(VIP, 81)) === 'm1');
    t.is(await network.whoServes(VIP, 80), 'm2');
  },
);

/** Sends so many bytes, and gives how many come back. */
async function exchanged(
  network: TestNetwork,
  address: string,
  port: number,
  bytes: number,
): Promise<number> {
  const script = `
    let got = 0;
    const socket = require('net').connect(${port}, '${address}', () => socket.write(Buffer.alloc(${bytes})));
    socket.setTimeout(8_000, () => socket.destroy());
    socket.on('error', () => 0).on('data', (data) => { got += data.length; }).on('close', () => console.log(got));`;
  const child = network.start('client', process.execPath, '-e', script);
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  await once(child, 'close');
  return Number(output);
}
