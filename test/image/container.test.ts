// Runs the container image HEADGATE_CONTAINER, which `make container` has built, on hosts beside a client and a member.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { Container } from '../support/host/container.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { MEMBER_PORT, webObjects } from '../support/values/service-objects.ts';

const test = requires(ava, { root: true, programs: ['buildah', 'unshare', 'curl'] });

const image = process.env.HEADGATE_CONTAINER ?? '';
const MEMBER = `require('http').createServer((_, response) => response.end('the member')).listen(${MEMBER_PORT})`;
const ANCHOR = '10.9.0.1';
const VIP = '10.9.1.1';

test.serial(
  'A container serves a request, its HAProxy outlives the agent, and it ends with SIGTERM',
  async (t) => {
    t.timeout(240_000);
    const network = await TestNetwork.create(t, ['lb', 'client', 'member']);
    network.start('member', process.execPath, '-e', MEMBER);
    const vip = network.v4('lb');
    const objects = webObjects({ address: vip, port: 80, members: [network.v4('member')] });
    const container = await Container.start(t, { image, network, host: 'lb', objects });
    const get = async (host: string, url: string) =>
      (await network.try(host, 'curl', '-s', '-m', '3', url)).stdout;
    const ask = () => get('client', `http://${vip}/`);
    await until('the member answers', async () => (await ask()) === 'the member', {
      seconds: 60,
      seen: () => container.log,
    });

    const before = await container.processes();
    const { had, given } = await container.capabilities(before.agent);
    t.is(had, given);
    process.kill(before.agent, 'SIGKILL');
    await until('another agent runs', async () => {
      const { agent } = await container.processes();
      return agent > 0 && agent !== before.agent;
    });
    t.is(await ask(), 'the member');
    t.is((await container.processes()).haproxy, before.haproxy);
    const scrape = () => get('lb', 'http://127.0.0.1:9180/metrics');
    await until('it answers a scrape', async () => /^headgate_build_info/m.test(await scrape()));
    t.is(await container.written(), '');
    t.is(await container.stop(), 0, container.log);
  },
);

test.serial('Two containers are a pair: when one ends, the other serves its addresses', async (t) => {
  t.timeout(240_000);
  const network = await TestNetwork.create(t, ['one', 'two', 'client', 'member']);
  network.start('member', process.execPath, '-e', MEMBER);
  const objects = webObjects({ address: VIP, port: 80, members: [network.v4('member')] });
  const start = (host: string, peer: string, priority: number) => {
    const [address, other] = [network.v4(host), network.v4(peer)];
    // As the chart writes them.
    const vrrp = {
      interface: 'eth0',
      address,
      peers: [other],
      virtualRouterId: 51,
      anchors: [ANCHOR],
      priority,
    };
    return Container.start(t, { image, network, host, objects, settings: { vrrp } });
  };
  const one = await start('one', 'two', 210);
  const two = await start('two', 'one', 200);
  await network.run('client', 'ip', 'route', 'add', `${VIP}/32`, 'dev', 'eth0');
  const ask = async () => (await network.try('client', 'curl', '-s', '-m', '1', `http://${VIP}/`)).stdout;
  const isHeldBy = async (host: string) => (await network.held(host)).includes(VIP);
  await until('the first one serves', async () => (await isHeldBy('one')) && (await ask()) === 'the member', {
    seconds: 90,
    seen: () => `${one.log}\n${two.log}`,
  });
  t.is(await two.written(), '');
  t.is(await one.stop(), 0, one.log);
  await until('the other one serves', async () => (await isHeldBy('two')) && (await ask()) === 'the member', {
    seconds: 60,
    seen: () => two.log,
  });
  t.is(await two.stop(), 0, two.log);
});
