// Two load-balancer hosts on one cluster with a Gateway: both serve it at the same address, one of them writes the statuses,
// and the other one continues when that one dies.

import { join } from 'node:path';
import ava from 'ava';
import { ADDRESS_API_VERSION } from '../../agent/kubernetes/object-names.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { aloneInItsNetwork } from '../support/haproxy/alone-in-its-network.ts';
import { TestHost } from '../support/host/agent.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import type { Json } from '../support/kube/fake-api.ts';
import { createGatewayClass, deployGatewayApi } from '../support/kube/gateway-api.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { each } from '../support/kube/kube-objects.ts';
import { asNew, gatewayJson, routeJson } from '../support/values/gateways.ts';

const needs = kubeNeeds();
const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: [...(needs.programs ?? []), 'unshare', 'ip'],
});

const ROUTES = 5;
const IN_DEFAULT = '/apis/gateway.networking.k8s.io/v1/namespaces/default';
const KEY = 'gateway:default/edge';

let kube: Kube;
test.before(async (t) => {
  const groups = ['system:masters'];
  kube = await startKube(t, { audit: true, users: { one: groups, two: groups }, leaseNamespace: true });
  await deployDefinitions(kube);
  await deployGatewayApi(kube);
  await createGatewayClass(kube, 'edge', 'headgate.io/gateway-controller');
});
test.after.always(() => kube?.stop());

// Conformance: two agents on one cluster
test.serial(
  'Both hosts serve a Gateway at one address; another host writes on when the writer dies',
  async (t) => {
    t.timeout(180_000);
    const hosts = [await hostOf('one'), await hostOf('two')] as const;
    await kube.must('POST', `/apis/${ADDRESS_API_VERSION}/addresspools`, {
      apiVersion: ADDRESS_API_VERSION,
      kind: 'AddressPool',
      metadata: { name: 'both' },
      spec: { blocks: [`${hosts[0].address(0).replace(/\d+$/, '64')}/26`] },
    });
    await kube.must('POST', `${IN_DEFAULT}/gateways`, asNew(gatewayJson()));
    const create = (at: number) =>
      kube.must('POST', `${IN_DEFAULT}/httproutes`, asNew(routeJson(`r${at}`, [{ name: 'edge' }])));
    await each(ROUTES, create);
    const agents = await Promise.all(hosts.map((host) => host.start()));
    const gateway = async (): Promise<Json> => (await kube.must('GET', `${IN_DEFAULT}/gateways/edge`)).status;
    const attached = async () => (await gateway()).listeners?.[0]?.attachedRoutes;
    const isProgrammed = async () =>
      (await gateway()).conditions?.some(
        ({ type, status }: Json) => type === 'Programmed' && status === 'True',
      ) === true;
    await until('the status is whole', async () => (await attached()) === ROUTES && (await isProgrammed()), {
      seconds: 60,
    });
    const published = (await gateway()).addresses.map(({ value }: Json) => value);
    t.is(published.length, 1);
    for (const host of hosts) {
      // Its routes lead to no Service.
      await host.until('it is served', async () => (await host.why(KEY)).verdict === 'served in part');
      t.deepEqual((await host.why(KEY)).addresses, published);
    }
    // On a busy host the first one may hand the Lease on, as long as its HAProxy is not up.
    const turns = (await statusWrites())
      .map(({ user }) => user)
      .filter((user, at, all) => user !== all[at - 1]);
    t.deepEqual(turns, [...new Set(turns)], 'one writes after the other');
    const writer = turns.at(-1);

    const [dying, next] = writer === 'one' ? [agents[0], 'two'] : [agents[1], 'one'];
    const before = (await kube.writes()).length;
    await dying?.kill();
    await create(ROUTES);
    await until('the other one writes', async () => (await attached()) === ROUTES + 1, { seconds: 60 });
    t.deepEqual(await writers(before), [next]);
    t.deepEqual(
      (await gateway()).addresses.map(({ value }: Json) => value),
      published,
    );
    // What the first one had written was as the second one wanted it.
    const rewritten = (await statusWrites(before)).filter(({ resource }) => resource === 'httproutes/status');
    t.deepEqual(
      rewritten.map(({ name }) => name),
      [`r${ROUTES}`],
    );

    async function hostOf(user: string): Promise<TestHost> {
      const kubeconfig = join(kube.directory, `${user}.kubeconfig`);
      await kube.writeKubeconfig(kubeconfig, { token: `${user}-token` });
      return TestHost.create(t, { flags: ['--kubeconfig', kubeconfig], haproxy: aloneInItsNetwork });
    }
  },
);

async function statusWrites(from = 0) {
  const all = (await kube.writes()).slice(from);
  return all.filter(({ resource }) => /^(gatewayclasses|gateways|httproutes)\/status$/.test(resource));
}

/** The users that have written statuses. */
async function writers(from = 0): Promise<readonly string[]> {
  return [...new Set((await statusWrites(from)).map(({ user }) => user))];
}
