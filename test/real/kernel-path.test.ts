// UDP by the kernel, with real nftables and real traffic between namespaces.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import type { TestHost } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { nftExecutable, signalNft } from '../support/host/nft.ts';
import { askByDatagrams, UDP_MEMBER_PORT } from '../support/traffic/datagrams.ts';
import { DNS, dns, kernelServed, kernelStarted, VIP, VIP6 } from '../support/traffic/kernel-path.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'nft', 'conntrack'], root: true });

const FLOW_PORT = 40_053;

test.serial('UDP reaches every member, from the address of the load balancer', async (t) => {
  const { host, network } = await kernelStarted(t);
  await host.write('dns.yaml', dns(['m1', 'm2', 'm3'], network));
  await host.until(
    'it answers',
    async () => (await askByDatagrams(network, VIP, DNS)).by[0]?.startsWith('m') === true,
  );
  const { by, from } = await askByDatagrams(network, VIP, DNS, { count: 60 });
  t.deepEqual([...new Set(by)].sort(), ['m1', 'm2', 'm3']);
  t.deepEqual([...from], [network.v4('a')]);
  t.is((await host.why('default/dns')).verdict, 'served');
  const v6 = await askByDatagrams(network, VIP6, DNS, { count: 30 });
  t.deepEqual([...new Set(v6.by)].sort(), ['m1', 'm2', 'm3']);
});

test.serial('Endpoint churn loses no query but those in flight to the member that goes', async (t) => {
  const { host, network } = await kernelServed(t);
  const asking = askByDatagrams(network, VIP, DNS, { count: 300 });
  for (let round = 0; round < 8; round++) {
    await host.write('dns.yaml', dns(round % 2 === 0 ? ['m1', 'm2'] : ['m2', 'm3'], network));
    await host.until('it is carried out', async () => (await host.why('default/dns')).verdict === 'served');
  }
  const { by } = await asking;
  t.is(by.length, 300);
  t.deepEqual(
    by.filter((name) => !name.startsWith('m')),
    [],
  );
});

test.serial(
  'A long flow stays with its member through changes of others, and leaves a member that is gone',
  async (t) => {
    const { host, network } = await kernelServed(t);
    const oneFlow = { count: 4_000, isOneFlow: true, timeoutMs: 1_000 };
    const asking = askByDatagrams(network, VIP, DNS, { ...oneFlow, localPort: FLOW_PORT });
    const first = await memberOf(network, host);
    const others = ['m1', 'm2', 'm3'].filter((name) => name !== first);
    await host.write('dns.yaml', dns([first, others[0] ?? ''], network));
    await host.until('it is carried out', async () => (await host.why('default/dns')).verdict === 'served');
    const { by } = await asking;
    t.is(new Set(by).size, 1, `${[...new Set(by)]}`);

    // The flow of a member that is removed goes to another one, although its client never pauses.
    const [member = ''] = by;
    const flow = askByDatagrams(network, VIP, DNS, { count: 4_000, isOneFlow: true, timeoutMs: 1_000 });
    await host.write(
      'dns.yaml',
      dns(
        ['m1', 'm2', 'm3'].filter((name) => name !== member),
        network,
      ),
    );
    const names = (await flow).by;
    t.true(
      names.every((name) => name.startsWith('m')),
      'no query is lost, because the member still answers',
    );
    t.not(names.at(-1), member);
  },
);

test.serial(
  'A Service without a ready member refuses, and serves a client that has asked before',
  async (t) => {
    const { host, network, agent } = await kernelServed(t);
    const isUp = async () => (await agent.metrics())('headgate_listener_up', { family: 'v4' }) === 1;
    await host.until('it is up', isUp);
    await host.write('dns.yaml', dns([], network));
    await host.until('it refuses', async () => (await askByDatagrams(network, VIP, DNS)).by[0] === 'refused');
    t.is((await askByDatagrams(network, VIP6, DNS)).by[0], 'refused');
    await host.until('it is not up', async () => !(await isUp()));
    const asking = askByDatagrams(network, VIP, DNS, { count: 3_000, isOneFlow: true, timeoutMs: 1_000 });
    await host.write('dns.yaml', dns(['m1'], network));
    t.is((await asking).by.at(-1), 'm1');
  },
);

test.serial('Source ranges, also five hundred, decide who is answered', async (t) => {
  const { host, network } = await kernelServed(t);
  const many = Array.from({ length: 500 }, (_, at) => `172.${16 + (at >> 8)}.${at & 255}.0/24`);
  await host.write('dns.yaml', dns(['m1'], network, { loadBalancerSourceRanges: many }));
  await host.until(
    'the client is refused',
    async () => (await askByDatagrams(network, VIP, DNS)).by[0] === '',
  );
  const with1 = [...many, `${network.v4('client')}/32`];
  await host.write('dns.yaml', dns(['m1'], network, { loadBalancerSourceRanges: with1 }));
  await host.until(
    'the client is answered',
    async () => (await askByDatagrams(network, VIP, DNS)).by[0] === 'm1',
  );
  t.is((await askByDatagrams(network, VIP6, DNS)).by[0], '', 'no range of IPv6 allows its clients');
});

test.serial('Session affinity keeps the flows of a client together', async (t) => {
  const { host, network } = await kernelServed(t);
  await host.write('dns.yaml', dns(['m1', 'm2', 'm3'], network, { sessionAffinity: 'ClientIP' }));
  await host.until(
    'all go to one member',
    async () => new Set((await askByDatagrams(network, VIP, DNS, { count: 20 })).by).size === 1,
  );
  t.pass();
});

test.serial('TCP and UDP on one port are one Service', async (t) => {
  const { host, network } = await kernelServed(t);
  for (const member of ['m1', 'm2', 'm3']) network.serve(member, UDP_MEMBER_PORT);
  const ports = [
    { name: 'dns', port: DNS, protocol: 'UDP' },
    { name: 'dns-tcp', port: DNS, protocol: 'TCP' },
  ];
  await host.write('dns.yaml', dns(['m1'], network, { ports }));
  await host.until('TCP answers', async () => (await network.whoServes(VIP, DNS)) === 'm1');
  t.is((await askByDatagrams(network, VIP, DNS)).by[0], 'm1');
  // HAProxy serves a moment before its reload is over.
  await host.until('it is reported', async () => (await host.why('default/dns')).verdict === 'served');
});

test.serial('A restart of the agent, killed or not, costs no query', async (t) => {
  const { host, network, agent } = await kernelServed(t);
  const flowsOf = async (running: typeof agent) =>
    (await running.metrics())('headgate_listener_connections_total', { family: 'v4' });
  await host.until('flows are counted', async () => (await flowsOf(agent)) > 0);
  const before = await flowsOf(agent);
  const asking = askByDatagrams(network, VIP, DNS, { count: 1_500 });
  await agent.kill();
  const second = await host.start();
  await second.stop();
  const third = await host.start();
  const { by } = await asking;
  // Flows between the reading of the counters and the load of the rules are not counted: on a busy machine, hundreds.
  await host.until('no count goes back', async () => (await flowsOf(third)) > before);
  t.deepEqual(
    by.filter((name) => !name.startsWith('m')),
    [],
  );
});

test.serial('Rules that another process has removed are back soon, and counted', async (t) => {
  const { network, agent } = await kernelServed(t);
  await network.run('a', nftExecutable, 'flush', 'ruleset');
  await until(
    'it answers again',
    async () => (await askByDatagrams(network, VIP, DNS)).by[0]?.startsWith('m') === true,
  );
  t.is((await agent.metrics())('headgate_repairs_total', { what: 'rules' }), 1);
  const [, table = ''] =
    /^table ip6 (headgate_[0-9a-f]{8})$/m.exec(await network.run('a', nftExecutable, 'list', 'tables')) ?? [];
  await network.run('a', nftExecutable, 'delete', 'table', 'ip6', table);
  await until(
    'IPv6 answers again',
    async () => (await askByDatagrams(network, VIP6, DNS)).by[0]?.startsWith('m') === true,
  );
});

test.serial('A nft that is killed or stopped costs no change', async (t) => {
  const { host, network } = await kernelServed(t);
  for (const signal of ['KILL', 'STOP'] as const) {
    await signalNft(network, signal);
    const members = signal === 'KILL' ? ['m2'] : ['m3'];
    await host.write('dns.yaml', dns(members, network));
    await host.until(
      'the change is carried out',
      async () => (await askByDatagrams(network, VIP, DNS)).by[0] === members[0],
    );
    t.is((await host.status()).fault, '');
  }
});

test.serial('A Service whose rules nft refuses is named, and costs no other', async (t) => {
  const { host, network, agent } = await kernelServed(t);
  await agent.stop();
  const nft = join(host.directory, 'nft');
  const refuse = `grep -q 203.0.113.77 "$last" && { echo 'Error: Could not process rule' >&2; exit 1; }`;
  const script = `#!/bin/sh\nfor last; do :; done\ncase "$*" in *-f*) ${refuse};; esac\nexec ${nftExecutable} "$@"\n`;
  await writeFile(nft, script, { mode: 0o755 });
  const refused = { loadBalancerSourceRanges: ['203.0.113.77/32'] };
  await host.write('bad.yaml', dns(['m1'], network, refused, 'bad', 54));
  await host.write('dns.yaml', dns(['m2'], network));
  await host.start(['--nft', nft]);
  await host.until('it is known', async () => (await host.why('default/bad')).problems.length > 0);
  const { verdict, problems } = await host.why('default/bad');
  t.is(verdict, 'not served');
  t.like(problems[0], {
    reason: 'ConfigurationRejected',
    message: 'nft refuses its rules: Error: Could not process rule',
  });
  await host.until(
    'the other is served',
    async () => (await askByDatagrams(network, VIP, DNS)).by[0] === 'm2',
  );
  await host.write('dns.yaml', dns(['m3'], network));
  await host.until('and follows', async () => (await askByDatagrams(network, VIP, DNS)).by[0] === 'm3');
  await host.write('bad.yaml', dns(['m1'], network, {}, 'bad', 54));
  await host.until('it is served', async () => (await askByDatagrams(network, VIP, 54)).by[0] === 'm1');
  t.is((await host.why('default/bad')).verdict, 'served');
});

test.serial('A host that does not forward packets is a problem of the Service, until it does', async (t) => {
  const { host, network } = await kernelServed(t, ['net.ipv4.ip_forward=0']);
  await host.until('it is reported', async () =>
    /set net\.ipv4\.ip_forward to 1/.test((await host.status()).fault),
  );
  const { problems } = await host.status();
  t.like(problems[0], { object: 'Service default/dns', reason: 'ProtocolNotServed' });
  await network.run('a', 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
  await host.until('the fault is over', async () => (await host.status()).fault === '', 60_000);
  t.true((await askByDatagrams(network, VIP, DNS)).by[0]?.startsWith('m'));
});

test.serial('A thousand UDP Services, and the metrics of each', async (t) => {
  const { host, network, agent } = await kernelServed(t);
  const many = Array.from({ length: 1_000 }, (_, at) =>
    dns(['m1', 'm2', 'm3'], network, {}, `dns-${at}`, 1_000 + at),
  );
  await host.write('many.yaml', many.flat());
  await host.until(
    'the last one answers',
    async () => (await askByDatagrams(network, VIP, 1_999)).by[0]?.startsWith('m') === true,
  );
  await askByDatagrams(network, VIP, 1_500, { count: 10 });
  await host.until(
    'new flows are counted',
    async () =>
      (await agent.metrics())('headgate_listener_connections_total', { service: 'dns-500', family: 'v4' }) ===
      10,
  );
  await host.write('dns.yaml', dns(['m2'], network));
  await host.until(
    'a change is carried out',
    async () => (await askByDatagrams(network, VIP, DNS)).by[0] === 'm2',
  );
  t.is((await host.status()).fault, '');
});

/** The member of the flow from FLOW_PORT. */
async function memberOf(network: TestNetwork, host: TestHost): Promise<string> {
  let name = '';
  await host.until('the flow has an entry', async () => {
    const ofFlow = ['--orig-dst', VIP, '--orig-port-src', String(FLOW_PORT)];
    const { stdout } = await network.try('a', 'conntrack', '-L', '-p', 'udp', ...ofFlow);
    const member = ['m1', 'm2', 'm3'].find((each) => stdout.includes(`src=${network.v4(each)} `));
    name = member ?? '';
    return member !== undefined;
  });
  return name;
}
