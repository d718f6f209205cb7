// What authors of Gateways and routes are told of conflicts, on a real API server: the condition, the Event and `why` of each.

import ava from 'ava';
import { ADDRESS_API_VERSION } from '../../agent/kubernetes/object-names.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { TestHost } from '../support/host/agent.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import type { Json } from '../support/kube/fake-api.ts';
import { createGatewayClass, deployGatewayApi } from '../support/kube/gateway-api.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath } from '../support/kube/kube-objects.ts';
import { asNew, gatewayJson, routeJson } from '../support/values/gateways.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true });

const GROUP = '/apis/gateway.networking.k8s.io/v1';
const GATEWAY_API = `${GROUP}/namespaces/default`;
const PARENT = [{ name: 'a-edge', sectionName: 'http' }];

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true });
  await deployDefinitions(kube);
  await deployGatewayApi(kube);
  await createGatewayClass(kube, 'edge', 'headgate.io/gateway-controller');
});
test.after.always(() => kube?.stop());

test.serial('Authors are told of conflicts by a condition, an Event and `why`', async (t) => {
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
  const address = host.address(110);
  await kube.must('POST', `/apis/${ADDRESS_API_VERSION}/addresspools`, {
    apiVersion: ADDRESS_API_VERSION,
    kind: 'AddressPool',
    metadata: { name: 'static' },
    spec: { blocks: [address], auto: false },
  });
  const at = { addresses: [{ type: 'IPAddress', value: address }] };
  const secret = {
    metadata: { name: 'broken' },
    type: 'kubernetes.io/tls',
    stringData: { 'tls.crt': 'x', 'tls.key': 'y' },
  };
  await kube.must('POST', '/api/v1/namespaces/default/secrets', secret);
  await kube.must('POST', servicePath('default'), {
    metadata: { name: 'web' },
    spec: { ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
  });
  const http = { name: 'http', port: 8090, protocol: 'HTTP' };
  const tls = { name: 'tls', port: 8443, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'broken' }] } };
  // The name decides between objects of one second, which is as the order of their creation here.
  await create('gateways', gatewayJson('a-edge', { ...at, listeners: [http, tls] }));
  await create('httproutes', routeJson('a-first', PARENT));
  await create('httproutes', routeJson('b-second', PARENT));
  await create('grpcroutes', routeJson('c-grpc', PARENT, {}, 'GRPCRoute'));
  const agent = await host.start();
  // It gives the lead back, so that the next one need not wait for it.
  t.teardown(() => agent.stop());
  await until(
    'the first Gateway has its address',
    async () => (await read('gateways/a-edge')).status?.addresses?.length === 1,
    { seconds: 60 },
  );
  await create('gateways', gatewayJson('b-edge', { ...at, listeners: [http] }));

  let events: readonly string[] = [];
  await until(
    'the Events are there',
    async () => {
      events = await eventsOf();
      return EVENTS.every((wanted) => events.some((each) => wanted.test(each)));
    },
    { seconds: 60, seen: () => events.join('\n') },
  );
  const why = async (name: string) => (await host.command('why', [name])).stdout;

  t.regex(await conditions('gateways/a-edge', 'tls'), /ResolvedRefs False InvalidCertificateRef/);
  await until('the good listener is programmed', async () =>
    /Programmed True/.test(await conditions('gateways/a-edge', 'http')),
  );
  t.regex(await why('gateway:default/a-edge'), /listener "tls" \(port 8443\)/);

  t.regex(await conditions('gateways/b-edge', 'http'), /Programmed False/);
  t.regex(await why('gateway:default/b-edge'), /not served[\s\S]*Gateway "default\/a-edge" has it/);

  const second = await why('HTTPRoute/default/b-second');
  t.regex(second, /gets no request: the older HTTPRoute default\/a-first has the same one/);
  t.regex(
    await parents('httproutes/b-second'),
    /Accepted True/,
    'the specification has no condition for this',
  );

  t.regex(await parents('grpcroutes/c-grpc'), /Accepted False HostnameConflict/);
  t.regex(
    await why('GRPCRoute/default/c-grpc'),
    /not served[\s\S]*not Accepted \(HostnameConflict\): An older HTTPRoute/,
  );

  const request = await why('http://example.org:8090/');
  t.regex(request, /Gateway default\/a-edge on .*, listener "http"\n.*HTTPRoute default\/a-first#0 .*\n/);
});

test.serial(
  'With hostsOfOneNamespace the author of a later namespace is told, and gets the host when it is free',
  async (t) => {
    const flags = ['--kubeconfig', kube.kubeconfig, '--hosts-of-one-namespace'];
    const host = await TestHost.create(t, { flags });
    const parent = [{ name: 'shared', namespace: 'default' }];
    const listener = {
      name: 'http',
      port: 8091,
      protocol: 'HTTP',
      allowedRoutes: { namespaces: { from: 'All' } },
    };
    await create('gateways', gatewayJson('shared', { listeners: [listener] }));
    const routesOf = (namespace: string) => `${GROUP}/namespaces/${namespace}/httproutes`;
    const make = async (namespace: string, hostnames: readonly string[]) => {
      const route = routeJson(namespace, parent, { hostnames });
      const metadata = { namespace, name: namespace };
      await kube.must('POST', routesOf(namespace), asNew({ ...route, metadata }));
    };
    // The name of the namespace decides between objects of one second, which is as the order of their creation here.
    for (const namespace of ['one', 'two'])
      await kube.must('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
    await make('one', ['shop.example.org']);
    await make('two', ['shop.example.org']);
    const agent = await host.start();
    t.teardown(async () => {
      if (!agent.hasExited) await agent.stop();
    });
    const accepted = async (namespace: string): Promise<string> => {
      const { status } = await kube.must('GET', `${routesOf(namespace)}/${namespace}`);
      return inWords(status?.parents?.[0]?.conditions);
    };
    const becomes = (namespace: string, wanted: RegExp) =>
      until(`${namespace}: ${wanted}`, async () => wanted.test(await accepted(namespace)), { seconds: 60 });
    await becomes('one', /Accepted True Accepted/);
    await becomes('two', /Accepted False HostnameConflict/);
    await until('the Event is there', async () => {
      const { items } = await kube.must('GET', '/apis/events.k8s.io/v1/namespaces/two/events');
      return items.some(
        ({ reason, note }: Json) =>
          reason === 'RouteShadowed' && note.includes('older route of namespace "one"'),
      );
    });
    t.regex((await host.command('why', ['HTTPRoute/two/two'])).stdout, /each host belongs to one namespace/);

    // For its other host it is served.
    await kube.must('PATCH', `${routesOf('two')}/two`, {
      spec: { hostnames: ['shop.example.org', 'own.example.org'] },
    });
    await becomes('two', /Accepted True Accepted/);
    t.regex((await host.command('why', ['HTTPRoute/two/two'])).stdout, /Cannot attach all hosts/);

    await kube.must('DELETE', `${routesOf('one')}/one`);
    await until('the host is free', async () => {
      const { stdout } = await host.command('why', ['HTTPRoute/two/two']);
      return !stdout.includes('Cannot attach');
    });
    t.regex(await accepted('two'), /Accepted True Accepted/);
  },
);

/** Kind, name, type, reason and note. */
const EVENTS = [
  /^Gateway a-edge Normal Allocated The Gateway has the addresses /,
  /^Gateway a-edge Warning InvalidListener .*listener "tls" \(port 8443\)/,
  /^Gateway b-edge Warning AddressInUse Cannot give .*: Gateway "default\/a-edge" has it/,
  /^HTTPRoute b-second Warning RouteShadowed Path "\/" of host "\*" gets no request/,
  /^GRPCRoute c-grpc Warning RouteShadowed Cannot attach to listener "http": An older HTTPRoute/,
];

async function eventsOf(): Promise<readonly string[]> {
  const { items } = await kube.must('GET', '/apis/events.k8s.io/v1/namespaces/default/events');
  return items.map(
    ({ regarding, type, reason, note }: Json) =>
      `${regarding.kind} ${regarding.name} ${type} ${reason} ${note}`,
  );
}

const read = (path: string): Promise<Json> => kube.must('GET', `${GATEWAY_API}/${path}`);

function create(plural: string, object: Json): Promise<Json> {
  return kube.must('POST', `${GATEWAY_API}/${plural}`, asNew(object));
}

/** The conditions of a listener of a Gateway, one a line. */
async function conditions(path: string, listener: string): Promise<string> {
  const { status } = await read(path);
  return inWords(status?.listeners?.find(({ name }: Json) => name === listener)?.conditions);
}

async function parents(path: string): Promise<string> {
  return inWords((await read(path)).status?.parents?.[0]?.conditions);
}

function inWords(all: readonly Json[] = []): string {
  return all.map(({ type, status, reason }) => `${type} ${status} ${reason}`).join('\n');
}
