// `headgate plan --cluster` with a real API server: what a folder over the objects of the cluster would change.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava from 'ava';
import type { PlanAnswer } from '../../agent/cli/plan/answer.ts';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { Authority, tlsSecret } from '../support/traffic/tls.ts';
import { jwksOf, signer } from '../support/values/tokens.ts';

const test = requires(ava, { ...kubeNeeds('openssl') });

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true, audit: true });
  await deployDefinitions(kube);
});
test.after.always(() => kube?.stop());

const INGRESSES = '/apis/networking.k8s.io/v1/namespaces/default/ingresses';
const NGINX = 'nginx.ingress.kubernetes.io';

function ingress(annotations: Readonly<Record<string, string>>, service: string): object {
  const backend = { service: { name: service, port: { number: 80 } } };
  const http = { paths: [{ path: '/', pathType: 'Prefix', backend }] };
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: { name: 'shop', namespace: 'default', annotations },
    spec: {
      ingressClassName: 'edge',
      tls: [{ hosts: ['shop.example.org'], secretName: 'shop-tls' }],
      rules: [{ host: 'shop.example.org', http }],
    },
  };
}

test('A folder over the cluster: nothing, another backend, and what opens; the cluster stays as it is', async (t) => {
  const guarded = { [`${NGINX}/whitelist-source-range`]: '192.0.2.0/24' };
  const controller = 'headgate.io/ingress-controller';
  await kube.must('POST', '/apis/networking.k8s.io/v1/ingressclasses', {
    metadata: { name: 'edge', annotations: { 'headgate.io/load-balancer-ips': '192.0.2.10' } },
    spec: { controller },
  });
  for (const [at, name] of ['web', 'other'].entries()) {
    await kube.must('POST', '/api/v1/namespaces/default/services', {
      metadata: { name },
      spec: { ports: [{ port: 80, name: 'http' }] },
    });
    await kube.must('POST', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', {
      metadata: { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
      ...{ addressType: 'IPv4', ports: [{ port: 8_080, name: 'http' }] },
      endpoints: [{ addresses: [`10.1.1.${at + 1}`], conditions: { ready: true } }],
    });
  }
  const certificate = await (await Authority.create(t)).issue({ names: ['shop.example.org'] });
  await kube.must('POST', '/api/v1/namespaces/default/secrets', {
    ...tlsSecret('shop-tls', certificate),
    type: 'kubernetes.io/tls',
  });
  await kube.must('POST', INGRESSES, ingress(guarded, 'web'));

  const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
  const folder = await mkdtemp(join(tmpdir(), 'headgate-plan-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  await mkdir(folder, { recursive: true });
  const before = (await kube.writes()).length;
  const plan = async (object: object): Promise<{ status: number | null; answer: PlanAnswer }> => {
    await writeFile(join(folder, 'shop.json'), JSON.stringify(object));
    const { status, stdout, stderr } = await host.command('plan', [folder, '--cluster', '--json']);
    t.is(stderr, '');
    return { status, answer: JSON.parse(stdout) };
  };

  const same = await plan(ingress(guarded, 'web'));
  t.is(same.status, 0, JSON.stringify(same.answer));

  const other = await plan(ingress(guarded, 'other'));
  t.is(other.status, 1);
  t.deepEqual(
    other.answer.requests.map(({ kind, before: was, after }) => [kind, was, after]),
    [['backend', 'default/web port 80', 'default/other port 80']],
  );
  t.true(other.answer.requests[0]?.examples[0]?.startsWith('GET https://shop.example.org/'));

  const open = await plan(ingress({}, 'web'));
  t.deepEqual(
    open.answer.requests.map(({ kind, before: was, after }) => [kind, was, after]),
    [['opens', 'Open only to clients from 192.0.2.0/24', 'Open to everybody']],
  );
  t.is((await kube.writes()).length, before, 'It writes nothing');
});

test('Keys in a ConfigMap of the cluster count, so that a weaker token opens; the API server has no Gateway API', async (t) => {
  t.is((await kube.api('GET', '/apis/gateway.networking.k8s.io')).status, 404);
  await kube.must('POST', '/api/v1/namespaces/default/configmaps', {
    metadata: { name: 'keys' },
    data: { 'jwks.json': jwksOf(signer('one', 'ES256')) },
  });
  await kube.must('POST', '/apis/networking.k8s.io/v1/ingressclasses', {
    metadata: { name: 'tokens', annotations: { 'headgate.io/load-balancer-ips': '192.0.2.11' } },
    spec: { controller: 'headgate.io/ingress-controller' },
  });
  const asking = (audiences: readonly string[]): object => {
    const jwt = { issuer: 'https://id.example.org', audiences, keys: 'configmap/keys' };
    const backend = { service: { name: 'any', port: { number: 80 } } };
    const paths = [{ path: '/', pathType: 'Prefix', backend }];
    return {
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' },
      metadata: {
        ...{ name: 'tokens', namespace: 'default' },
        annotations: { 'headgate.io/jwt': JSON.stringify(jwt) },
      },
      spec: { ingressClassName: 'tokens', rules: [{ host: 'tokens.example.org', http: { paths } }] },
    };
  };
  await kube.must('POST', '/api/v1/namespaces/default/services', {
    metadata: { name: 'any' },
    spec: { ports: [{ port: 80, name: 'http' }] },
  });
  await kube.must('POST', INGRESSES, asking(['shop']));
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
  const folder = await mkdtemp(join(tmpdir(), 'headgate-plan-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const kinds = async (audiences: readonly string[]): Promise<readonly string[]> => {
    await writeFile(join(folder, 'tokens.json'), JSON.stringify(asking(audiences)));
    const { stdout, stderr } = await host.command('plan', [folder, '--cluster', '--json']);
    t.is(stderr, '');
    const { requests, problems } = JSON.parse(stdout) as PlanAnswer;
    t.deepEqual(
      problems.filter(({ message }) => message.includes('keys')),
      [],
    );
    return [...new Set(requests.map(({ kind }) => kind))];
  };
  t.deepEqual(await kinds(['shop']), []);
  t.deepEqual(await kinds(['shop', 'other']), ['opens']);
});

test('Without a cluster, and with a folder that is missing, it says what to name', async (t) => {
  const host = await TestHost.create(t);
  const { status, stderr } = await host.command('plan', ['--cluster', '/nonexistent-folder']);
  t.is(status, 2, stderr);
  t.regex(stderr, /kubeconfig/);
});
