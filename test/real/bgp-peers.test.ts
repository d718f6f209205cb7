// Peers that are objects of a cluster, with real agents that have the rights of deploy/, the real BIRD, a real router and a real API
// server.

import ava from 'ava';
import { ADDRESS_API_VERSION as apiVersion } from '../../agent/kubernetes/object-names.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import { HOST_ASN, ROUTER_ASN } from '../support/bgp/test-router.ts';
import { deploy, kubeconfigOf, NAMESPACE } from '../support/kube/deploy.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { webObjects } from '../support/values/service-objects.ts';

const needs = kubeNeeds();
const test = requires(ava, {
  ...needs,
  haproxy: true,
  root: true,
  programs: [...(needs.programs ?? []), 'bird', 'ip', 'nsenter', 'ss', 'sysctl'],
});

const VIP = '198.51.100.1';
const PEERS = `/apis/${apiVersion}/bgppeers`;
const POOLS = `/apis/${apiVersion}/addresspools`;
const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t);
  await deploy(kube);
});
test.after.always(() => kube?.stop());

const peer = (name: string, spec: object) => ({ apiVersion, kind: 'BGPPeer', metadata: { name }, spec });

async function conditionOf(path: string, type: string): Promise<Readonly<Record<string, string>>> {
  const { status = {} } = await kube.must('GET', path);
  return status.conditions?.find((each: { readonly type: string }) => each.type === type) ?? {};
}

async function eventsOf(name: string): Promise<string> {
  const { items } = await kube.must('GET', '/apis/events.k8s.io/v1/namespaces/default/events');
  return items
    .filter(({ regarding }: { regarding: { name: string } }) => regarding.name === name)
    .map(({ reason, note }: { reason: string; note: string }) => `${reason} ${note}`)
    .join('\n');
}

test.serial(
  'A BGPPeer comes, changes and goes without the loss of another session, and says what is wrong',
  async (t) => {
    const config = await kubeconfigOf(kube, NAMESPACE, 'headgate');
    const world = await BgpWorld.create(t, {
      hosts: ['a'],
      flags: ['--kubeconfig', config, '--host-name', 'lb1', '--host-labels', 'rack=r1'],
      prepare: (host, network) =>
        host.write('web.yaml', webObjects({ name: 'web', address: VIP, members: [network.v4('client')] })),
    });
    const { network, router } = world;
    const a = world.host('a');
    const of = (last: number) => network.v4('a').replace(/\d+$/, String(last));
    const [here, there] = [of(244), of(253)];
    await network.run('a', 'ip', 'address', 'add', `${here}/32`, 'dev', 'eth0');
    await network.run('router', 'ip', 'address', 'add', `${there}/32`, 'dev', 'eth0');
    const second = (password: string) =>
      router.add(
        `protocol bgp second { local ${there} as ${ROUTER_ASN}; neighbor ${here} as ${HOST_ASN}; password "${password}"; connect retry time 1; error wait time 1, 2; ipv4 { import all; export none; }; }`,
      );
    await second('the right one');
    await world.leadsTo(VIP, 'a');
    await a.host.until('it leads', async () => (await a.host.status()).addresses.leading, 40_000);
    const session = async (name: string) => (await a.bgp()).sessions.find((each) => each.peer === name);
    const first = await session('tor-a');
    await kube.must('POST', POOLS, {
      ...{ apiVersion, kind: 'AddressPool', metadata: { name: 'vips' } },
      spec: { blocks: ['198.51.100.0/24'] },
    });

    // Its Secret does not exist yet, and then has another password than the router.
    const spec = {
      ...{ address: there, asn: ROUTER_ASN, source: here, passwordSecret: { name: 'tor' } },
      ...{ communities: ['65001:7'], hostSelector: { matchLabels: { rack: 'r1' } } },
    };
    await kube.must('POST', PEERS, peer('tor-b', spec));
    await until('it says that there is no Secret', async () => {
      const { status, message = '' } = await conditionOf(`${PEERS}/tor-b`, 'Established');
      return (
        status === 'False' && /lb1: the key "password" of the Secret "tor": there is no Secret/.test(message)
      );
    });
    t.is((await conditionOf(`${PEERS}/tor-b`, 'Accepted')).status, 'True');
    const secret = (password: string) => ({
      ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'tor' } },
      data: { password: btoa(`${password}\n`) },
    });
    await kube.must('POST', SECRETS, secret('a wrong one'));
    let said = '';
    await until(
      'it says that the password is another',
      async () => {
        said = (await conditionOf(`${PEERS}/tor-b`, 'Established')).message ?? '';
        return /lb1: it has another password: compare the key "password" of the Secret "tor"/.test(said);
      },
      { seen: () => `${said} ${a.agent.text.slice(-1_000)}` },
    );
    await kube.must('PATCH', `${SECRETS}/tor`, { data: secret('the right one').data });
    await until('the session is established', async () => (await session('tor-b'))?.state === 'Established', {
      seen: () => a.agent.text.slice(-1_000),
    });
    await until('the condition says so', async () => {
      const { status, message } = await conditionOf(`${PEERS}/tor-b`, 'Established');
      return status === 'True' && message === 'With 1 of 1 host';
    });
    for (const event of [/^SessionDown lb1: the key/m, /^SessionUp lb1: established$/m])
      await until(`an Event tells ${event}`, async () => event.test(await eventsOf('tor-b')));
    t.is((await kube.must('GET', `${PEERS}/tor-b`)).status.hostsUp, '1/1');
    t.true((await router.routes()).includes('(65001,7)'));
    await until('the pool says who has its routes', async () => {
      const { status, message } = await conditionOf(`${POOLS}/vips`, 'Announced');
      return status === 'True' && message === 'By 1 of 1 host, to tor-a, tor-b';
    });

    // A change that ends no session.
    const up = await session('tor-b');
    await kube.must('PATCH', `${PEERS}/tor-b`, { spec: { communities: ['65001:8'] } });
    await until('the routes have the new community', async () =>
      (await router.routes()).includes('(65001,8)'),
    );
    t.is((await session('tor-b'))?.since, up?.since);
    t.is((await session('tor-a'))?.since, first?.since, 'the other session was never lost');

    // A password with which the session does not come back is undone, and no other change waits for it.
    await kube.must('PATCH', `${SECRETS}/tor`, { data: secret('a wrong one').data });
    await until('the former password stays', async () =>
      /does not come back with what has changed/.test(await messageOfHost('tor-b')),
    );
    await until('the session is back', async () => (await session('tor-b'))?.state === 'Established');
    const communities = { communities: ['65001:9'] };
    await a.configure({}, communities);
    await until('the settings change all the same', async () =>
      (await router.routes()).includes('(65001,9)'),
    );
    t.is((await session('tor-a'))?.since, first?.since);

    // What cannot be is refused, and changes nothing.
    await kube.must('POST', PEERS, peer('tor-a', { address: of(200), asn: ROUTER_ASN }));
    await until('the settings count', async () => {
      const { status, message = '' } = await conditionOf(`${PEERS}/tor-a`, 'Accepted');
      return status === 'False' && /"tor-a" is a peer of the setting bgp, which counts/.test(message);
    });
    await until('an Event tells', async () => /Refused lb1: metadata.name/.test(await eventsOf('tor-a')));
    t.true((await a.host.status()).problems.some(({ object }) => object === 'BGPPeer tor-a'));
    await kube.must('DELETE', `${PEERS}/tor-b`);
    await until('it is gone', async () => (await session('tor-b')) === undefined);
    await until('BIRD does not have it either', async () => {
      const { lines } = await world.socketOf('a').ask('show protocols');
      return !lines.join('\n').includes('hg_tor_b');
    });
    t.is((await session('tor-a'))?.since, first?.since);
  },
);

async function messageOfHost(name: string): Promise<string> {
  const { status = {} } = await kube.must('GET', `${PEERS}/${name}`);
  return status.hosts?.[0]?.message ?? '';
}

test.serial(
  'A host with all its routers in BGPPeers keeps their sessions when its agent starts without an API server',
  async (t) => {
    const world = await BgpWorld.create(t, {
      hosts: ['a'],
      peersOf: 'objects',
      flags: ['--kubeconfig', await kubeconfigOf(kube, NAMESPACE, 'headgate'), '--host-name', 'lb2'],
      prepare: async (host, network) => {
        await host.write(
          'web.yaml',
          webObjects({ name: 'web', address: VIP, members: [network.v4('client')] }),
        );
        await kube.must(
          'POST',
          PEERS,
          peer('only', { address: network.v4('router'), asn: ROUTER_ASN, hosts: ['lb2'], bfd: {} }),
        );
      },
    });
    const a = world.host('a');
    await world.leadsTo(VIP, 'a');
    const since = async () => (await a.bgp()).sessions.map((each) => each.since).join();
    const before = await since();
    await a.agent.stop();
    await kube.killApiServer();
    a.agent = await a.host.start();
    await until('the agent reports the session', async () => (await since()) === before);
    await kube.startApiServer();
    await until('it reads objects again', async () => (await a.host.status()).api?.synced === true);
    t.is(await since(), before);
  },
);
