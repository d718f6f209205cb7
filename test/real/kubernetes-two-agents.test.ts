// Two load-balancer hosts on one cluster: both serve the same, one of them writes to the cluster, and the other one
// takes over when that one dies. Each HAProxy has a network namespace of its own, since both listen on the same VIPs.

import { join } from 'node:path';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { aloneInItsNetwork } from '../support/haproxy/alone-in-its-network.ts';
import { type RunningAgent, TestHost } from '../support/host/agent.ts';
import { type AuditedWrite, type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { each, serviceJson, servicePath, sliceJson, slicePath } from '../support/kube/kube-objects.ts';

const needs = kubeNeeds();
const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: [...(needs.programs ?? []), 'unshare', 'ip'],
});

const SERVICES = 12;
const LEASE = '/apis/coordination.k8s.io/v1/namespaces/headgate-system/leases/headgate';

let kube: Kube;
test.before(async (t) => {
  const groups = ['system:masters'];
  kube = await startKube(t, { audit: true, users: { one: groups, two: groups }, leaseNamespace: true });
});
test.after.always(() => kube?.stop());

// Conformance: two agents on one cluster
test.serial(
  'Two agents serve the same, one writes and reports problems, and the other one takes over when it is killed',
  async (t) => {
    const hosts = [await hostOf('one'), await hostOf('two')] as const;
    t.timeout(120_000);
    const address = (index: number) => hosts[0].address(index + 1);
    const create = (index: number) =>
      kube.must(
        'POST',
        servicePath('default'),
        serviceJson(`s${index}`, { 'headgate.io/load-balancer-ips': address(index) }),
      );
    await each(SERVICES, async (index) => {
      await create(index);
      await kube.must(
        'POST',
        slicePath('default'),
        sliceJson(`s${index}`, [`10.6.0.${index + 1}`, '10.6.1.1']),
      );
    });
    const agents = await Promise.all(hosts.map((host) => host.start()));
    for (const host of hosts)
      await host.until('all is served', async () => (await host.servers()).length === 2 * SERVICES);
    await hosts[0].until('all is told', async () => (await told()) === SERVICES, 30_000);

    // Changes that come to each at its own pace.
    await each(SERVICES, (index) =>
      kube.must(
        'PUT',
        slicePath('default', `s${index}-1`),
        sliceJson(`s${index}`, ['10.6.1.1', `10.6.2.${index + 1}`]),
      ),
    );
    await create(SERVICES);
    for (const host of hosts) {
      await host.until('the new ones are there', async () => {
        const servers = (await host.servers()).map(({ server }) => server);
        return (
          servers.length === 2 * SERVICES &&
          servers.filter((name) => name.startsWith('10.6.2.')).length === SERVICES
        );
      });
    }
    await hosts[0].until('the files are the same', async () => {
      const [one = '', two = ''] = await Promise.all(hosts.map(bytes));
      return one === two;
    });
    t.regex(await bytes(hosts[0]), /listen default:s12:tcp:80:v4/);
    await hosts[0].until('all is told', async () => (await told()) === SERVICES + 1, 30_000);

    const before = writers(await kube.writes());
    t.is(before.length, 1, before.join());
    const [leader = ''] = before;
    const [dying, living] = leader === 'one' ? [agents[0], agents[1]] : [agents[1], agents[0]];
    t.true(writesTo(dying) && !writesTo(living));
    const { spec: old } = await kube.must('GET', LEASE);

    await makeWrong('s0');
    await hosts[0].until('what is wrong is told', async () => (await warnings('s0')).length === 1);
    const count = (await kube.writes()).length;
    await dying?.kill();
    // There is no leader now.
    await makeWrong('s1');
    await create(SERVICES + 1);
    await hosts[0].until('the other one writes', async () => (await told()) === SERVICES + 2, 40_000);
    const after = writers((await kube.writes()).slice(count));
    t.deepEqual(after, [leader === 'one' ? 'two' : 'one']);
    const { spec } = await kube.must('GET', LEASE);
    t.not(spec.holderIdentity, old.holderIdentity);
    t.is(spec.leaseTransitions, old.leaseTransitions + 1);
    // What the first one had written was as the second one wanted it.
    const again = (await kube.writes())
      .slice(count)
      .filter(({ resource, name }) => resource === 'services/status' && name !== `s${SERVICES + 1}`);
    t.deepEqual(again, []);
    await hosts[0].until(
      'what went wrong meanwhile is told',
      async () => (await warnings('s1')).length === 1,
    );
    t.deepEqual(await warnings('s0'), [1], 'told again');

    async function hostOf(user: string): Promise<TestHost> {
      const kubeconfig = join(kube.directory, `${user}.kubeconfig`);
      await kube.writeKubeconfig(kubeconfig, { token: `${user}-token` });
      return TestHost.create(t, { flags: ['--kubeconfig', kubeconfig], haproxy: aloneInItsNetwork });
    }
  },
);

async function makeWrong(name: string): Promise<void> {
  await kube.must('PATCH', servicePath('default', name), {
    metadata: { annotations: { 'headgate.io/weigth': '1' } },
  });
}

/** How often each Event that warns of an annotation says so. */
async function warnings(name: string): Promise<readonly number[]> {
  const selector = encodeURIComponent(`involvedObject.name=${name},reason=InvalidAnnotation`);
  const { items } = await kube.must('GET', `/api/v1/namespaces/default/events?fieldSelector=${selector}`);
  return items.map(({ series }: { readonly series?: { readonly count: number } }) => series?.count ?? 1);
}

/** haproxy.cfg without what is the host's own: the paths of its sockets, and the hash of the whole with them. */
async function bytes(host: TestHost): Promise<string> {
  return (await host.config()).replaceAll(host.directory, '').replace(/^ {4}description .*$/m, '');
}

/** How many Services say that they are served. */
async function told(): Promise<number> {
  const { items } = await kube.must('GET', servicePath('default'));
  const isTold = ({ type, status }: { readonly type: string; readonly status: string }): boolean =>
    type === 'headgate.io/Programmed' && status === 'True';
  return items.filter((item: { status: { conditions?: never[] } }) => item.status.conditions?.some(isTold))
    .length;
}

/** The agents that have written to Services or told Events. */
function writers(writes: readonly AuditedWrite[]): readonly string[] {
  const own = writes.filter(({ user, resource }) => user !== 'admin' && /^(services|events)/.test(resource));
  return [...new Set(own.map(({ user }) => user))].filter((user) => ['one', 'two'].includes(user));
}

function writesTo(agent: RunningAgent | undefined): boolean {
  return agent?.hasLogged('This agent writes to the cluster now') ?? false;
}
