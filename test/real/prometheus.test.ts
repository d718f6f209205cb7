// A real Prometheus scrapes real agents: a pair with VRRP, and a host of a cluster with health monitors and traffic. It
// evaluates every rule and the query of every panel.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { dashboardJson } from '../../scripts/dashboard.ts';
import { rows } from '../../scripts/dashboard-rows.ts';
import { requires } from '../support/basics/requirements.ts';
import { type RunningAgent, TestHost } from '../support/host/agent.ts';
import { nftFlags } from '../support/host/nft.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath, sliceJson, slicePath } from '../support/kube/kube-objects.ts';
import { namesOf } from '../support/report/metric-names.ts';
import { readMetrics } from '../support/report/metrics-text.ts';
import { Prometheus } from '../support/report/prometheus.ts';
import { alertRules, recordingRules, selectorsOf } from '../support/report/rules.ts';
import { firstCells } from '../support/repository/markdown.ts';
import { startMembers } from '../support/traffic/members.ts';
import { Authority, tlsSecret } from '../support/traffic/tls.ts';
import { Load } from '../support/traffic/traffic.ts';
import { ingressClassJson, ingressJson } from '../support/values/gateways.ts';
import { webObjects } from '../support/values/service-objects.ts';
import { startAgentPair } from '../support/vrrp/agent-pair.ts';

const kubeAsks = kubeNeeds();
const programs = [
  'prometheus',
  'promtool',
  'keepalived',
  'conntrackd',
  'ip',
  'nft',
  'nsenter',
  'sysctl',
  'openssl',
];
const test = requires(ava, {
  ...kubeAsks,
  haproxy: true,
  root: true,
  programs: [...programs, ...(kubeAsks.programs ?? [])],
});

const VIP = '10.9.1.1';

/** Queries outside of the panels. */
interface Dashboard {
  readonly annotations: { readonly list: readonly { readonly name: string; readonly expr: string }[] };
  /** The choice of a data source has no definition. */
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
}

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true });
});
test.after.always(() => kube?.stop());

/**
 * test/real/bgp.test.ts and test/real/alert-causes-bgp.test.ts have the hosts with BGP, test/real/egress.test.ts has egress, and
 * test/real/alert-causes.test.ts has authorization servers and refusals.
 */
const OF_OTHERS =
  /\b(?:bird|headgate_bgp|headgate_host|headgate_passing|headgate_egress)_|asked|headgate_listener_refusals_total/;

test.serial('Every rule, alert and panel has data, and a healthy pair never raises an alert', async (t) => {
  const agents = [...(await startPair(t)), await startOfCluster(t)];
  const prometheus = await Prometheus.start(
    t,
    agents.map(({ url }) => new URL(url ?? '').host),
  );
  await prometheus.until('count(up{job="headgate"} == 1) == 3');
  // A rate needs two samples, and only a change of pods between two scrapes counts.
  const slice = sliceJson('api', ['10.1.0.1', '10.1.0.2'], Date.now());
  await kube.must('PUT', slicePath('default', 'api-1'), slice);
  await prometheus.until('sum(rate(headgate_network_programming_duration_seconds_count[1m])) > 0');
  await prometheus.until('count(vrrp_instance:headgate_vrrp_masters:sum == 1)');
  await prometheus.until('min(headgate_pair_peer_ready) == 1');
  await prometheus.until('count(listener:headgate_http_errors:ratio_rate5m)');

  const rules = await prometheus.rules();
  t.is(rules.length, alertRules().length + recordingRules().length);
  t.deepEqual(
    rules.filter(({ health }) => health !== 'ok'),
    [],
  );
  t.deepEqual(
    rules.filter(({ state }) => state === 'firing').map(({ name }) => name),
    [],
  );
  // A pending alert would fire in the end, unless the start has caused it.
  await prometheus.until('absent(ALERTS)');

  const silent: string[] = [];
  const ask = async (place: string, expr: string): Promise<void> => {
    if (OF_OTHERS.test(expr)) return;
    // A late scrape on a busy machine leaves a gap of one interval.
    await prometheus.until(expr, 10_000).catch(() => silent.push(`${place}: ${expr}`));
  };
  for (const { record } of recordingRules()) await ask(record, record);
  // A pool has a series for the status that it is in, and a load balancer one for its verdict unless that is "served".
  const ofAnyStatus = (selector: string): string =>
    selector
      .replace(/(?<=^headgate_pool_operating_status\{)status="ERROR"/, 'status!=""')
      .replace(/^headgate_load_balancer_verdict(?=\{)/, 'headgate_verdicts');
  for (const { alert, expr } of alertRules())
    for (const selector of selectorsOf(expr)) await ask(alert, ofAnyStatus(selector));
  for (const { title, panels } of rows)
    for (const panel of panels)
      for (const expr of Object.values(panel.targets)) await ask(`${title}, ${panel.title}`, asGrafana(expr));
  const { annotations, templating } = JSON.parse(dashboardJson()) as Dashboard;
  for (const { name, expr } of annotations.list)
    for (const selector of selectorsOf(asGrafana(expr))) await ask(name, selector);
  for (const { name, definition } of templating.list)
    if (definition !== undefined) await ask(name, labelledBy(asGrafana(definition)));
  t.deepEqual(silent, []);

  const served = new Set<string>();
  for (const agent of agents) {
    const { text } = await agent.get('/metrics');
    t.is(await lint(text), '');
    for (const name of readMetrics(text, 'text').keys()) served.add(name);
  }
  const documents = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
  const ofThese = (name: string): boolean =>
    !/^(bird|headgate_bgp|headgate_passing|headgate_egress)_/.test(name);
  t.deepEqual([...served].sort(), firstCells(documents).flatMap(namesOf).filter(ofThese).sort());
});

test.serial('A missing agent raises its alert, and no alert about a missing master', async (t) => {
  const agents = await startPair(t);
  const hostOf = ({ url }: RunningAgent): string => new URL(url ?? '').host;
  const prometheus = await Prometheus.start(t, agents.map(hostOf));
  await prometheus.until('headgate_vrrp_state{state="master"} == 1');
  const [master] = await prometheus.query('headgate_vrrp_state{state="master"} == 1');
  const agent = agents.find((each) => hostOf(each) === master?.metric.instance);
  await agent?.kill();
  await prometheus.until(`up{instance="${master?.metric.instance}"} == 0`);
  await prometheus.until('ALERTS{alertname="HeadgateAgentDown"}');
  await prometheus.until('ALERTS{alertname="HeadgatePeerLost"}');
  // The remaining host is backup, because keepalived on the other host continues.
  await prometheus.until('vrrp_instance:headgate_vrrp_masters:sum == 0');
  const pending = await prometheus.query(
    'ALERTS{alertname=~"HeadgateNoMaster|HeadgateTwoMasters|HeadgateNoAgent"}',
  );
  t.deepEqual(pending, []);
});

test.serial(
  'A pool whose members all fail raises an alert with its Service while clients send requests',
  async (t) => {
    const { host } = await hostWith(t);
    const members = await startMembers(t, host, 2);
    const annotations = { 'health-monitor': 'tcp', 'health-monitor-interval': '1s' };
    await host.serve({ members: [host.address(11), host.address(12)], annotations });
    const agent = await host.start();
    const prometheus = await Prometheus.start(t, [new URL(agent.url ?? '').host]);
    const load = new Load(t, host.place(), { clients: 1 });
    await load.answered(10);
    await prometheus.until('headgate_pool_active_members{service="web"} == 2');
    t.deepEqual(await prometheus.query('ALERTS{alertname="HeadgatePoolDown"}'), []);
    for (const member of members) await member.kill();
    await prometheus.until('ALERTS{alertname="HeadgatePoolDown",namespace="default",service="web"}');
    await prometheus.until('headgate_operating_status{kind="pool",status="ERROR"} == 1');
    for (const kind of ['load_balancer', 'listener', 'pool', 'member'])
      await prometheus.until(`headgate_${kind}_operating_status{service="web",status="ERROR"} == 1`);
  },
);

/** The query that Grafana sends if all hosts, namespaces and services are selected. */
function asGrafana(expr: string): string {
  return expr
    .replaceAll('$__rate_interval', '1m')
    .replaceAll(/\$(cluster|instance|namespace|service)\b/g, '.*');
}

/** The series of a variable `label_values(SELECTOR, LABEL)`. */
function labelledBy(definition: string): string {
  const [, metric = '', matchers = '', label = ''] =
    /^label_values\((\w+)(?:\{(.*)\})?, (\w+)\)$/.exec(definition) ?? [];
  return `${metric}{${matchers && `${matchers},`}${label}!=""}`;
}

/** The output of `promtool check metrics` for an exposition; '' without a fault. */
async function lint(text: string): Promise<string> {
  const child = spawn('promtool', ['check', 'metrics'], { stdio: ['pipe', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk;
    });
  child.stdin.end(text);
  const [status] = (await once(child, 'close')) as [number | null];
  return status === 0 ? said : `${status}: ${said}`;
}

/** Two hosts in network namespaces that serve one Service, also by UDP, and synchronise their connections. */
async function startPair(t: ExecutionContext<unknown>): Promise<readonly RunningAgent[]> {
  const { active, standby } = await startAgentPair(t, VIP, {
    flags: [...nftFlags, '--connection-sync'],
    prepare: async (host, network) => {
      for (const side of ['a', 'b']) await network.run(side, 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
      const members = [network.v4('client')];
      await host.serve({ address: VIP, port: 8080, members });
      const ports = [{ name: 'dns', port: 53, protocol: 'UDP' }];
      const [service = {}, slice = {}] = webObjects({ name: 'dns', address: VIP, members, spec: { ports } });
      await host.write('dns.yaml', [service, { ...slice, ports }]);
    },
  });
  return [active.agent, standby.agent];
}

async function hostWith(t: ExecutionContext<unknown>): Promise<{ host: TestHost; flags: string[] }> {
  const flags: string[] = [];
  return { host: await TestHost.create(t, { flags }), flags };
}

/** A host with Services of the cluster, an address pool, and two of a folder: with checks and under load, and with TLS. */
async function startOfCluster(t: ExecutionContext<unknown>): Promise<RunningAgent> {
  const { host, flags } = await hostWith(t);
  const settings = join(host.directory, 'headgate.yaml');
  await writeFile(
    settings,
    JSON.stringify({ pools: [{ name: 'local', blocks: [`${host.address(101)}-${host.address(104)}`] }] }),
  );
  flags.push('--kubeconfig', kube.kubeconfig);
  for (const path of [servicePath('default', 'api'), slicePath('default', 'api-1')])
    await kube.api('DELETE', path);
  await kube.must('POST', servicePath('default'), {
    metadata: { name: 'api' },
    spec: { type: 'LoadBalancer', ports: [{ name: 'http', port: 17_080, protocol: 'TCP' }] },
  });
  await kube.must('POST', slicePath('default'), sliceJson('api', ['10.1.0.1']));
  await startMembers(t, host, 2);
  const annotations = { mode: 'http', 'health-monitor': 'http' };
  await host.serve({ members: [host.address(11)], annotations });
  const authority = await Authority.create(t);
  await host.write('secret.yaml', [
    tlsSecret('shop-tls', await authority.issue({ names: ['shop.example'] })),
  ]);
  const shop = { mode: 'https', 'tls-certificate': 'shop-tls' };
  await host.serve({
    name: 'shop',
    address: host.address(2),
    members: [host.address(11)],
    annotations: shop,
  });
  const backend = { service: { name: 'web', port: { number: host.place().port } } };
  await host.write('ingress.yaml', [
    ingressClassJson('edge', { 'headgate.io/load-balancer-ips': host.address(3) }),
    ingressJson('web', { rules: [{ http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }] }),
  ]);
  const agent = await host.start(['--config', settings, '--route-metrics']);
  await host.until(
    'the Service of the cluster is known',
    async () => (await host.why('default/api')).verdict === 'served',
  );
  await host.serve({ members: [host.address(11), host.address(12)], annotations });
  for (const place of [host.place(), { address: host.address(3), port: 80 }]) {
    const load = new Load(t, place, { clients: 1 });
    await load.answered(50);
  }
  return agent;
}
