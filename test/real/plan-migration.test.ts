// Ingresses beside the HTTPRoutes that the real ingress2gateway makes of them: which requests differ, as `headgate plan` says.

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import ava, { type ExecutionContext } from 'ava';
import type { PlanAnswer } from '../../agent/cli/plan/answer.ts';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { kubeNeeds, kubePrograms } from '../support/kube/kube.ts';
import { WEB } from '../support/values/certificates.ts';

const test = requires(ava, { ...kubeNeeds('ingress2gateway') });

const run = promisify(execFile);
const NGINX = 'nginx.ingress.kubernetes.io/';
const VIP = '192.0.2.9';

type Annotations = Readonly<Record<string, string>>;

function ingress(name: string, annotations: Annotations, service: string): object {
  const backend = { service: { name: service, port: { number: 80 } } };
  const prefixed = Object.entries(annotations).map(([key, value]) => [`${NGINX}${key}`, value]);
  return {
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' },
    metadata: { name, namespace: 'shop', annotations: Object.fromEntries(prefixed) },
    spec: {
      ingressClassName: 'nginx',
      tls: [{ hosts: ['shop.example.org'], secretName: 'tls' }],
      rules: [
        {
          host: 'shop.example.org',
          http: {
            paths: [
              { path: '/', pathType: 'Prefix', backend },
              { path: '/exact', pathType: 'Exact', backend },
            ],
          },
        },
      ],
    },
  };
}

const COMMON = [
  ...['web', 'canary'].map((name) => ({
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'shop' } },
    spec: { ports: [{ port: 80, name: 'http' }] },
  })),
  {
    ...{ apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/tls' },
    metadata: { name: 'tls', namespace: 'shop' },
    stringData: { 'tls.crt': WEB.cert, 'tls.key': WEB.key },
  },
];
const CLASS = {
  ...{ apiVersion: 'networking.k8s.io/v1', kind: 'IngressClass' },
  metadata: { name: 'nginx', annotations: { 'headgate.io/load-balancer-ips': VIP } },
  spec: { controller: 'headgate.io/ingress-controller' },
};
const GATEWAY_CLASS = {
  ...{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'GatewayClass', metadata: { name: 'nginx' } },
  spec: { controllerName: 'headgate.io/gateway-controller' },
};

const text = (objects: readonly object[]): string =>
  objects.map((each) => JSON.stringify(each)).join('\n---\n');

/** The plan of the Ingresses, and of what ingress2gateway makes of them. */
async function migration(t: ExecutionContext, ingresses: readonly object[]): Promise<PlanAnswer> {
  const { ingress2gateway: program = '' } = await kubePrograms(['ingress2gateway']);
  const folder = await mkdtemp(join(tmpdir(), 'hg-mig-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const [before, after] = ['before', 'after'].map((name) => join(folder, name)) as [string, string];
  for (const each of [before, after]) await mkdir(each);
  const own = join(before, 'ingresses.yaml');
  await writeFile(own, text(ingresses));
  await writeFile(join(before, 'rest.yaml'), text([...COMMON, CLASS]));
  const made = await run(program, ['print', '--providers=ingress-nginx', '--input-file', own, '-A']);
  const address = `gatewayClassName: nginx\n  addresses: [{type: IPAddress, value: ${VIP}}]`;
  await writeFile(join(after, 'routes.yaml'), made.stdout.replace('gatewayClassName: nginx', address));
  await writeFile(join(after, 'rest.yaml'), text([...COMMON, GATEWAY_CLASS]));
  const host = await TestHost.create(t);
  const { status, stdout, stderr } = await host.command('plan', [before, after, '--json']);
  t.is(status, 1, stderr);
  return JSON.parse(stdout);
}

/** Without the redirects from port 80, which ingress2gateway does not make. */
const kindsOfTls = ({ requests }: PlanAnswer): readonly string[] => [
  ...new Set(
    requests
      .filter(({ examples }) => examples.some((each) => each.includes('https:')))
      .map(({ kind }) => kind),
  ),
];

test('HTTPRoutes made of an Ingress without annotations do the same with TLS, and open port 80', async (t) => {
  const answer = await migration(t, [ingress('shop', {}, 'web')]);
  t.deepEqual(kindsOfTls(answer), []);
  t.deepEqual(
    answer.requests.map(({ kind, before }) => [kind, before]),
    [
      ['opens', 'Redirects everybody (redirect, status 308)'],
      ['opens', 'Redirects everybody (redirect, status 308)'],
    ],
  );
  t.deepEqual(
    answer.ports.map(({ change, detail }) => [change, detail]),
    [443, 80].map(() => ['moves', 'from IngressClass nginx to Gateway shop/nginx']),
  );
});

test('What ingress2gateway leaves out opens', async (t) => {
  for (const annotations of [
    { 'whitelist-source-range': '10.0.0.0/8' },
    { 'limit-rps': '5' },
    { 'proxy-body-size': '1k' },
    { 'auth-url': 'http://web.shop.svc.cluster.local:80/check' },
  ] as readonly Annotations[]) {
    const answer = await migration(t, [ingress('shop', annotations, 'web')]);
    t.deepEqual(kindsOfTls(answer), ['opens'], JSON.stringify(annotations));
  }
});

test('A canary by weight has the same shares, as ingress2gateway says', async (t) => {
  const canary = { canary: 'true', 'canary-weight': '20' };
  const answer = await migration(t, [ingress('shop', {}, 'web'), ingress('canary', canary, 'canary')]);
  t.deepEqual(kindsOfTls(answer), []);
});
