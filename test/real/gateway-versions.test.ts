// Clusters with the definitions of older versions of Gateway API, of the standard channel, in a real API server: what they have is
// served, what they lack is no fault, and the API server takes the statuses.

import ava from 'ava';
import { ADDRESS_API_VERSION } from '../../agent/kubernetes/object-names.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { TestHost } from '../support/host/agent.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import type { Json } from '../support/kube/fake-api.ts';
import { createGatewayClass, deployGatewayApi } from '../support/kube/gateway-api.ts';
import { kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath } from '../support/kube/kube-objects.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { asNew, gatewayJson, routeJson } from '../support/values/gateways.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true });

const GROUP = '/apis/gateway.networking.k8s.io';
const HOST = 'a.example.org';

for (const version of ['1.2.1', '1.4.0'])
  test.serial(`Gateway API ${version} is served as far as it goes, and its class says so`, async (t) => {
    const kube = await startKube(t, { leaseNamespace: true });
    t.teardown(() => kube.stop());
    await deployDefinitions(kube);
    await deployGatewayApi(kube, version);
    await createGatewayClass(kube, 'edge', 'headgate.io/gateway-controller');
    const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
    const [address, port] = [host.address(110), await freePort()];
    const [member = '', memberPort] = (await startEcho(t, 'web')).split(':');
    await kube.must('POST', `/apis/${ADDRESS_API_VERSION}/addresspools`, {
      apiVersion: ADDRESS_API_VERSION,
      kind: 'AddressPool',
      metadata: { name: 'static' },
      spec: { blocks: [address], auto: false },
    });
    // The Service is in another namespace, which takes a grant.
    await kube.must('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } });
    await kube.must('POST', servicePath('shop'), {
      metadata: { name: 'web' },
      spec: { ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
    });
    // The API server allows no loopback addresses.
    const slice = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { namespace: 'shop', name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [member], conditions: { ready: true } }],
      ports: [{ name: 'http', port: Number(memberPort), protocol: 'TCP' }],
    };
    await host.write('slice.yaml', [slice]);
    const of = `${GROUP}/v1/namespaces/default`;
    await kube.must('POST', `${GROUP}/v1beta1/namespaces/shop/referencegrants`, {
      apiVersion: 'gateway.networking.k8s.io/v1beta1',
      kind: 'ReferenceGrant',
      metadata: { name: 'routes' },
      spec: {
        from: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: 'default' }],
        to: [{ group: '', kind: 'Service' }],
      },
    });
    const gateway = gatewayJson('edge', {
      addresses: [{ type: 'IPAddress', value: address }],
      listeners: [{ name: 'http', port, protocol: 'HTTP' }],
    });
    await kube.must('POST', `${of}/gateways`, asNew(gateway));
    const route = routeJson('api', [{ name: 'edge' }], {
      hostnames: [HOST],
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: '/v1' } }],
          filters: [
            {
              type: 'RequestHeaderModifier',
              requestHeaderModifier: { set: [{ name: 'x-seen', value: 'yes' }] },
            },
          ],
          backendRefs: [{ name: 'web', namespace: 'shop', port: 80 }],
        },
      ],
    });
    await kube.must('POST', `${of}/httproutes`, asNew(route));
    const agent = await host.start();
    t.teardown(() => agent.stop());

    const ask = (url: string) =>
      request({ address, port }, url, { headers: { host: HOST } }).catch(() => undefined);
    await until('the route is served', async () => (await ask('/v1/x'))?.status === 200, { seconds: 60 });
    t.is((await ask('/v1/x'))?.echo?.headers['x-seen'], 'yes');
    t.is((await ask('/v2'))?.status, 404);

    const conditions = async (path: string): Promise<readonly string[]> => {
      const { status } = await kube.must('GET', path);
      const all: readonly Json[] = status?.parents?.[0]?.conditions ?? status?.conditions ?? [];
      return all.map(({ type, status: value, reason }) => `${type} ${value} ${reason}`).sort();
    };
    const have = (path: string, wanted: readonly string[]) =>
      until(`${path} has ${wanted.join(', ')}`, async () => {
        const found = await conditions(path);
        return wanted.every((each) => found.includes(each));
      });
    await have(`${of}/httproutes/api`, ['Accepted True Accepted', 'ResolvedRefs True ResolvedRefs']);
    await have(`${of}/gateways/edge`, ['Accepted True Accepted', 'Programmed True Programmed']);
    await have(`${GROUP}/v1/gatewayclasses/edge`, [
      'Accepted True Accepted',
      'SupportedVersion False UnsupportedVersion',
    ]);
    t.is((await host.why('gateway:default/edge')).verdict, 'served');
  });
