// The features of a Service with real traffic: their cost for HAProxy, and the agent's reports of unsupported ones.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { startMembers } from '../support/traffic/members.ts';
import { ask, Client } from '../support/traffic/traffic.ts';
import { MEMBER_PORT, VIP_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true });

const AFFINITY_SECONDS = 2;

test.serial('A new Service needs one reload, and so does its removal', async (t) => {
  const host = await withMembers(t);
  await host.serve();
  const agent = await host.start();
  t.is(await host.reloads(), 0);
  await host.serve({ name: 'shop', address: host.address(2) });
  await host.until('it is served', () => host.answers(2));
  t.is(await host.reloads(), 1);
  await host.until('`why` says so', async () => (await host.why('default/shop')).verdict === 'served');
  await host.remove('shop.yaml');
  await host.until('it is gone', async () => !(await host.answers(2)));
  t.is(await host.reloads(), 2);
  t.true(await host.answers());
  await host.until(
    'both are counted',
    async () => (await agent.metrics())('headgate_haproxy_reloads_total') === 2,
  );
  const metric = await agent.metrics();
  t.is(metric('headgate_haproxy_reloads_total', { reason: 'listener-added', result: 'done' }), 1);
  t.is(metric('headgate_haproxy_reloads_total', { reason: 'listener-removed', result: 'done' }), 1);
});

test.serial('HAProxy prints no warning at its start and at a reload', async (t) => {
  const host = await withMembers(t);
  await host.serve({ spec: { sessionAffinity: 'ClientIP' } });
  await host.start();
  await host.serve({ name: 'shop', address: host.address(2) });
  await host.until('it is served', () => host.answers(2));
  const log = () => readFile(host.paths.log, 'utf8');
  await host.until('the old worker has ended', async () => / stopped \(/.test(await log()));
  const warnings = (await log()).split('\n').filter((line) => /WARNING/.test(line));
  // HAProxy warns of the replaced worker's end, and from 3.4 on of a start as root, which systemd does not do.
  const usual = /: (?:Former worker|Proxy \S+ stopped) |without any 'chroot' directive/;
  t.deepEqual(
    warnings.filter((line) => !usual.test(line)),
    [],
  );
});

for (const limit of [1, 5]) {
  test.serial(`A client above its rate limit still gets its connections: rate-limit ${limit}`, async (t) => {
    const host = await withMembers(t);
    await host.serve({ annotations: { 'rate-limit': String(limit) } });
    await host.start();
    let [taken, refused] = [0, 0];
    await host.soon("three seconds' worth of connections", async () => {
      // All at once, because a busy machine could spread sequential connections below the limit.
      const some = Array.from({ length: 4 * limit }, () =>
        ask(host.place()).then(
          () => taken++,
          () => refused++,
        ),
      );
      await Promise.all(some);
      return taken > 2 * limit;
    });
    t.true(refused > 0);
  });
}

test.serial('50 Services in a burst need at most 3 reloads', async (t) => {
  const host = await withMembers(t);
  const agent = await host.start();
  const all = Array.from({ length: 50 }, (_, at) => 101 + at);
  for (const last of all) await host.serve({ name: `web-${last}`, address: host.address(last) });
  await host.until('all are served', async () =>
    (await Promise.all(all.map((last) => host.answers(last)))).every(Boolean),
  );
  t.true((await host.reloads()) <= 3, `${await host.reloads()} reloads`);
  t.deepEqual(
    agent.log.filter(({ level }) => level === 'error'),
    [],
  );
});

test.serial(
  'Members that change while HAProxy reloads need no further reload, and no change is lost',
  async (t) => {
    const host = await withMembers(t);
    const agent = await host.start();
    const rounds = 4;
    let isOver = false;
    const churn = async (): Promise<void> => {
      for (let at = 0; !isOver; at = (at + 1) % 50) {
        await host.serve({ members: [host.address(11), host.address(100 + at)] });
        await delay(5);
      }
    };
    const churning = churn();
    for (let round = 1; round <= rounds; round++) {
      await host.serve({ name: `shop-${round}`, address: host.address(1 + round) });
      await host.until('it is served', () => host.answers(1 + round));
    }
    isOver = true;
    await churning;
    const last = [host.address(11), host.address(12)];
    await host.serve({ members: last });
    await host.until('HAProxy has the last members, and no others', async () => {
      const servers = (await host.servers()).filter(({ backend }) => backend.startsWith('default:web:'));
      return (
        servers.length === 2 && servers.every(({ server }) => last.includes(server.replace(/:\d+$/, '')))
      );
    });
    const metric = await agent.metrics();
    t.is(metric('headgate_haproxy_reloads_total', { reason: 'listener-added' }), rounds);
    t.is(metric('headgate_haproxy_reloads_total', { reason: 'repair' }), 0);
  },
);

// Conformance: spec.loadBalancerSourceRanges
test.serial('Source ranges are added and removed at runtime', async (t) => {
  const host = await withMembers(t);
  const [inside, outside] = [host.address(50), host.address(60)];
  const show = (ranges: readonly string[]): Promise<void> =>
    host.serve({ spec: { loadBalancerSourceRanges: ranges } });
  const isOpenFor = (from: string): Promise<boolean> => host.answers(1, from);
  await show([`${inside}/32`]);
  await host.start();
  t.deepEqual([await isOpenFor(inside), await isOpenFor(outside)], [true, false]);
  await show([`${inside}/32`, `${outside}/32`]);
  await host.until('both may connect', () => isOpenFor(outside));
  t.true(await isOpenFor(inside));
  await show([`${outside}/32`]);
  await host.until('the first one may not', async () => !(await isOpenFor(inside)));
  t.true(await isOpenFor(outside));
  await show([]);
  await host.until('everyone may', () => isOpenFor(inside));
  // HAProxy closes a connection from outside at once.
  await show([`${inside}/32`]);
  await host.until('the other one may not', async () => !(await isOpenFor(outside)));
  const refused = await Client.connect({ ...host.place(), from: outside }).catch(() => undefined);
  await refused?.closed;
  t.is(await host.reloads(), 0);
});

test.serial(
  'Source ranges grow to hundreds and shrink again at runtime, also with the next agent',
  async (t) => {
    const host = await withMembers(t);
    const [inside, outside] = [host.address(50), host.address(60)];
    const others = Array.from({ length: 500 }, (_, at) => `10.${at >> 8}.${at % 256}.0/24`);
    const show = (ranges: readonly string[]): Promise<void> =>
      host.serve({ spec: { loadBalancerSourceRanges: ranges } });
    const isOpenFor = (from: string): Promise<boolean> => host.answers(1, from);
    await show([`${inside}/32`]);
    const first = await host.start();
    await show([...others, `${inside}/32`, `${outside}/32`]);
    await host.until('both may connect', () => isOpenFor(outside));
    await host.until('the file has them', async () => (await host.config()).includes(others.at(-1) ?? ''));
    await first.kill();
    const second = await host.start();
    t.true(second.hasLogged('"ours":true'));
    await show([...others.slice(0, 3), `${inside}/32`]);
    await host.until('the other one may not', async () => !(await isOpenFor(outside)));
    t.true(await isOpenFor(inside));
    t.is(await host.reloads(), 0);

    // The worker starts with many lines, and the next agent desires few.
    await show([...others, `${outside}/32`]);
    await host.until('the other one may', () => isOpenFor(outside));
    await host.serve({ name: 'shop', address: host.address(2) });
    await host.until('it is served', () => host.answers(2));
    t.is(await host.reloads(), 1);
    await second.kill();
    await show([`${inside}/32`]);
    const third = await host.start();
    t.true(third.hasLogged('"ours":true'));
    await host.until('the first one may', () => isOpenFor(inside));
    await host.until('the other one may not', async () => !(await isOpenFor(outside)));
    t.is(await host.reloads(), 1);
    await host.until('the file has a line for each of the two Services', async () => {
      return [...(await host.config()).matchAll(/acl allowed src -u /g)].length === 2;
    });
  },
);

test.serial('Session affinity survives reloads right after a cold start', async (t) => {
  const host = await withMembers(t, 5);
  const members = [11, 12, 13, 14, 15].map((last) => host.address(last));
  await host.serve({ members, spec: { sessionAffinity: 'ClientIP' } });
  await host.start();
  const clients = Array.from({ length: 7 }, (_, at) => ({ ...host.place(), from: host.address(100 + at) }));
  const answers = new Map<string, string>();
  for (const client of clients) answers.set(client.from, await ask(client));
  for (const last of [2, 3]) {
    await host.serve({ name: `web-${last}`, address: host.address(last) });
    await host.until('the next Service is served', () => host.answers(last));
  }
  t.is(await host.reloads(), 2);
  // A worker serves some milliseconds before it has received the whole table.
  await host.until('the table is there', async () => (await host.haproxy('show table')).includes('used:7'));
  // In another order, so that round robin would give them other members.
  for (const client of clients.toReversed())
    t.is(await ask(client), answers.get(client.from) ?? '', client.from);
});

// Conformance: spec.sessionAffinity, sessionAffinityConfig
test.serial('A client that meets a HAProxy without its entry goes to the same member', async (t) => {
  const host = await withMembers(t, 5);
  const members = [11, 12, 13, 14, 15].map((last) => host.address(last));
  await host.serve({ members, spec: { sessionAffinity: 'ClientIP' } });
  await host.start();
  const clients = Array.from({ length: 20 }, (_, at) => ({ ...host.place(), from: host.address(100 + at) }));
  const before = new Map<string, string>();
  for (const client of clients) before.set(client.from, await ask(client));
  t.true(new Set(before.values()).size > 2);
  await host.haproxy('clear table default:web:tcp:17080:v4');
  for (const client of clients.toReversed())
    t.is(await ask(client), before.get(client.from) ?? '', client.from);
});

// Conformance: spec.sessionAffinity, sessionAffinityConfig
test.serial('A client may get another member after the timeout, and keeps its own until then', async (t) => {
  const host = await withMembers(t, 5);
  const members = [11, 12, 13, 14, 15].map((last) => host.address(last));
  const spec = {
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds: AFFINITY_SECONDS } },
  };
  await host.serve({ members, spec });
  await host.start();
  const chosen = new Set<string>();
  for (let visit = 0; visit < 8 && chosen.size < 2; visit++) {
    const member = await ask(host.place());
    // Longer than a period of the hash.
    const end = Date.now() + AFFINITY_SECONDS * 1_500;
    while (Date.now() < end) {
      t.is(await ask(host.place()), member);
      await delay(100);
    }
    chosen.add(member);
    await host.until('the client is forgotten', async () =>
      / used:0$/m.test(await host.haproxy('show table default:web:tcp:17080:v4')),
    );
  }
  t.true(chosen.size > 1, `always ${[...chosen]}`);
});

// Conformance: spec.sessionAffinity, sessionAffinityConfig
test.serial('Session affinity survives a reload', async (t) => {
  const host = await withMembers(t, 5);
  const members = [11, 12, 13, 14, 15].map((last) => host.address(last));
  await host.serve({ members, spec: { sessionAffinity: 'ClientIP' } });
  await host.start();
  const clients = [51, 52, 53, 54, 55, 56].map((last) => host.address(last));
  const chosen = (): Promise<readonly string[]> =>
    Promise.all(clients.map((from) => ask({ ...host.place(), from })));
  const before = await chosen();
  t.true(new Set(before).size > 1);
  t.deepEqual(await chosen(), before);
  // HAProxy sends its table to a new worker only after its own attempt to receive one, 5 s after a cold start.
  await host.until('it can teach', async () => {
    const flags = /flags=0x([0-9a-f]+) resync/.exec(await host.haproxy('show peers'))?.[1] ?? '0';
    return (Number.parseInt(flags, 16) & 3) === 3;
  });
  await host.serve({ name: 'shop', address: host.address(2) });
  await host.until('it is served', () => host.answers(2));
  t.is(await host.reloads(), 1);
  await host.until('it has learned', async () =>
    / used:6$/m.test(await host.haproxy('show table default:web:tcp:17080:v4')),
  );
  t.deepEqual(await chosen(), before);
});

test.serial(
  'Idle clients in HTTP mode get no error after a reload and a replacement of all members',
  async (t) => {
    const host = await withMembers(t, 2);
    const http = { annotations: { mode: 'http' } };
    await host.serve(http);
    await host.start();
    const clients = await Promise.all(Array.from({ length: 10 }, () => Client.connect(host.place())));
    t.teardown(() => {
      for (const client of clients) client.close();
    });
    for (const client of clients) t.is(await client.ask(), host.address(11));
    await host.serve({ name: 'shop', address: host.address(2) });
    await host.until('it is served', () => host.answers(2));
    t.is(await host.reloads(), 1);
    await host.serve({ ...http, members: [host.address(12)] });
    await host.until('the new member answers', async () => (await ask(host.place())) === host.address(12));
    // A client whose connection was closed connects again; one whose connection stayed would get 503.
    const answers = await Promise.all(clients.map((client) => client.ask().catch(() => 'closed')));
    t.deepEqual([...new Set(answers)], ['closed']);
  },
);

// Conformance: spec.ports[].protocol
test.serial('An agent without nft reports a UDP port and serves the TCP port beside it', async (t) => {
  const host = await withMembers(t);
  const ports = [
    { name: 'http', port: VIP_PORT, protocol: 'TCP', targetPort: MEMBER_PORT },
    { name: 'dns', port: VIP_PORT, protocol: 'UDP', targetPort: MEMBER_PORT },
  ];
  await host.serve({ portName: 'http', spec: { ports } });
  await host.start(['--nft', '/nowhere/nft']);
  t.true(await host.answers());
  const { verdict, problems } = await host.why();
  t.is(verdict, 'served in part');
  t.deepEqual(
    problems.map(({ reason, port }) => [reason, port]),
    [['ProtocolNotServed', { protocol: 'UDP', port: VIP_PORT }]],
  );
});

test.serial(
  'A Service keeps its port against one that claims to be older, and `why` reports that',
  async (t) => {
    const host = await withMembers(t);
    await host.serve({ name: 'older' });
    await host.start();
    await host.until('it is served', async () => (await host.why('default/older')).verdict === 'served');
    await host.serve({ name: 'aa-newer', created: '2020-01-01T00:00:00Z' });
    await host.until(
      'it is refused',
      async () => (await host.why('default/aa-newer')).verdict === 'not served',
    );
    t.is((await host.why('default/older')).verdict, 'served');
    const { problems } = await host.why('default/aa-newer');
    t.is(problems[0]?.reason, 'AddressInUse');
    t.regex(problems[0]?.message ?? '', /default\/older/);
    await host.remove('older.yaml');
    await host.until('it inherits', async () => (await host.why('default/aa-newer')).verdict === 'served');
    t.true(await host.answers());
  },
);

test.serial(
  'A broken manifest keeps its last good content and is reported until it is corrected',
  async (t) => {
    const host = await withMembers(t, 2);
    await host.serve();
    await host.serve({ name: 'shop', address: host.address(2) });
    const agent = await host.start();
    await host.write('web.yaml', 'kind: Service\n  metadata: [');
    await host.until('it is named', async () => (await host.status()).problems.length === 1);
    const [problem] = (await host.status()).problems;
    t.is(problem?.object, join(host.manifestDir, 'web.yaml'));
    t.is(problem?.reason, 'InvalidFile');
    t.true((await host.why()).reasons.includes(problem?.message ?? ''), '`why` of its Service names it');
    t.is((await agent.metrics())('headgate_problems', { reason: 'InvalidFile' }), 1);
    t.true(await host.answers());
    // Other manifests still change.
    await host.serve({ name: 'shop', address: host.address(2), members: [host.address(12)] });
    await host.until('it changes', async () => (await ask(host.place(2))) === host.address(12));
    await host.serve({ members: [host.address(12)] });
    await host.until('it is solved', async () => (await host.status()).problems.length === 0);
    await host.until('it changes', async () => (await ask(host.place())) === host.address(12));
  },
);

test.serial('SIGHUP applies new settings and names those that need a restart', async (t) => {
  const host = await withMembers(t);
  const config = join(host.directory, 'headgate.yaml');
  await writeFile(config, 'drainTimeout: 5m\nmanifests: []\n');
  await host.serve();
  const agent = await host.start(['--config', config]);
  const kept = await Client.connect(host.place());
  t.is(await kept.ask(), host.address(11));

  await writeFile(config, 'drainTimeout: 1s\nhardStopAfter: 10m\nhaproxySupervisor: external\n');
  agent.signal('SIGHUP');
  await host.until('HAProxy has it', async () => agent.hasLogged('Reloaded HAProxy'));
  t.true((await host.config()).includes('hard-stop-after 600000ms'));
  const settings = agent.log.filter(({ setting }) => setting !== undefined);
  t.deepEqual(
    settings
      .map(({ message, setting }) => [setting, message.endsWith('takes effect at the next restart')])
      .sort(),
    [
      ['drainTimeout', false],
      ['haproxySupervisor', true],
      ['hardStopAfter', false],
    ],
  );
  t.is(await kept.ask(), host.address(11));
  kept.close();
  // The new drain timeout applies; the old one of 5 minutes would not end during the test.
  const drained = await Client.connect(host.place());
  t.is(await drained.ask(), host.address(11));
  await host.serve({ members: [] });
  await drained.closed;
  await host.serve();
  await host.until('it is served again', () => host.answers());

  // Invalid settings change nothing.
  const from = agent.log.length;
  await writeFile(config, 'drainTimeoutt: 1s\n');
  agent.signal('SIGHUP');
  await host.until('it is refused', async () =>
    agent.hasLogged('Cannot use the new settings: the old ones stay in effect', from),
  );
  t.true(agent.hasLogged('drainTimeout', from));
  t.true(await host.answers());
});

/** A host with members at addresses 11 and on, and no Service yet. */
async function withMembers(t: ExecutionContext<unknown>, count = 1): Promise<TestHost> {
  const host = await TestHost.create(t);
  await startMembers(t, host, count);
  return host;
}
