// The chart, by helm and on a real API server: what it installs is accepted, has the rights of deploy/kubernetes, and gives
// the agents settings that they take.

import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ava from 'ava';
import { isMapping } from '../../agent/base/validate.ts';
import { version } from '../../agent/base/version.ts';
import { parseYamlDocuments } from '../../agent/base/yaml.ts';
import { GATEWAY_CONTROLLER, INGRESS_CONTROLLER } from '../../agent/kubernetes/class-names.ts';
import { readSettings } from '../../agent/settings/settings.ts';
import { requires } from '../support/basics/requirements.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { kubectlOf, type Tool, tool } from '../support/kube/kubectl.ts';
import { rulesFile } from '../support/report/rules.ts';

const test = requires(ava, kubeNeeds('kubectl', 'helm'));

const chart = fileURLToPath(new URL('../../deploy/helm/headgate', import.meta.url));
const installed = fileURLToPath(new URL('../../deploy/kubernetes', import.meta.url));
const NAMESPACE = 'headgate-system';
const PAIR = {
  settings: { pools: [{ name: 'public', blocks: ['192.0.2.128/26'] }] },
  pair: {
    nodes: [
      { name: 'lb-1', address: '192.0.2.11', priority: 210 },
      { name: 'lb-2', address: '192.0.2.12' },
    ],
    anchors: ['192.0.2.10'],
    credentialsSecret: 'headgate-pair',
  },
  certificates: { allNamespaces: true, namespaces: ['default'] },
};
const BGP = {
  bgp: {
    nodes: [
      { name: 'lb-1', address: '192.0.2.11', back: ['10.9.9.1'] },
      { name: 'lb-2', address: '192.0.2.12', back: ['10.9.9.2'] },
      {
        name: 'lb-3',
        address: '192.0.2.13',
        back: ['10.9.9.3'],
        peers: [{ name: 'tor-b', address: '192.0.2.2', asn: 65_000 }],
      },
    ],
    asn: 4_200_000_001,
    peers: [
      {
        name: 'tor-a',
        address: '192.0.2.1',
        asn: 65_000,
        bfd: true,
        passwordFile: '/etc/headgate-bgp/tor-a',
      },
    ],
    more: { holdTime: '6s' },
    passwordsSecret: 'headgate-bgp',
    credentialsSecret: 'headgate-pair',
    drainSeconds: 30,
  },
};
const TRUSTING = {
  settings: { jwksUrls: ['https://id.example.org/'] },
  authorities: { configMap: 'roots' },
  env: [{ name: 'NODE_USE_ENV_PROXY', value: '1' }],
};
const MONITORED = { metrics: { podMonitor: { enabled: true }, prometheusRule: { enabled: true } } };

let directory: string;
let kube: Kube;
let kubectl: Tool;
let helm: Tool;

test.before(async (t) => {
  directory = await mkdtemp(join(tmpdir(), 'headgate-helm-'));
  kube = await startKube(t);
  kubectl = await kubectlOf(kube);
  helm = await tool('helm', kube.kubeconfig);
  await kubectl(['apply', '-f', join(installed, 'namespace.yaml')]);
});

test.after.always(async () => {
  await kube?.stop();
  await rm(directory, { recursive: true, force: true });
});

for (const [what, values] of [
  ['the default values', {}],
  ['a pair', PAIR],
  ['BGP', BGP],
  ['the Prometheus operator', MONITORED],
  ['authorities and variables', TRUSTING],
] as const)
  test(`\`helm lint --strict\` finds no fault with ${what}`, async (t) => {
    t.regex(
      await helm(['lint', '--strict', chart, '--values', await valuesFile(values)]),
      /0 chart\(s\) failed/,
    );
  });

for (const [what, values] of [
  ['one node', {}],
  ['a pair', PAIR],
  ['BGP', BGP],
  ['authorities and variables', TRUSTING],
] as const)
  test(`The API server accepts every object of the chart for ${what}`, async (t) => {
    const text = await template(values);
    const said = await kubectl(['apply', '--dry-run=server', '-o', 'name', '-f', '-'], text);
    t.deepEqual(said.trim().split('\n').length, objectsIn(text).length);
    t.true(said.includes('daemonset.apps/headgate'));
  });

test('The chart has the definitions, the account and the rights of deploy/kubernetes', async (t) => {
  const kinds = [
    'CustomResourceDefinition',
    'ServiceAccount',
    'ClusterRole',
    'ClusterRoleBinding',
    'Role',
    'RoleBinding',
  ];
  const own = objectsIn(await template({})).filter(({ kind }) => kinds.includes(kind));
  const theirs = objectsIn(readFileSync(join(installed, 'install.yaml'), 'utf8')).filter(({ kind }) =>
    kinds.includes(kind),
  );
  t.is(own.length, 8);
  // Helm keeps the definitions when it uninstalls the chart.
  t.deepEqual(sorted(own.map(withoutAnnotations)), sorted(theirs.map(withoutAnnotations)));
});

test('With the setting for NetworkPolicies the account may read Pods and NetworkPolicies, and only list and watch them', async (t) => {
  const settings = { enforceNetworkPolicy: 'ingress' };
  const text = await template({ settings }, 'elsewhere');
  t.is(settingsIn(text, 'headgate.yaml').enforceNetworkPolicy, 'ingress');
  t.false(text.includes('namespace: headgate-system'));
  const roles = (all: string) => objectsIn(all).filter(({ kind }) => kind === 'ClusterRole');
  const names = (all: string) => roles(all).map(({ metadata }) => metadata.name);
  t.deepEqual(names(text), [...names(await template({})), 'headgate-policies']);
  const rules = (roles(text).at(-1) as unknown as { rules: { resources: string[]; verbs: string[] }[] })
    .rules;
  t.deepEqual(
    rules.map(({ resources, verbs }) => [...resources, ...verbs].join(' ')),
    ['pods list watch', 'networkpolicies list watch'],
  );
});

test('In another namespace the account, its rights and the Lease are there', async (t) => {
  const rights = { certificates: { namespaces: ['shop'] }, egress: { namespaces: ['shop'] } };
  const text = await template(rights, 'elsewhere');
  t.false(text.includes('namespace: headgate-system'));
  t.is(settingsIn(text, 'headgate.yaml').leaseNamespace, 'elsewhere');
  for (const name of ['headgate-tls', 'headgate-egress']) {
    const role = objectsIn(text).find(({ kind, metadata }) => kind === 'Role' && metadata.name === name);
    t.is(role?.metadata.namespace, 'shop');
  }
});

test('The agents take the settings of each node, and the two of a pair name each other', async (t) => {
  t.true(settingsIn(await template({}), 'headgate.yaml').inCluster);
  const text = await template(PAIR);
  const [first, second] = ['lb-1.yaml', 'lb-2.yaml'].map((name) => settingsIn(text, name));
  t.like(first?.vrrp, { address: '192.0.2.11', peers: ['192.0.2.12'], interface: 'eth0' });
  t.like(second?.vrrp, { address: '192.0.2.12', peers: ['192.0.2.11'], interface: 'eth0' });
  t.deepEqual(
    [first, second].map((each) => each?.vrrp?.instances.map(({ priority }) => priority)),
    [[210], [200]],
  );
  t.is(first?.pairDrainTimeout, 60_000);
  t.is(first?.pools.length, 1);
});

test('Nodes with BGP take the settings of each, have no right for VRRP, and leave in order', async (t) => {
  const text = await template(BGP);
  const [first, , third] = ['lb-1.yaml', 'lb-2.yaml', 'lb-3.yaml'].map((name) => settingsIn(text, name));
  t.like(first, { announce: 'bgp', vrrp: undefined });
  t.like(first?.bgp, { asn: 4_200_000_001, routerId: '192.0.2.11', holdTime: 6_000 });
  t.like(first?.bgp?.peers[0], { name: 'tor-a', passwordFile: '/etc/headgate-bgp/tor-a' });
  t.deepEqual(
    third?.bgp?.peers.map(({ name }) => name),
    ['tor-b'],
  );
  t.deepEqual(
    third?.hosts.map(({ name, address, back }) => [name, address, ...back]),
    [
      ['lb-1', '192.0.2.11', '10.9.9.1'],
      ['lb-2', '192.0.2.12', '10.9.9.2'],
      ['lb-3', '192.0.2.13', '10.9.9.3'],
    ],
  );
  const daemonSet = objectsIn(text).find(({ kind }) => kind === 'DaemonSet');
  const { spec } = daemonSet?.spec.template ?? {};
  const [container] = spec.containers;
  t.deepEqual(container.securityContext.capabilities.add.slice(0, 2), ['NET_ADMIN', 'NET_BIND_SERVICE']);
  t.false(container.securityContext.capabilities.add.includes('NET_RAW'));
  t.regex(container.lifecycle.preStop.exec.command.join(' '), /headgate maintenance on; \}\nsleep 30/);
  t.is(spec.terminationGracePeriodSeconds, 90);
  t.deepEqual(
    spec.volumes.flatMap(({ secret }: { secret?: { secretName: string } }) => secret?.secretName ?? []),
    ['headgate-bgp', 'headgate-pair'],
  );
  const alone = await template({ bgp: { ...BGP.bgp, credentialsSecret: '' } });
  t.is(settingsIn(alone, 'lb-1.yaml').hosts.length, 0);
});

test.serial('`helm uninstall` removes what `helm install` created, but for the definitions', async (t) => {
  const place = ['--namespace', NAMESPACE];
  await helm(['install', 'headgate', chart, ...place, '--values', await valuesFile(PAIR)]);
  await helm(['upgrade', 'headgate', chart, ...place, '--values', await valuesFile(PAIR)]);
  const names = async () =>
    (await kubectl(['get', '-o', 'name', 'daemonset,configmap,serviceaccount', ...place])).trim().split('\n');
  const created = ['daemonset.apps/headgate', 'configmap/headgate', 'serviceaccount/headgate'];
  const there = await names();
  t.true(
    created.every((name) => there.includes(name)),
    there.join(),
  );
  await helm(['uninstall', 'headgate', ...place, '--wait=false']);
  const left = await names();
  t.deepEqual(
    created.filter((name) => left.includes(name)),
    [],
  );
  const definitions = await kubectl(['get', '-o', 'name', 'customresourcedefinitions']);
  t.true(
    definitions.includes('addresspools.headgate.io') && definitions.includes('addressclaims.headgate.io'),
  );
});

test('A pod of the chart may run in the namespace of deploy/kubernetes, and not in a restricted one', async (t) => {
  await kube.must('POST', '/api/v1/namespaces', {
    metadata: { name: 'restricted', labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
  });
  const daemonSet = objectsIn(await template(PAIR)).find(({ kind }) => kind === 'DaemonSet');
  const { spec } = daemonSet?.spec.template ?? {};
  const create = (namespace: string) =>
    kube.api('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
      metadata: { name: 'agent' },
      spec,
    });
  t.is((await create(NAMESPACE)).status, 201);
  const { status, body } = await create('restricted');
  t.is(status, 403);
  t.regex(body.message, /violates PodSecurity "restricted:latest": host namespaces/);
});

test('The rules of the chart are those of deploy/prometheus, and the PodMonitor finds the pods', async (t) => {
  const objects = objectsIn(await template(MONITORED));
  const find = (kind: string) => objects.find((each) => each.kind === kind);
  const labels = find('DaemonSet')?.spec.template.metadata.labels;
  const monitor = find('PodMonitor');
  t.like(labels, monitor?.spec.selector.matchLabels);
  const [endpoint] = monitor?.spec.podMetricsEndpoints ?? [];
  const ports = find('DaemonSet')?.spec.template.spec.containers[0].ports;
  t.true(ports.some(({ name }: { name: string }) => name === endpoint.port));
  const [plain] = objectsIn(readFileSync(join(dirname(rulesFile), 'operator/podmonitor.yaml'), 'utf8'));
  t.deepEqual(plain?.spec.podMetricsEndpoints, [endpoint]);
  t.like(labels, plain?.spec.selector.matchLabels);
  const [rules] = parseYamlDocuments(readFileSync(rulesFile, 'utf8')).documents;
  t.deepEqual(find('PrometheusRule')?.spec, rules?.value);
});

for (const [what, values, said] of [
  [
    'one node of a pair',
    { pair: { nodes: [{ name: 'a', address: '192.0.2.1' }], anchors: ['192.0.2.9'] } },
    /pair.*nodes/s,
  ],
  ['a pair without an anchor', { pair: { ...PAIR.pair, anchors: [] } }, /pair.*anchors/s],
  ['a pair with BGP', { ...PAIR, ...BGP }, /not/],
  [
    'a misspelt field of a router',
    { bgp: { ...BGP.bgp, peers: [{ adress: '192.0.2.1', asn: 1 }] } },
    /peers/,
  ],
  ['a value that there is not', { replicas: 2 }, /replicas/],
  ['a setting that the chart makes', { settings: { kubeconfig: '/x' } }, /settings/],
  ['a misspelt setting', { settings: { drainTimout: '5m' } }, /drainTimout/],
  ['a setting of the wrong type', { settings: { drainTimeout: 5 } }, /drainTimeout/],
  ['a misspelt field of a pool', { settings: { pools: [{ name: 'a', blocs: [] }] } }, /pools/],
  ['authorities of two objects', { authorities: { configMap: 'a', secret: 'b' } }, /authorities/],
  ['authorities of a field in a folder', { authorities: { configMap: 'a', key: '../x' } }, /authorities/],
  ['a class with a name that cannot be', { gatewayClass: { create: true, name: 'A b' } }, /gatewayClass/],
] as const)
  test(`The schema of the values refuses ${what}`, async (t) => {
    const error = await t.throwsAsync(template(values));
    t.regex(String(error?.message), said);
  });

test('`helm lint` and `helm upgrade` refuse a misspelt setting, too', async (t) => {
  const values = ['--values', await valuesFile({ settings: { drainTimout: '5m' } })];
  for (const words of [
    ['lint', chart],
    ['upgrade', '--install', '--dry-run=server', 'headgate', chart, '--namespace', NAMESPACE],
  ])
    t.regex(
      JSON.stringify(await helm([...words, ...values]).catch(({ message, stdout }) => [message, stdout])),
      /settings.*drainTimout.*not allowed/,
      words[0],
    );
});

test('The schema of the values takes every setting that the agent takes, but for those that the chart makes', (t) => {
  const { properties } = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8'));
  const ofAgent = JSON.parse(readFileSync(join(chart, '../../headgate.schema.json'), 'utf8'));
  const made = [
    'announce',
    'bgp',
    'hosts',
    'inCluster',
    'kubeconfig',
    'leaseNamespace',
    'pairCredentials',
    'vrrp',
  ];
  const missing = Object.keys(ofAgent.properties).filter((name) => !(name in properties.settings.properties));
  t.deepEqual(missing.sort(), made);
  t.false(properties.settings.additionalProperties);
});

test('The agents trust the authorities of a ConfigMap or a Secret, which need not exist, and get variables', async (t) => {
  const podOf = async (values: object) => {
    const daemonSet = objectsIn(await template(values)).find(({ kind }) => kind === 'DaemonSet');
    const { containers, volumes } = daemonSet?.spec.template.spec ?? {};
    const find = ({ name }: { name: string }) => name === 'authorities';
    return {
      env: containers[0].env,
      mount: containers[0].volumeMounts.find(find),
      volume: volumes.find(find),
    };
  };
  const none = await podOf({});
  t.deepEqual([none.mount, none.volume, none.env.length], [undefined, undefined, 2]);
  const proxy = { name: 'NODE_USE_ENV_PROXY', value: '1' };
  const { env, mount, volume } = await podOf({ authorities: { configMap: 'roots' }, env: [proxy] });
  const [, , extra, own] = env;
  t.deepEqual(extra, { name: 'NODE_EXTRA_CA_CERTS', value: '/etc/headgate-authorities/ca.crt' });
  t.deepEqual(own, proxy);
  t.is(mount.mountPath, '/etc/headgate-authorities');
  t.deepEqual(volume, { name: 'authorities', configMap: { name: 'roots', optional: true } });
  const bySecret = await podOf({ authorities: { secret: 'roots', key: 'tls-ca-bundle.pem' } });
  t.deepEqual(bySecret.volume, { name: 'authorities', secret: { secretName: 'roots', optional: true } });
  t.is(bySecret.env[2].value, '/etc/headgate-authorities/tls-ca-bundle.pem');
});

test('The classes name the controllers of the agent, and are only there on request', async (t) => {
  const kinds = (text: string) => objectsIn(text).filter(({ kind }) => kind.endsWith('Class'));
  t.deepEqual(kinds(await template({})), []);
  const text = await template({
    gatewayClass: { create: true, name: 'edge' },
    ingressClass: { create: true, default: true, annotations: { 'headgate.io/address-pool': 'public' } },
  });
  const [ofIngresses, ofGateways] = kinds(text);
  t.like(ofGateways, {
    kind: 'GatewayClass',
    metadata: { name: 'edge' },
    spec: { controllerName: GATEWAY_CONTROLLER },
  });
  t.like(ofIngresses, {
    kind: 'IngressClass',
    metadata: {
      name: 'headgate',
      annotations: {
        'ingressclass.kubernetes.io/is-default-class': 'true',
        'headgate.io/address-pool': 'public',
      },
    },
    spec: { controller: INGRESS_CONTROLLER },
  });
});

test('The notes say how to label a node, who announces addresses, and what another load balancer means', async (t) => {
  const notes = async (values: object) =>
    helm([
      'install',
      'headgate',
      chart,
      '--dry-run=client',
      '--namespace',
      NAMESPACE,
      '--values',
      await valuesFile(values),
    ]);
  const alone = await notes({});
  t.regex(alone, /kubectl label node NODE headgate\.io\/load-balancer=true/);
  t.regex(alone, /Nobody announces addresses on one node alone/);
  t.regex(alone, /settings\.handleUnclassed=false/);
  const pair = await notes({ ...PAIR, settings: { ...PAIR.settings, handleUnclassed: false } });
  t.notRegex(pair, /Nobody announces|Does another load balancer/);
});

test('The chart has the version of the agent', async (t) => {
  const shown = await helm(['show', 'chart', chart]);
  t.true(shown.includes(`appVersion: ${version}`));
});

let files = 0;

async function valuesFile(values: object): Promise<string> {
  const path = join(directory, `values-${++files}.json`);
  await writeFile(path, JSON.stringify(values));
  return path;
}

async function template(values: object, namespace = NAMESPACE): Promise<string> {
  return helm([
    'template',
    'headgate',
    chart,
    '--namespace',
    namespace,
    '--values',
    await valuesFile(values),
  ]);
}

interface AnyObject {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: object };
  // biome-ignore lint/suspicious/noExplicitAny: any kind of object.
  readonly [field: string]: any;
}

function objectsIn(text: string): readonly AnyObject[] {
  return parseYamlDocuments(text).documents.flatMap(({ value }) =>
    isMapping(value) ? [value as never] : [],
  );
}

/** As the agent reads them. Errors: they cannot be used. */
function settingsIn(text: string, name: string) {
  const config = objectsIn(text).find(({ kind }) => kind === 'ConfigMap');
  return readSettings({ argv: ['--config', '/settings'], env: {}, readFile: () => config?.data[name] });
}

function withoutAnnotations({ metadata, ...object }: AnyObject): object {
  const { name, namespace, labels } = metadata;
  return { ...object, metadata: { name, namespace, labels } };
}

function sorted(objects: readonly object[]): readonly string[] {
  return objects.map((each) => JSON.stringify(each)).sort();
}
