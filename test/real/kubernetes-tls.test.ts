// TLS with Secrets of a real API server, which the agent reads with its own account.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { apply, deploy, kubeconfigOf, NAMESPACE } from '../support/kube/deploy.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath, sliceJson } from '../support/kube/kube-objects.ts';
import { Authority, askInTls, configMap, shown, startEcho, tlsSecret } from '../support/traffic/tls.ts';
import { MEMBER_PORT, VIP_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true, programs: ['openssl'] });

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t);
});
test.after.always(() => kube?.stop());

const SECRETS = '/api/v1/namespaces/default/secrets';

test.serial(
  'Secrets are read with the right to them, and a certificate outlives its Secret and its API server',
  async (t) => {
    await deploy(kube);
    const kubeconfig = await kubeconfigOf(kube, NAMESPACE, 'headgate');
    const host = await TestHost.create(t, { flags: ['--kubeconfig', kubeconfig] });
    const authority = await Authority.create(t);
    const [first, second, third] = await Promise.all(
      [1, 2, 3].map(() => authority.issue({ names: ['web.example'] })),
    );
    if (first === undefined || second === undefined || third === undefined)
      throw new Error('No certificates');
    await startEcho(t, host.address(11));
    const annotations = {
      'headgate.io/load-balancer-ips': host.address(1),
      'headgate.io/mode': 'https',
      'headgate.io/tls-certificate': 'web-tls',
      'headgate.io/tls-client-certificates': 'optional',
      'headgate.io/tls-client-ca': 'clients',
    };
    const ports = [{ name: 'http', port: VIP_PORT, protocol: 'TCP' }];
    const service = { metadata: { name: 'web', annotations }, spec: { type: 'LoadBalancer', ports } };
    const slice = sliceJson('web', [host.address(11)]);
    await kube.must('POST', servicePath('default'), service);
    // The API server allows no loopback addresses.
    const slicePorts = [{ name: 'http', port: MEMBER_PORT, protocol: 'TCP' }];
    const members = { ...slice, apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', ports: slicePorts };
    await host.write('slice.yaml', [members]);
    await kube.must('POST', SECRETS, tlsSecret('web-tls', first));
    await kube.must('POST', '/api/v1/namespaces/default/configmaps', configMap('clients', authority.cert));

    const agent = await host.start();
    const place = { ...host.place(), from: host.address(99) };
    const trust = { ca: authority.cert, servername: 'web.example' };
    const reasons = async () => (await host.why()).reasons.join('\n');
    await host.until('the missing right is named', async () =>
      (await reasons()).includes('(403): apply deploy/tls/'),
    );
    await apply(kube, 'tls/namespace.yaml', 'default');
    await host.until('it is served', async () => (await shown(place, trust)) === first.cert);
    t.true((await askInTls(place, trust)).startsWith('HTTP/1.1 200'));
    const worker = await host.worker();

    await kube.must('PUT', `${SECRETS}/web-tls`, tlsSecret('web-tls', second));
    await host.soon('the new one is served', async () => (await shown(place, trust)) === second.cert);
    await kube.must('DELETE', `${SECRETS}/web-tls`);
    await host.soon('the loss is reported', async () =>
      (await reasons()).includes('there is no Secret of this name'),
    );
    t.is(await shown(place, trust), second.cert);
    const condition = async () => {
      const { status } = await kube.must('GET', servicePath('default', 'web'));
      const all: readonly { readonly type: string; readonly status: string; readonly reason: string }[] =
        status.conditions ?? [];
      return all.find(({ type }) => type === 'headgate.io/Programmed');
    };
    await host.until(
      'its condition says so',
      async () => (await condition())?.reason === 'CertificateMissing',
    );
    t.is((await condition())?.status, 'True');
    const query = encodeURIComponent('involvedObject.name=web');
    await host.until('an Event says so', async () => {
      const { items } = await kube.must('GET', `/api/v1/namespaces/default/events?fieldSelector=${query}`);
      return items.some(({ reason }: { readonly reason: string }) => reason === 'CertificateMissing');
    });
    await kube.must('POST', SECRETS, tlsSecret('web-tls', third));
    await host.soon('its next one is served', async () => (await shown(place, trust)) === third.cert);
    t.is(await host.worker(), worker, 'Without a reload');

    await agent.stop();
    await kube.killApiServer();
    await host.start();
    t.is(await shown(place, trust), third.cert);
    t.is(await host.worker(), worker, 'The new agent leaves it as it is');
    t.is((await host.why()).verdict, 'served');
    for (const file of await host.filesInState()) t.false(file.includes(third.key.split('\n')[1] ?? ''));
  },
);
