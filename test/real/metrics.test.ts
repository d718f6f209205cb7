// The metrics of a whole agent with a real HAProxy: their values, and that no counter goes back over any fault of HAProxy,
// its workers and the agent.

import { rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { type RunningAgent, signal, TestHost } from '../support/host/agent.ts';
import { goneBack, type ReadFamily, readMetrics } from '../support/report/metrics-text.ts';
import { startMembers } from '../support/traffic/members.ts';
import { ask, Client } from '../support/traffic/traffic.ts';
import { webObjects } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true });

/** An audit would put back what another process changes. */
const NO_AUDIT = ['--audit-interval', '1h'];

type Scraped = ReadonlyMap<string, ReadFamily>;

async function scrape(
  agent: RunningAgent,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(`${agent.url}/metrics`, { headers: { connection: 'close', ...headers } });
}

/** The first scrape whose round of HAProxy began after this call. */
async function scraped(agent: RunningAgent): Promise<Scraped> {
  const began = performance.now();
  for (;;) {
    const asked = performance.now();
    const metrics = readMetrics(await (await scrape(agent)).text(), 'text');
    const [[, age] = []] = metrics.get('headgate_haproxy_statistics_age_seconds')?.samples ?? [];
    // Without an answer of HAProxy there is no age.
    if (age === undefined || 1_000 * age < asked - began) return metrics;
    await delay(50);
  }
}

/** The sum over all series that have these labels. */
function total(metrics: Scraped, name: string, ...labels: readonly string[]): number {
  let sum = 0;
  for (const [series, value] of metrics.get(name)?.samples ?? [])
    if (labels.every((label) => series.includes(label))) sum += value;
  return sum;
}

/** Metrics of HAProxy only: the agent's own counters begin at 0 with each agent. */
function ofHaproxy(metrics: Scraped): Scraped {
  return new Map(
    [...metrics].filter(([name]) =>
      /^headgate_((listener|pool|member)_|haproxy_(connections|requests|sent)_)/.test(name),
    ),
  );
}

async function served(
  t: ExecutionContext<unknown>,
  web: Parameters<TestHost['serve']>[0] = {},
): Promise<TestHost> {
  const host = await TestHost.create(t, { flags: ['--drain-timeout', '1s'] });
  await startMembers(t, host, 3);
  await host.serve({ members: [host.address(11), host.address(12)], ...web });
  return host;
}

async function requests(host: TestHost, count: number): Promise<void> {
  for (let at = 0; at < count; at++) await ask(host.place());
}

test('Both formats, plain and compressed, are valid and have the same metrics', async (t) => {
  const host = await served(t, { annotations: { mode: 'http' } });
  const agent = await host.start();
  await requests(host, 10);
  // HAProxy counts a session when it ends, which may be after its client has its answer.
  await host.until('HAProxy has counted all requests', async () => {
    const counted = readMetrics(await (await scrape(agent, {})).text(), 'text');
    return total(counted, 'headgate_pool_http_responses_total', 'service="web"') === 10;
  });
  const plain = await scrape(agent, { 'accept-encoding': 'identity' });
  t.is(plain.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  t.is(plain.headers.get('content-encoding'), null);
  const text = readMetrics(await plain.text(), 'text');
  const open = await scrape(agent, {
    accept: 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5',
    'accept-encoding': 'gzip',
  });
  t.regex(open.headers.get('content-type') ?? '', /^application\/openmetrics-text; version=1\.0\.0;/);
  t.is(open.headers.get('content-encoding'), 'gzip');
  const metrics = readMetrics(await open.text(), 'openmetrics');
  t.is(metrics.get('headgate_member_sessions')?.type, 'counter');
  t.deepEqual([...text.keys()].map((name) => name.replace(/_total$/, '')).sort(), [...metrics.keys()].sort());

  const web = ['namespace="default"', 'service="web"', 'protocol="TCP"'];
  t.is(total(text, 'headgate_listener_connections_total', ...web), 10);
  t.is(total(text, 'headgate_listener_http_requests_total', ...web), 10);
  t.is(total(text, 'headgate_pool_http_responses_total', ...web, 'code="2xx"'), 10);
  t.is(total(text, 'headgate_member_sessions_total', ...web, `address="${host.address(11)}:`), 5);
  t.is(total(text, 'headgate_member_up', ...web), 2);
  t.is(total(text, 'headgate_pool_active_members', ...web), 2);
  t.is(total(text, 'headgate_haproxy_statistics_up'), 1);
  t.true(total(text, 'headgate_listener_received_bytes_total', ...web) > 0);
});

const COUNTED = ['headgate_pool_sessions_total', 'headgate_listener_connections_total'];

test('No counter goes back over reloads, a killed worker, restarts of the agent and changes of members', async (t) => {
  const host = await served(t);
  let agent = await host.start();
  let before: Scraped = new Map();
  let sent = 0;
  const step = async (what: string, change: () => Promise<void>): Promise<void> => {
    await requests(host, 4);
    sent += 4;
    before = ofHaproxy(await scraped(agent));
    await change();
    await host.until(`${what}: it is served`, async () => (await agent.isReady()) && (await host.answers()));
    sent++;
    await requests(host, 4);
    sent += 4;
    // A replaced worker is read a last time one second later.
    await host.until(`${what}: all is counted`, async () => {
      const after = ofHaproxy(await scraped(agent));
      t.deepEqual(goneBack(before, after), [], what);
      before = after;
      return COUNTED.every((name) => total(after, name, 'service="web"') >= sent);
    });
    for (const name of COUNTED) t.is(total(before, name, 'service="web"'), sent, what);
  };

  await step('nothing', async () => undefined);
  await step('reload', async () => {
    const reloads = await host.reloads();
    await host.serve({ name: 'other', address: host.address(2), members: [host.address(11)] });
    await host.until('it has reloaded', async () => (await host.reloads()) > reloads);
    await host.until('the new worker has it', () => host.answers(2));
  });
  await step('restart of the agent', async () => {
    await agent.stop();
    agent = await host.start();
  });
  await step('agent killed', async () => {
    await agent.kill();
    agent = await host.start();
  });
  await step('another restart, and HAProxy with it', async () => {
    await agent.stop();
    const master = await host.master();
    signal(await host.worker(), 'SIGKILL');
    await host.until('HAProxy has ended', async () => {
      try {
        process.kill(master, 0);
        return false;
      } catch {
        return true;
      }
    });
    agent = await host.start();
  });
  await step('worker killed', async () => {
    const worker = await host.worker();
    signal(worker, 'SIGKILL');
    await host.until('there is another one', async () => (await host.worker()) !== worker);
  });
  await requests(host, 4);
  sent += 4;
  before = ofHaproxy(await scraped(agent));
  await host.serve({ members: [host.address(13)] });
  await host.until(
    'the members are replaced',
    async () => (await host.servers()).filter(({ backend }) => backend.includes(':web:')).length === 1,
  );
  const after = ofHaproxy(await scraped(agent));
  const gone = goneBack(before, after).filter((fault) => !fault.startsWith('headgate_member_'));
  t.deepEqual(gone, []);
  t.is(total(after, 'headgate_pool_sessions_total', 'service="web"'), sent);
  t.is(total(after, 'headgate_member_sessions_total', 'service="web"'), 0);
});

test('The counts of an old worker are added until it ends with its last connection', async (t) => {
  const host = await served(t);
  const agent = await host.start();
  await scraped(agent);
  const client = await Client.connect(host.place());
  await client.ask();
  const old = await host.worker();
  await host.serve({ name: 'other', address: host.address(2), members: [host.address(11)] });
  await host.until('it has reloaded', () => host.answers(2));
  t.not(await host.worker(), old);
  await host.until(
    'the old worker is followed',
    async () => total(await scraped(agent), 'headgate_haproxy_old_workers') === 1,
  );
  const before = total(await scraped(agent), 'headgate_pool_received_bytes_total', 'service="web"');
  for (let times = 0; times < 20; times++) await client.ask();
  const bytes = 'GET / HTTP/1.1\r\nHost: test\r\n\r\n'.length;
  await host.until('what it carries is shown while it is open', async () => {
    const now = await scraped(agent);
    const received = total(now, 'headgate_pool_received_bytes_total', 'service="web"');
    return received === 21 * bytes && total(now, 'headgate_pool_open_connections', 'service="web"') === 1;
  });
  client.close();
  await host.until('the old worker has ended', async () => {
    try {
      process.kill(old, 0);
      return false;
    } catch {
      return true;
    }
  });
  const after = await scraped(agent);
  t.is(total(after, 'headgate_haproxy_old_workers'), 0);
  t.is(total(after, 'headgate_pool_received_bytes_total', 'service="web"'), 21 * bytes);
  t.true(before <= 21 * bytes);
});

test('Metrics show changes of members by the agent and by another process', async (t) => {
  const host = await served(t);
  await host.serve({
    name: 'other',
    address: host.address(2),
    members: [host.address(11), host.address(13)],
  });
  const agent = await host.start(NO_AUDIT);
  await host.until('both are served', async () => (await host.answers()) && (await host.answers(2)));
  const [web, other] = ['service="web"', 'service="other"'];
  const up = 'headgate_member_up';
  let metrics = await scraped(agent);
  const sessions = (): readonly number[] =>
    ['headgate_pool_sessions_total', 'headgate_member_sessions_total'].map((name) =>
      total(metrics, name, web),
    );
  for (let round = 0; round < 3; round++) {
    const before = sessions();
    t.is(before[0], before[1]);
    await requests(host, 5);
    metrics = await scraped(agent);
    t.deepEqual(
      sessions(),
      before.map((count) => count + 5),
    );
    t.is(total(metrics, up, other), 2);
  }
  // By the agent: it replaces a member, and the pool keeps its number of members.
  await host.serve({
    name: 'other',
    address: host.address(2),
    members: [host.address(12), host.address(13)],
  });
  const has = (last: number): boolean =>
    [...(metrics.get(up)?.samples.keys() ?? [])].some(
      (series) => series.includes(other) && series.includes(`address="${host.address(last)}:`),
    );
  await host.until('the new member is shown, and the old one is not', async () => {
    metrics = await scraped(agent);
    return has(12) && !has(11);
  });
  t.is(total(metrics, up, other), 2);
  // By another process.
  const weight = 'headgate_member_weight';
  const full = total(metrics, weight, other);
  const server = (await host.servers()).find(({ backend }) => backend.includes(':other:'));
  t.is(await host.haproxy(`set server ${server?.backend}/${server?.server} weight 1`), '');
  t.is(total(await scraped(agent), weight, other), full / 2 + 1);
});

/** HAProxy's own counts of listeners, pools and members, by metric and labels. */
async function counted(host: TestHost): Promise<ReadonlyMap<string, number>> {
  const [header = '', ...rows] = (await host.haproxy('show stat -1 7 -1')).trim().split('\n');
  const names = header.replace(/^# /, '').split(',');
  const all = new Map<string, number>();
  for (const row of rows) {
    const fields = row.split(',');
    const of = (column: string): string => fields[names.indexOf(column)] ?? '';
    const [, service] = of('pxname').split(':');
    const kind = KINDS[Number(of('type'))];
    if (service === undefined || kind === undefined) continue;
    const label = kind === 'member' ? ` address="${of('svname')}"` : '';
    for (const [metric, column] of Object.entries({ ...COMPARED, ...COMPARED_OF[kind] }))
      all.set(`headgate_${kind}_${metric} service="${service}"${label}`, Number(of(column)));
  }
  return all;
}

const KINDS = ['listener', 'pool', 'member'] as const;
const COMPARED = {
  open_connections: 'scur',
  sessions_total: 'stot',
  received_bytes_total: 'bin',
  sent_bytes_total: 'bout',
};
const TO_MEMBERS = { connection_errors_total: 'econ', retries_total: 'wretr' };
const COMPARED_OF: Readonly<Record<(typeof KINDS)[number], Readonly<Record<string, string>>>> = {
  listener: { connections_total: 'conn_tot', denied_connections_total: 'dcon' },
  pool: { ...TO_MEMBERS, redispatches_total: 'wredis' },
  member: TO_MEMBERS,
};

/** The metrics that differ from HAProxy's own counts. */
function differing(metrics: Scraped, expected: ReadonlyMap<string, number>): readonly string[] {
  return [...expected].flatMap(([key, value]) => {
    const [name = '', ...labels] = key.split(' ');
    const shown = total(metrics, name, ...labels);
    return shown === value ? [] : [`${key}: ${shown}, not ${value}`];
  });
}

/** `others`: the number of further Services without connections. */
const counts = test.macro(async (t, others: number) => {
  const host = await served(t);
  const idle = Array.from({ length: others }, (_, at) =>
    webObjects({ name: `idle-${at}`, address: host.address(100 + at), members: [host.address(11)] }),
  );
  await host.write('idle.yaml', idle.flat());
  // One member of a pool does not exist, nor does any of another pool: HAProxy retries, with another member if it can.
  await host.serve({
    name: 'half',
    address: host.address(2),
    members: [host.address(11), host.address(19)],
  });
  await host.serve({ name: 'none', address: host.address(3), members: [host.address(19)] });
  const agent = await host.start();
  await host.until('all are served', async () => (await host.answers()) && (await host.answers(2)));
  const kept = await Client.connect(host.place());
  const places = [1, 2, 1, 3, 2].map((last) => host.place(last));
  for (let round = 0; round < 12; round++) {
    const asking = places.map((place) => ask(place).catch(() => 'broken off'));
    for (let scrapes = 0; scrapes < 3; scrapes++) await (await scrape(agent)).text();
    if (round % 3 === 0) await kept.ask();
    if (round % 2 === 0) await Promise.all(asking);
    else await asking[0];
  }
  const isQuiet = async (): Promise<boolean> =>
    [...(await counted(host))].every(([key, value]) => !/open/.test(key) || value === 0 || /"web"/.test(key));
  await host.until('nothing is under way', isQuiet);
  for (const isOpen of [true, false]) {
    const [metrics, expected] = [await scraped(agent), await counted(host)];
    t.deepEqual(differing(metrics, expected), [], isOpen ? 'a connection is open' : 'none is open');
    t.is(expected.get('headgate_pool_open_connections service="web"'), Number(isOpen));
    t.true((expected.get('headgate_pool_redispatches_total service="half"') ?? 0) > 0);
    t.true((expected.get('headgate_pool_connection_errors_total service="none"') ?? 0) > 0);
    kept.close();
    await host.until(
      'the connection has ended',
      async () => (await counted(host)).get('headgate_pool_open_connections service="web"') === 0,
    );
  }
});

test.serial('Metrics have the counts of HAProxy while requests and scrapes run', counts, 0);
test.serial('Metrics have the counts of HAProxy if it has many listeners', counts, 140);

test('A down member counts as down once over several reloads, also while old workers run', async (t) => {
  const annotations = {
    'health-monitor': 'tcp',
    'health-monitor-interval': '1s',
    'when-all-down': 'reject',
  };
  const host = await TestHost.create(t);
  await startMembers(t, host, 1);
  await host.serve();
  // The member does not exist.
  const [name, address] = ['shop', host.address(2)];
  await host.serve({ name, address, members: [host.address(12)], annotations });
  const began = performance.now();
  const agent = await host.start();
  const downtime = 'headgate_member_downtime_seconds_total';
  await host.until('it has been down for some time', async () => total(await scraped(agent), downtime) >= 4);
  // Keeps the old workers alive.
  const clients: Client[] = [];
  for (let at = 3; at < 6; at++) {
    clients.push(await Client.connect(host.place()));
    await host.serve({ name: `other-${at}`, address: host.address(at) });
    await host.until('another worker serves', () => host.answers(at));
    const metrics = await scraped(agent);
    const seconds = (performance.now() - began) / 1_000;
    for (const kind of ['member', 'pool']) {
      t.is(total(metrics, `headgate_${kind}_downs_total`, 'service="shop"'), 1, kind);
      const down = total(metrics, `headgate_${kind}_downtime_seconds_total`, 'service="shop"');
      t.true(down >= 4 && down <= seconds + 2, `${kind}: ${down} of ${seconds} s`);
    }
  }
  for (const client of clients) client.close();
});

test('metricsDetail leaves out members, or members and pools', async (t) => {
  const host = await served(t);
  const agent = await host.start(['--metrics-detail', 'pool']);
  const kinds = (metrics: Scraped): string[] => [
    ...new Set(
      [...metrics.keys()].flatMap((name) => /^headgate_(listener|pool|member)_up$/.exec(name)?.[1] ?? []),
    ),
  ];
  t.deepEqual(kinds(await scraped(agent)), ['listener', 'pool']);
  await agent.stop();
  const other = await host.start(['--metrics-detail', 'listener']);
  t.deepEqual(kinds(await scraped(other)), ['listener']);
});

test('Without HAProxy the metrics report it, with the metrics of the agent itself', async (t) => {
  const host = await served(t);
  const agent = await host.start();
  for (const pid of [await host.master(), await host.worker()]) signal(pid, 'SIGSTOP');
  let metrics: Scraped = new Map();
  await host.until('it is noticed', async () => {
    metrics = await scraped(agent);
    return total(metrics, 'headgate_haproxy_statistics_up') === 0;
  });
  t.false(metrics.has('headgate_listener_up'));
  t.is(total(metrics, 'headgate_build_info'), 1);
});

test('The agent reads HAProxy through its master if its admin socket was removed', async (t) => {
  const host = await served(t);
  let agent = await host.start();
  await scraped(agent);
  const { adminSocket } = host.paths;
  for (const path of [`${adminSocket}.kept`, adminSocket]) await rm(path, { force: true });
  await agent.stop();
  agent = await host.start();
  await requests(host, 3);
  const metrics = await scraped(agent);
  t.is(total(metrics, 'headgate_haproxy_statistics_up'), 1);
  t.is(total(metrics, 'headgate_pool_sessions_total', 'service="web"'), 3);
});
