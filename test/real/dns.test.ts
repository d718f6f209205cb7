// Names in DNS follow Services, Gateways and Ingresses: the real external-dns reads their statuses in a real API server and
// changes a zone of a real name server. Nothing is published that is not served.

import ava, { type ExecutionContext } from 'ava';
import { ADDRESS_API_VERSION as apiVersion } from '../../agent/kubernetes/object-names.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { startExternalDns } from '../support/dns/external-dns.ts';
import { NameServer, ZONE } from '../support/dns/name-server.ts';
import { TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import type { Json } from '../support/kube/fake-api.ts';
import { createGatewayClass, deployGatewayApi } from '../support/kube/gateway-api.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath, slicePath } from '../support/kube/kube-objects.ts';
import { asNew, gatewayJson, ingressClassJson, ingressJson, routeJson } from '../support/values/gateways.ts';

const needs = kubeNeeds('external-dns');
const test = requires(ava, {
  ...needs,
  programs: [...(needs.programs ?? []), 'ip', 'bash', 'curl', 'timeout', 'knotd'],
  haproxy: true,
  root: true,
});

const POOLS = `/apis/${apiVersion}/addresspools`;
const GATEWAYS = '/apis/gateway.networking.k8s.io/v1/namespaces/default';
const INGRESSES = '/apis/networking.k8s.io/v1/namespaces/default/ingresses';
const CLASSES = '/apis/networking.k8s.io/v1/ingressclasses';
const IPS = 'headgate.io/load-balancer-ips';
const PORT = 8080;
const [WEB, SHOP, BLOG, FIRST] = ['web', 'shop', 'blog', 'first'].map((name) => `${name}.${ZONE}`) as [
  string,
  string,
  string,
  string,
];

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true });
  await deployDefinitions(kube);
  await deployGatewayApi(kube);
  await createGatewayClass(kube, 'edge', 'headgate.io/gateway-controller');
});
test.after.always(() => kube?.stop());

test.serial(
  'A name appears once its address is served, moves with it, and leaves with its object',
  async (t) => {
    const { host, server, log, serve, isServed } = await started(t);
    const shows = (name: string, address: string) =>
      until(
        `${name} is ${address}`,
        async () => {
          const found = await server.addresses(name);
          if (found.length !== 1 || found[0] !== address) return false;
          t.true(await isServed(name, address), `${address} of ${name} is served when the name appears`);
          return true;
        },
        { seen: () => log().slice(-2_000) },
      );
    const isGone = (name: string) =>
      until(`${name} is gone`, async () => (await server.addresses(name)).length === 0, {
        seen: () => log().slice(-2_000),
      });

    // The host has the address of this one only.
    await serve(111);
    await createService('first', FIRST, '10.9.0.111');
    await createService('web', WEB, '10.9.0.98');
    await kube.must('POST', `${GATEWAYS}/gateways`, asNew(gatewayJson('edge', gatewaySpec('10.9.0.99'))));
    await kube.must(
      'POST',
      `${GATEWAYS}/httproutes`,
      asNew(routeJson('shop', [{ name: 'edge' }], { hostnames: [SHOP] })),
    );
    await kube.must('POST', CLASSES, asNew(ingressClassJson('edge', { [IPS]: '10.9.0.100' })));
    await kube.must('POST', INGRESSES, asNew(ingressJson('blog', blogSpec())));
    await shows(FIRST, '10.9.0.111');
    // Its status is written a second after what is waited for.
    const programmed = async () =>
      (await kube.must('GET', `${GATEWAYS}/gateways/edge`)).status.conditions.find(
        ({ type }: Json) => type === 'Programmed',
      );
    await until(
      'the Gateway says why not',
      async () => (await programmed())?.reason === 'AddressUnavailable',
      {
        seen: () => '',
      },
    );
    await createService('second', `second.${ZONE}`, '10.9.0.111', 8081);
    await until(
      'external-dns has seen all',
      async () => (await server.addresses(`second.${ZONE}`)).length === 1,
    );
    for (const name of [WEB, SHOP, BLOG])
      t.deepEqual(await server.addresses(name), [], `${name} is not served`);

    for (const last of [98, 99, 100]) await serve(last);
    await shows(WEB, '10.9.0.98');
    await shows(SHOP, '10.9.0.99');
    await shows(BLOG, '10.9.0.100');

    // Clients of this one come over a NAT.
    await kube.must('POST', POOLS, {
      apiVersion,
      kind: 'AddressPool',
      metadata: { name: 'floating' },
      spec: { blocks: ['10.9.0.112'], public: { from: '203.0.113.9' } },
    });
    await serve(112);
    await createService('out', `out.${ZONE}`, '10.9.0.112');
    await until('its name is the public address', async () =>
      (await server.addresses(`out.${ZONE}`)).includes('203.0.113.9'),
    );

    for (const last of [102, 103, 104]) await serve(last);
    const moved = { metadata: { annotations: { [IPS]: '10.9.0.102' } } };
    await kube.must('PATCH', servicePath('default', 'web'), moved);
    await kube.must('PATCH', `${GATEWAYS}/gateways/edge`, { spec: gatewaySpec('10.9.0.103') });
    await kube.must('PATCH', `${CLASSES}/edge`, { metadata: { annotations: { [IPS]: '10.9.0.104' } } });
    await shows(WEB, '10.9.0.102');
    await shows(SHOP, '10.9.0.103');
    await shows(BLOG, '10.9.0.104');

    // Neither a fault nor the time until it is mended makes names come and go.
    process.kill(await host.master(), 'SIGKILL');
    await until('HAProxy serves again', () => isServed(WEB, '10.9.0.102'));
    for (const name of [WEB, SHOP, BLOG]) t.is((await server.addresses(name)).length, 1, name);

    // The host has no such address: the former one is not served any more, and the next one is not yet.
    await kube.must('PATCH', `${CLASSES}/edge`, { metadata: { annotations: { [IPS]: '10.9.0.105' } } });
    await isGone(BLOG);
    await kube.must('PATCH', `${CLASSES}/edge`, { metadata: { annotations: { [IPS]: '10.9.0.104' } } });
    await shows(BLOG, '10.9.0.104');

    await kube.must('DELETE', servicePath('default', 'web'));
    await kube.must('DELETE', `${GATEWAYS}/httproutes/shop`);
    await kube.must('DELETE', `${INGRESSES}/blog`);
    for (const name of [WEB, SHOP, BLOG]) await isGone(name);
    t.deepEqual(await server.addresses(FIRST), ['10.9.0.111'], 'others stay');
    t.notRegex(log(), /level=error/);
  },
);

async function started(t: ExecutionContext) {
  const network = await TestNetwork.create(t, ['client', 'a', 'm1']);
  network.serve('m1', PORT);
  const server = await NameServer.start(t);
  const host = await TestHost.create(t, {
    flags: ['--kubeconfig', kube.kubeconfig, '--netns', network.netns('a')],
  });
  const agent = await host.start();
  t.teardown(async () => {
    if (!agent.hasExited) await agent.stop();
  });
  await host.until('it leads', async () => (await host.status()).addresses.leading, 40_000);
  await kube.must('POST', POOLS, {
    apiVersion,
    kind: 'AddressPool',
    metadata: { name: 'all' },
    spec: { blocks: ['10.9.0.96/28'], shareAcrossNamespaces: true },
  });
  await kube.must('POST', slicePath('default'), slice('backend', network.v4('m1')));
  await kube.must('POST', servicePath('default'), {
    metadata: { name: 'backend' },
    spec: { ports: [{ name: 'tcp', port: 80, targetPort: PORT, protocol: 'TCP' }] },
  });
  members = network.v4('m1');
  const log = await startExternalDns(t, kube, server);
  /** Any answer of the load balancer. */
  const isServed = async (name: string, address: string): Promise<boolean> => {
    if (name === BLOG || name === SHOP) {
      const url = `http://${name}/`;
      const { stdout } = await network.try(
        'client',
        ...(['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', '--max-time', '3'] as const),
        ...['--resolve', `${name}:80:${address}`, url],
      );
      return stdout !== '000';
    }
    return (await network.whoServes(address, PORT)) === 'm1';
  };
  return {
    host,
    server,
    log,
    isServed,
    serve: (last: number) => network.run('a', 'ip', 'address', 'add', `10.9.0.${last}/32`, 'dev', 'eth0'),
  };
}

let members = '';

const slice = (name: string, address: string) => ({
  metadata: { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
  addressType: 'IPv4',
  endpoints: [{ addresses: [address], conditions: { ready: true } }],
  ports: [{ name: 'tcp', port: PORT, protocol: 'TCP' }],
});

async function createService(name: string, hostname: string, address: string, port = PORT): Promise<void> {
  await kube.must('POST', servicePath('default'), {
    metadata: {
      name,
      annotations: {
        'external-dns.kubernetes.io/hostname': hostname,
        [IPS]: address,
        'headgate.io/address-sharing-key': 'one',
      },
    },
    spec: { type: 'LoadBalancer', ports: [{ name: 'tcp', port, targetPort: PORT, protocol: 'TCP' }] },
  });
  await kube.must('POST', slicePath('default'), slice(name, members));
}

const gatewaySpec = (value: string) => ({
  addresses: [{ type: 'IPAddress', value }],
  listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
});

const blogSpec = () => ({
  rules: [
    {
      host: BLOG,
      http: {
        paths: [
          { path: '/', pathType: 'Prefix', backend: { service: { name: 'backend', port: { number: 80 } } } },
        ],
      },
    },
  ],
});
