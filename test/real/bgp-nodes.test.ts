// `announceFrom` of a pool by labels: pools and Nodes of a real API server, the Service in a folder, agents with the real BIRD.

import ava from 'ava';
import { ADDRESS_API_VERSION as apiVersion } from '../../agent/kubernetes/object-names.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { VIP_PORT, webObjects } from '../support/values/service-objects.ts';

const test = requires(ava, {
  ...kubeNeeds(),
  haproxy: true,
  root: true,
  programs: [...(kubeNeeds().programs ?? []), 'bird', 'ip', 'nft', 'nsenter', 'openssl', 'ss', 'sysctl'],
});

const VIP = '198.51.100.1';
const NODES = '/api/v1/nodes';

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true });
  await deployDefinitions(kube);
});
test.after.always(() => kube?.stop());

test.serial(
  'A VIP is announced by those hosts whose Nodes have the labels of its pool, from the change of a label on',
  async (t) => {
    t.timeout(180_000);
    const node = (name: string, rack: string) =>
      kube.must('POST', NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { rack } } });
    await node('a', 'r1');
    await node('b', 'r2');
    const announceFrom = { hostSelector: { matchLabels: { rack: 'r1' } } };
    await kube.must('POST', `/apis/${apiVersion}/addresspools`, {
      apiVersion,
      kind: 'AddressPool',
      metadata: { name: 'racks' },
      spec: { blocks: ['198.51.100.0/24'], bgp: { announceFrom } },
    });
    const world = await BgpWorld.create(t, {
      group: true,
      flags: ['--kubeconfig', kube.kubeconfig],
      prepare: (host, network) =>
        host.write('web.yaml', webObjects({ address: VIP, members: [network.v4('client')] })),
    });
    const label = (name: string, rack: string) =>
      kube.must('PATCH', `${NODES}/${name}`, { metadata: { labels: { rack } } });
    const says = (name: string, pattern: RegExp) =>
      until(`${name} says why`, async () =>
        pattern.test((await world.host(name).host.why()).announced.join()),
      );
    await world.leadsTo(VIP, 'a');
    t.is(await world.network.whoServes(VIP, VIP_PORT), 'member');
    await says('b', /"announceFrom" of the pool racks does not select this host, b/);
    await label('b', 'r1');
    await world.leadsTo(VIP, 'a', 'b');
    await label('a', 'r2');
    await world.leadsTo(VIP, 'b');
    await says('a', /"announceFrom" of the pool racks does not select this host, a/);
    // A Node that is gone has no labels.
    await kube.must('DELETE', `${NODES}/b`);
    await world.leadsTo(VIP);
  },
);
