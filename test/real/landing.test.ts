// The landing: new Services are served by a second HAProxy first, and move to the main one without a failed connection.

import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { processesOf, type RunningAgent, signal, TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { goneBack, type ReadFamily, readMetrics } from '../support/report/metrics-text.ts';
import { startMembers } from '../support/traffic/members.ts';
import { ask } from '../support/traffic/traffic.ts';

const test = requires(ava, { haproxy: true });
const inNamespaces = requires(ava, { haproxy: true, root: true, programs: ['ip', 'nsenter', 'sysctl'] });

const FIRST = 2;

/** A host whose agent serves `default/web` at address 1 from the main HAProxy. */
async function started(
  t: ExecutionContext<unknown>,
  flags: readonly string[] = [],
): Promise<{ readonly host: TestHost; readonly agent: RunningAgent }> {
  const host = await TestHost.create(t, { landing: true, flags: ['--reload-interval', '100ms', ...flags] });
  await startMembers(t, host, 3);
  await host.serve();
  const agent = await host.startWithLanding();
  return { host, agent };
}

/** The same; nothing moves to the main HAProxy before `rest()`, however slow the machine is. */
async function resting(t: ExecutionContext<unknown>) {
  const host = await TestHost.create(t, { landing: true, flags: ['--reload-interval', '100ms'] });
  await startMembers(t, host, 3);
  await host.serve();
  const file = join(host.directory, 'headgate.yaml');
  await writeFile(file, 'landingRest: 1h\n');
  const agent = await host.startWithLanding(['--config', file]);
  const rest = async (): Promise<void> => {
    await writeFile(file, 'landingRest: 1s\n');
    agent.signal('SIGHUP');
  };
  return { host, agent, rest };
}

/** A new Service `new-N` at address N. */
async function add(host: TestHost, last: number, annotations = {}): Promise<void> {
  const members = [11, 12, 13].map((each) => host.address(each));
  await host.serve({ name: `new-${last}`, address: host.address(last), members, annotations });
}

async function landed(host: TestHost): Promise<number> {
  return (await host.status()).haproxy.landed;
}

/** The frontends in the landing's file. */
async function inLanding(host: TestHost): Promise<number> {
  const text = await readFile(host.landing.config, 'utf8');
  return [...text.matchAll(/^ {4}bind 127\./gm)].length;
}

/** The processes of the HAProxy with this file. */
function processes(path: string): readonly number[] {
  return processesOf(dirname(path));
}

test.serial(
  'New Services one after the other need no reload of the main HAProxy, then they move there with one',
  async (t) => {
    const { host, agent, rest } = await resting(t);
    const reloads = await host.reloads();
    for (let last = FIRST; last < FIRST + 10; last++) {
      await add(host, last);
      await host.until(`new-${last} is served`, () => host.answers(last));
    }
    t.is(await host.reloads(), reloads);
    t.is(await landed(host), 10);
    t.is(await inLanding(host), 10);
    t.is((await host.why('default/new-5')).verdict, 'served');
    t.regex((await host.command('status')).stdout, /^Landing: +10 load balancers$/m);
    await rest();
    await host.until('all are in the main HAProxy', async () => (await landed(host)) === 0);
    t.is(await host.reloads(), reloads + 1);
    await host.until('the landing is empty', async () => (await inLanding(host)) === 0);
    for (let last = FIRST; last < FIRST + 10; last++) t.true(await host.answers(last));
    const read = await agent.metrics();
    t.true(read('headgate_landing_reloads_total', { result: 'done' }) >= 5);
    t.is(read('headgate_landing_load_balancers'), 0);
  },
);

test.serial(
  'Members of a Service that lands change without a reload, and a changed or removed Service follows at once',
  async (t) => {
    const { host } = await started(t);
    await add(host, FIRST);
    await host.until('it is served', () => host.answers(FIRST));
    const worker = processes(host.landing.config);
    await host.serve({ name: 'new-2', address: host.address(FIRST), members: [host.address(12)] });
    await host.until('only the second member gets requests', async () => {
      const answers = await Promise.all(Array.from({ length: 8 }, () => ask(host.place(FIRST))));
      return answers.every((answer) => answer === host.address(12));
    });
    t.deepEqual(processes(host.landing.config), worker);
    await host.serve({ name: 'new-2', address: host.address(3), members: [host.address(12)] });
    await host.until('it has its other address', () => host.answers(3));
    await host.until('the old address is gone', async () => !(await host.answers(FIRST)));
    await host.remove('new-2.yaml');
    await host.until('it is gone', async () => !(await host.answers(3)));
    await host.until('nothing is in the landing', async () => (await landed(host)) === 0);
    t.is(await host.reloads(), 0);
  },
);

test.serial('A member that is down stays down over the move, and counts do not go back', async (t) => {
  const { host, agent, rest } = await resting(t);
  const annotations = { 'health-monitor': 'tcp', 'health-monitor-interval': '1s' };
  const members = [host.address(11), host.address(99)];
  await host.serve({ name: 'new-2', address: host.address(FIRST), members, annotations });
  await host.until('one member is down', async () => (await downIn(host)) === 1);
  const counted = async (): Promise<ReadonlyMap<string, ReadFamily>> => {
    const all = readMetrics(await (await fetch(`${agent.url}/metrics`)).text(), 'text');
    return new Map([...all].filter(([name]) => /^headgate_(listener|pool|member|haproxy)_/.test(name)));
  };
  let before = await counted();
  let failed = 0;
  await rest();
  for (let moved = false; !moved; ) {
    for (let at = 0; at < 10; at++) await ask(host.place(FIRST)).catch(() => failed++);
    t.is(await downIn(host), 1);
    const after = await counted();
    t.deepEqual(goneBack(before, after), []);
    before = after;
    moved = (await landed(host)) === 0;
  }
  t.is(failed, 0);
  const sessions = (all: ReadonlyMap<string, ReadFamily>): number => {
    const samples = [...(all.get('headgate_pool_sessions_total')?.samples ?? [])];
    return samples.find(([series]) => series.includes('service="new-2"'))?.[1] ?? 0;
  };
  // A scrape hands out the text of the last round.
  await host.until('the requests are counted', async () => {
    const after = await counted();
    t.deepEqual(goneBack(before, after), []);
    before = after;
    return sessions(after) >= 10;
  });
});

/** Members of new-2 whose check fails. */
async function downIn(host: TestHost): Promise<number> {
  const { listeners } = await host.why('default/new-2');
  return listeners.flatMap(({ members }) => members).filter(({ status }) => status === 'ERROR').length;
}

test.serial('Clients keep their member over the move, also if the members have changed since', async (t) => {
  const { host, rest } = await resting(t);
  const spec = { sessionAffinity: 'ClientIP' };
  const serve = (...members: readonly number[]) =>
    host.serve({
      name: 'new-2',
      address: host.address(FIRST),
      members: members.map((last) => host.address(last)),
      spec,
    });
  await serve(11);
  await host.until('it is served', () => host.answers(FIRST));
  const clients = Array.from({ length: 20 }, (_, at) => host.address(100 + at));
  const asked = () => Promise.all(clients.map((from) => ask({ ...host.place(FIRST), from })));
  const before = await asked();
  t.deepEqual([...new Set(before)], [host.address(11)]);
  await serve(11, 12, 13);
  let last = 130;
  const reachesAnother = async (): Promise<boolean> =>
    (await ask({ ...host.place(FIRST), from: host.address(last++) })) !== before[0];
  await host.until('new clients reach the others', reachesAnother);
  await rest();
  await host.until('it has moved', async () => (await landed(host)) === 0);
  await host.until('the landing is empty', async () => (await inLanding(host)) === 0);
  await delay(200);
  t.deepEqual(await asked(), before);
});

test.serial('Clients keep their member over the move', async (t) => {
  const { host, rest } = await resting(t);
  const members = [11, 12, 13].map((each) => host.address(each));
  await host.serve({
    name: 'new-2',
    address: host.address(FIRST),
    members,
    spec: { sessionAffinity: 'ClientIP' },
  });
  await host.until('it is served', () => host.answers(FIRST));
  const clients = Array.from({ length: 20 }, (_, at) => host.address(100 + at));
  const asked = () => Promise.all(clients.map((from) => ask({ ...host.place(FIRST), from })));
  const before = await asked();
  t.true(new Set(before).size > 1);
  await rest();
  while ((await landed(host)) > 0) t.deepEqual(await asked(), before);
  for (let at = 0; at < 5; at++) t.deepEqual(await asked(), before);
});

test.serial(
  'An agent that is killed or stopped finds what is in the landing, and lets it move later',
  async (t) => {
    const { host, agent } = await started(t, ['--landing-rest', '1m']);
    await add(host, FIRST);
    await host.until('it is served', () => host.answers(FIRST));
    const [main, landing] = [processes(host.paths.config), processes(host.landing.config)];
    await agent.kill();
    const again = await host.startWithLanding();
    await host.until('it is still there', async () => (await landed(host)) === 1);
    await add(host, 3);
    await host.until('another one is served', () => host.answers(3));
    t.is(await landed(host), 2);
    t.deepEqual(processes(host.paths.config), main);
    t.true(processes(host.landing.config).some((pid) => landing.includes(pid)));
    // As after a reboot: both HAProxies have to be started.
    await again.kill();
    for (const pid of [...processes(host.paths.config), ...processes(host.landing.config)])
      signal(pid, 'SIGKILL');
    const booted = await host.start();
    await host.until('both are served again', async () => (await host.answers(FIRST)) && host.answers(3));
    t.is(await landed(host), 2);
    await booted.stop();
    await host.start(['--landing-rest', '1s']);
    await host.until('all are in the main HAProxy', async () => (await landed(host)) === 0);
    t.true((await host.answers(FIRST)) && (await host.answers(3)));
  },
);

test.serial(
  'A landing that is killed is started again; one that cannot start leaves its Services to the main HAProxy',
  async (t) => {
    const { host, agent } = await started(t);
    await add(host, FIRST);
    await host.until('it is served', () => host.answers(FIRST));
    for (const pid of processes(host.landing.config)) signal(pid, 'SIGKILL');
    await host.until('it is served again', () => host.answers(FIRST));
    t.is(await landed(host), 1);
    t.is(await host.reloads(), 0);
    // HAProxy cannot make its sockets there.
    await agent.kill();
    for (const pid of processes(host.landing.config)) signal(pid, 'SIGKILL');
    const runtime = join(host.runtimeDir, 'haproxy-landing');
    await writeFile(join(host.directory, 'haproxy-broken'), BROKEN(host.haproxyProgram, runtime), {
      mode: 0o755,
    });
    const next = await host.start(['--haproxy', join(host.directory, 'haproxy-broken')]);
    await host.until('the main HAProxy serves it', () => host.answers(FIRST));
    await add(host, 3);
    await host.until('and another one', () => host.answers(3));
    await host.until('nothing is left to the landing', async () => (await landed(host)) === 0);
    t.regex(next.text, /The landing does not serve: its Services go to the main HAProxy/);
    t.true(await next.isReady());
  },
);

test.serial('A landing that hangs is ended, and its Services are served again', async (t) => {
  const { host, agent } = await resting(t);
  await add(host, FIRST);
  await host.until('it is served', () => host.answers(FIRST));
  const hung = processes(host.landing.config);
  for (const pid of hung) signal(pid, 'SIGSTOP');
  await host.until('it is served again', () => host.answers(FIRST));
  await host.until('the hung processes have ended', async () =>
    processes(host.landing.config).every((pid) => !hung.includes(pid)),
  );
  t.regex(agent.text, /HAProxy did not answer any more, and was ended/);
  await host.until('nothing is left to the landing', async () => (await landed(host)) === 0);
  t.true(await host.answers(FIRST));
  t.deepEqual((await host.why('default/new-2')).problems, []);
});

test.serial('With --stop-dataplane-on-exit a HAProxy that is being started ends as well', async (t) => {
  const host = await TestHost.create(t, { landing: true, flags: ['--stop-dataplane-on-exit'] });
  await startMembers(t, host, 3);
  await host.serve();
  const configs = [host.paths.config, host.landing.config];
  for (let turn = 0; turn < 4; turn++) {
    const agent = await host.launch();
    await host.until('HAProxy is being started', async () =>
      configs.slice(0, 1 + (turn % 2)).every((config) => processes(config).length > 0),
    );
    agent.signal('SIGTERM');
    await agent.exited;
    t.deepEqual(configs.flatMap(processes), [], `turn ${turn}`);
    if (turn === 0) await add(host, FIRST);
  }
});

/** A HAProxy that does not start with this folder. */
const BROKEN = (program: string, folder: string): string =>
  `#!/bin/sh\ncase "$*" in *${folder}*) echo broken >&2; exit 1;; esac\nexec ${program} "$@"\n`;

test.serial('More Services than the landing takes go to the main HAProxy', async (t) => {
  const { host } = await started(t);
  for (let last = FIRST; last < 10; last++) await add(host, last);
  await host.until('they are served', async () => (await host.answers(FIRST)) && (await host.answers(9)));
  t.true((await landed(host)) > 0);
  for (let at = 0; at < 60; at++)
    await host.serve({ name: `many-${at}`, address: host.address(20 + at), members: [host.address(11)] });
  await host.until('all are served', async () => {
    for (let at = 0; at < 60; at++) if (!(await host.answers(20 + at))) return false;
    return true;
  });
  t.true((await landed(host)) <= 40);
});

inNamespaces.serial('Twenty moves under load of new connections fail none', async (t) => {
  const { host, network, serve } = await namespaces(t);
  await serve(100);
  await host.startWithLanding();
  const load = startLoad(network);
  for (let round = 0; round < 4; round++) {
    for (let n = round * 5 + 1; n <= round * 5 + 5; n++) {
      await serve(n);
      await host.until(`new-${n} is served`, async () => (await network.whoServes(vip(n))) === 'member');
      load.add(vip(n));
    }
    await host.until('they have moved', async () => (await landed(host)) === 0);
    await host.until('the landing is empty', () => isLandingEmpty(host));
  }
  const { done, failed } = await load.end();
  t.log(`${done} connections`);
  t.true(done > 2_000, `${done} connections`);
  t.deepEqual(failed, []);
});

inNamespaces.serial('Changes of the structure of a Service under load fail no new connection', async (t) => {
  const { host, network, serve } = await namespaces(t);
  await serve(1);
  await serve(2);
  await host.startWithLanding();
  const load = startLoad(network);
  load.add(vip(1));
  load.add(vip(2));
  const reloads = await host.reloads();
  for (let round = 1; round <= 5; round++) {
    const limit = String(1_000 + round);
    await serve(1, { 'connection-limit': limit });
    await host.until('it is in the landing', async () => (await landed(host)) === 1);
    await host.until('the landing has the limit', async () =>
      (await readFile(host.landing.config, 'utf8')).includes(`maxconn ${limit}`),
    );
    await host.until('it has moved', async () => (await landed(host)) === 0);
    t.true((await host.config()).includes(`maxconn ${limit}`));
    await host.until('the landing is empty', () => isLandingEmpty(host));
  }
  t.is((await host.reloads()) - reloads, 5);
  const { done, failed } = await load.end();
  t.log(`${done} connections`);
  t.true(done > 2_000, `${done} connections`);
  t.deepEqual(failed, []);
});

function vip(n: number): string {
  return `10.9.2.${n}`;
}

async function isLandingEmpty(host: TestHost): Promise<boolean> {
  return !(await readFile(host.landing.config, 'utf8')).includes('bind 10.');
}

/** A load balancer, a client and a member, each in its own network namespace. */
async function namespaces(t: ExecutionContext<unknown>) {
  const network = await TestNetwork.create(t, ['lb', 'client', 'member']);
  network.serve('member', 17_090);
  const host = await TestHost.create(t, {
    landing: true,
    flags: [
      ...['--netns', network.netns('lb'), '--landing-rest', '1s', '--reload-interval', '100ms'],
      ...['--haproxy-user=', '--haproxy-group='],
    ],
  });
  for (let n = 1; n <= 20; n++) await network.run('lb', 'ip', 'address', 'add', `${vip(n)}/32`, 'dev', 'lo');
  await network.run('client', 'ip', 'route', 'add', '10.9.2.0/24', 'via', network.v4('lb'));
  const members = [network.v4('member')];
  const serve = (n: number, annotations = {}): Promise<void> =>
    host.serve({ name: `new-${n}`, address: vip(n), port: 8080, members, annotations });
  return { host, network, serve };
}

/** Six clients that make one connection after the other to each of the addresses. */
function startLoad(network: TestNetwork) {
  const script = `
    const all = [], failed = [];
    let done = 0, ended = false;
    process.stdin.setEncoding('utf8').on('data', (text) => all.push(...text.trim().split('\\n'))).on('end', () => { ended = true; });
    const one = (address) => new Promise((resolve) => {
      const socket = require('net').connect(8080, address);
      let got = '';
      socket.setTimeout(3_000, () => socket.destroy(new Error('timeout')));
      socket.on('data', (data) => { got += data; });
      socket.on('error', (error) => failed.push(address + ' ' + error.message));
      socket.on('close', () => { done++; if (got !== 'member' && failed.length < 50) failed.push(address + ' got ' + JSON.stringify(got)); resolve(); });
    });
    const work = async () => {
      for (let n = 0; !ended; n++) {
        if (all.length > 0) await one(all[n % all.length]);
        else await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    Promise.all([1, 2, 3, 4, 5, 6].map(work)).then(() => console.log(JSON.stringify({ done, failed })));`;
  const child = network.start('client', process.execPath, '-e', script);
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  return {
    add: (address: string): void => void child.stdin?.write(`${address}\n`),
    end: async (): Promise<{ readonly done: number; readonly failed: readonly string[] }> => {
      await delay(500);
      child.stdin?.end();
      await once(child, 'close');
      return JSON.parse(output);
    },
  };
}
