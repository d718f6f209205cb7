// The commands as a user runs them: their output, their exit status and their effect on traffic.

import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava from 'ava';
import { runCommand } from '../../agent/host/run-command.ts';
import { requires } from '../support/basics/requirements.ts';
import { processesOf, TestHost } from '../support/host/agent.ts';
import { startMembers } from '../support/traffic/members.ts';
import { ask, Load } from '../support/traffic/traffic.ts';

const test = requires(ava, { haproxy: true });

/** Milliseconds. */
const SEVERAL_ATTEMPTS = 3_000;

test.serial('`render` writes exactly the bytes that `run` wrote', async (t) => {
  const host = await TestHost.create(t);
  const settings = join(host.directory, 'headgate.yaml');
  await writeFile(settings, 'hardStopAfter: 7m\ndefaults:\n  algorithm: least-connections\n');
  const members = [11, 12, 13].map((last) => host.address(last));
  await host.serve({ members });
  await host.serve({
    name: 'shop',
    address: host.address(2),
    members: [],
    annotations: { 'health-monitor': 'http', mode: 'http' },
  });
  await host.start(['--config', settings]);
  const rendered = async (): Promise<string> => {
    const output = join(host.directory, 'rendered');
    const { status, stdout } = await host.command('render', ['--config', settings, '--output', output]);
    t.is(status, 0);
    t.regex(stdout, /2 load balancers/);
    return readFile(join(output, 'haproxy', 'haproxy.cfg'), 'utf8');
  };
  t.is(await rendered(), await host.config());
  // The agent writes the file soon after it has changed HAProxy by commands.
  await host.serve({ members: [host.address(14)] });
  await host.until('the file has it', async () => (await host.config()).includes(host.address(14)));
  t.is(await rendered(), await host.config());
});

test.serial('`render` and `status` escape what does not print in the name of a file', async (t) => {
  const host = await TestHost.create(t);
  await host.write('a\u001b]0;x\u0007\nService default\u202e.yaml', 'kind: [');
  const shown = `${host.manifestDir}/a\\u001b]0;x\\u0007\\u000aService default\\u202e.yaml:`;
  const { stderr } = await host.command('render', ['--output', join(host.directory, 'rendered')]);
  t.true(stderr.startsWith(shown), stderr);
  t.is(stderr.trimEnd().split('\n').length, 1);
  await host.start();
  const { stdout } = await host.command('status');
  t.true(stdout.includes(`\n  ${shown}`), stdout);
  t.false(/\p{C}/u.test(stdout.replaceAll('\n', '')));
});

test.serial('`render` names refused objects, and fails only for invalid settings', async (t) => {
  const host = await TestHost.create(t);
  const output = join(host.directory, 'rendered');
  await host.serve({ address: '999.1.1.1', members: [] });
  await host.write('broken.yaml', 'kind: [');
  await host.write('other.yaml', '{kind: Servce, apiVersion: v1, metadata: {name: other}}');
  const refused = await host.command('render', ['--output', output]);
  t.is(refused.status, 0);
  const lines = refused.stderr.trimEnd().split('\n');
  // Each message names its object once.
  t.is(lines.filter((line) => line.startsWith(`${host.manifestDir}/broken.yaml:`)).length, 1);
  t.is(refused.stderr.split('broken.yaml').length, 2);
  t.true(lines.some((line) => line.startsWith('Service default/web: ') && line.includes('999.1.1.1')));
  t.true(lines.some((line) => line.includes('Service default/other: kind: "Servce" is unknown')));
  const json = await host.command('render', ['--output', output, '--json']);
  const { files, loadBalancers, problems } = JSON.parse(json.stdout);
  const written = [join(output, 'haproxy', 'haproxy.cfg')];
  t.deepEqual([files, loadBalancers], [written, 1]);
  t.is(problems.length, lines.length);
  const strict = await host.command('render', ['--strict']);
  t.deepEqual([strict.status, strict.stderr], [1, refused.stderr]);
  t.is(strict.stdout, `1 load balancer, ${problems.length} problems\n`);
  for (const wrong of [
    [],
    ['--output', output, '--drain-timeout', 'soon'],
    ['--output', output, '--no-such'],
  ]) {
    const { status, stdout, stderr } = await host.command('render', wrong);
    t.deepEqual([status, stdout], [2, ''], wrong.join(' '));
    const asData = await host.command('render', [...wrong, '--json']);
    t.is(asData.status, 2);
    const { ok, error } = JSON.parse(asData.stdout);
    t.deepEqual([ok, `headgate: ${error.code}: ${error.message}\n`], [false, stderr]);
  }
});

test.serial(
  '`status` and `why` end with 0 if all is well, 1 after a fault, 2 for a wrong argument, 3 without an agent',
  async (t) => {
    const host = await TestHost.create(t);
    await startMembers(t, host);
    t.is((await host.command('status')).status, 3);
    const unanswered = await host.command('why', ['default/web']);
    t.is(unanswered.status, 3);
    t.regex(unanswered.stderr, /No agent answers/);

    await host.serve();
    await host.serve({ name: 'empty', address: host.address(2), members: [] });
    const agent = await host.start();
    const good = await host.command('status');
    t.deepEqual([good.status, good.stderr], [0, '']);
    t.regex(good.stdout, /Load balancers: +2 \(2 listeners, 1 member\)/);
    const { loadBalancers, haproxy, fault } = JSON.parse((await host.command('status', ['--json'])).stdout);
    t.deepEqual([loadBalancers, haproxy.workerPid, fault], [2, await host.worker(), '']);

    const served = await host.command('why', ['default/web']);
    t.is(served.status, 0);
    t.regex(served.stdout, /^Service default\/web: served, ONLINE$/m);
    const empty = await host.command('why', ['default/empty', '--json']);
    t.is(empty.status, 1);
    t.like(JSON.parse(empty.stdout), { key: 'default/empty', verdict: 'no ready member' });
    t.is((await host.command('why', ['default/absent'])).status, 1);
    for (const wrong of [
      [],
      ['a/b/c'],
      ['Web'],
      ['default/web', 'default/web'],
      ['default/web', '--no-such'],
    ])
      t.is((await host.command('why', wrong)).status, 2, wrong.join(' '));
    t.is((await host.command('status', ['default/web'])).status, 2);
    t.is((await host.command('statsu')).status, 2);

    // HAProxy has ended and cannot start again.
    await agent.stop();
    const alone = await host.start(['--haproxy-supervisor', 'external']);
    const isServed = async (count: number): Promise<boolean> => {
      const offline = (await alone.metrics())('headgate_operating_status', {
        kind: 'load_balancer',
        status: 'OFFLINE',
      });
      return (
        (await host.status()).operating.counts.load_balancer.OFFLINE === offline && offline === 2 - count
      );
    };
    // One Service has no member.
    await host.until('status and metrics say what is served', () => isServed(1));
    process.kill(await host.master(), 'SIGKILL');
    await host.until('they say that nothing is', () => isServed(0));
    const bad = await host.command('status');
    t.is(bad.status, 1);
    t.regex(bad.stdout, /^Fault: +HAProxy /m);
    t.regex(bad.stdout, /^Health: +2 OFFLINE; members: 1 OFFLINE$/m);
  },
);

test.serial(
  '`check` ends with 0 if this host can run the agent, 1 if not, 2 for invalid settings',
  async (t) => {
    const host = await TestHost.create(t);
    const good = await host.command('check', ['--listen', '127.0.0.1:0']);
    t.is(good.status, 0, good.stdout);
    const json = JSON.parse((await host.command('check', ['--listen', '127.0.0.1:0', '--json'])).stdout);
    t.true(json.ok);
    t.true(json.findings.every((finding: { ok: boolean }) => finding.ok));
    const missing = await host.command('check', [
      '--listen',
      '127.0.0.1:0',
      '--manifests',
      '/no/such/folder',
    ]);
    t.is(missing.status, 1);
    t.regex(missing.stdout, /^BAD {2}\/no\/such\/folder: /m);
    t.is((await host.command('check', ['--listen', 'nowhere'])).status, 2);
    const places = ['--state-dir', host.stateDir, '--runtime-dir', host.runtimeDir];
    const idle = await runCommand(host.headgate, ['check', '--listen', '127.0.0.1:0', ...places], {
      timeout: 30_000,
    });
    t.is(idle.exitCode, 1);
    t.regex(idle.stdout, /^BAD {2}sources: There is nothing to serve: set "manifests"/m);
  },
);

test.serial(
  '`check` counts the ports and checks of manifests in the open files that HAProxy needs',
  async (t) => {
    const host = await TestHost.create(t);
    const all = ['--listen', '127.0.0.1:0', '--manifests', host.manifestDir];
    const [, files = ''] =
      /^ok {3}limits: (\d+) open files/m.exec((await host.command('check', all)).stdout) ?? [];
    // 500 for HAProxy itself, and 256 for ports and checks until there are more.
    const most = ['--max-connections', String(Math.floor((Number(files) - 756) / 2))];
    t.is((await host.command('check', [...all, ...most])).status, 0);
    const members = Array.from({ length: 240 }, (_, at) => host.address(at + 10));
    const annotations = { 'health-monitor': 'tcp' };
    await host.serve({ members, annotations });
    await host.serve({ name: 'second', address: host.address(2), members, annotations });
    const { status, stdout } = await host.command('check', [...all, ...most]);
    t.is(status, 1);
    t.regex(stdout, /^BAD {2}limits: .* 2 listeners and 480 health checks, but the limit is/m);
  },
);

test.serial(
  '`check` warns of a HAProxy that least-connections can hang, and names what uses it',
  async (t) => {
    const host = await TestHost.create(t);
    const haproxy = join(host.directory, 'haproxy-3.2.18');
    await writeFile(
      haproxy,
      "#!/bin/sh\necho 'HAProxy version 3.2.18-1 2026/05/06 - https://haproxy.org/'\n",
    );
    await chmod(haproxy, 0o755);
    const places = ['--state-dir', host.stateDir, '--runtime-dir', host.runtimeDir];
    const all = ['--listen', '127.0.0.1:0', '--haproxy', haproxy, ...places, '--manifests', host.manifestDir];
    const check = async (flags: readonly string[] = []) => {
      const words = ['check', ...all, ...flags];
      const { exitCode, stdout } = await runCommand(host.headgate, words, { timeout: 30_000 });
      return { status: exitCode, stdout };
    };
    await host.serve({ members: [host.address(11)] });
    const unasked = await check();
    t.is(unasked.status, 0, unasked.stdout);
    t.regex(
      unasked.stdout,
      /^ok {3}least-connections: no Service must use it, .* 3360\): install 3\.2\.19 /m,
    );
    const byDefault = await check(['--defaults', 'algorithm=least-connections']);
    t.is(byDefault.status, 1);
    t.regex(byDefault.stdout, /^BAD {2}least-connections: the setting "defaults" uses it, /m);
    await host.serve({ members: [host.address(11)], annotations: { algorithm: 'least-connections' } });
    const asked = await check();
    t.is(asked.status, 1);
    t.regex(asked.stdout, /^BAD {2}least-connections: Service default\/web uses it, /m);
  },
);

test.serial('A second agent with the same runtimeDir exits, and the first one continues', async (t) => {
  const host = await TestHost.create(t);
  await startMembers(t, host);
  await host.serve();
  const first = await host.start();
  const second = await host.launch();
  t.is(await second.exited, 1);
  t.regex(second.text, /Another agent answers at ".*": give this one its own runtimeDir/);
  t.true(await first.isReady());
  t.is((await host.command('status')).status, 0);
  t.is(await ask(host.place()), host.address(11));
});

test.serial('An error of the agent or a command is one line with an error code', async (t) => {
  const host = await TestHost.create(t);
  const file = join(host.directory, 'file');
  await writeFile(file, '');
  const first = await host.start();
  const taken = new URL(first.url ?? '').host;
  const elsewhere = ['--runtime-dir', join(host.directory, 'r2'), '--state-dir', join(host.directory, 's2')];
  for (const [flag, value, words] of [
    ['--manifests', '/dev/null', 'SETTINGS_INVALID: Cannot read the manifests '],
    ['--listen', taken, 'LISTEN_FAILED: Cannot listen on 127.0.0.1 port '],
    ['--runtime-dir', join(file, 'r'), 'FILE_WRITE: Cannot create folder '],
    ['--state-dir', join(file, 's'), 'FILE_WRITE: Cannot create folder '],
  ] as const) {
    const agent = await host.launch([...elsewhere, flag, value]);
    t.not(await agent.exited, 0);
    t.true(agent.text.trimEnd().split('\n').at(-1)?.startsWith(`headgate: ${words}`), agent.text);
    t.false(existsSync(join(host.directory, 'r2/agent.sock')), flag);
  }
  const { status, stderr } = await host.command('render', ['--output', join(file, 'below')]);
  t.is(status, 1);
  t.regex(stderr, /^headgate: FILE_WRITE: Cannot create folder ".*": .*\n$/);
});

test.serial('SIGTERM ends the agent without a failed request', async (t) => {
  const host = await TestHost.create(t);
  await startMembers(t, host);
  await host.serve();
  const agent = await host.start();
  const worker = await host.worker();
  const place = host.place();
  const loads = [new Load(t, place, { kind: 'new' }), new Load(t, place, { kind: 'kept' })];
  await loads[0]?.answered(30);
  t.is(await agent.stop(), 0);
  await loads[0]?.answered(60);
  for (const { failures } of await Promise.all(loads.map((load) => load.stop()))) t.deepEqual(failures, []);
  t.is(await host.worker(), worker);
  t.is((await host.command('status')).status, 3);
});

test.serial('haproxy.cfg contains a change from just before SIGTERM', async (t) => {
  const host = await TestHost.create(t);
  await host.serve({ members: [] });
  const agent = await host.start();
  await host.serve();
  await host.until('HAProxy has it', async () => (await host.servers()).length === 1);
  await agent.stop();
  t.true((await host.config()).includes(host.address(11)));
});

test.serial('With --stop-dataplane-on-exit HAProxy ends with the agent', async (t) => {
  const host = await TestHost.create(t);
  await host.serve();
  const agent = await host.start(['--stop-dataplane-on-exit']);
  t.true(processesOf(host.directory).length >= 3);
  t.is(await agent.stop(), 0);
  await host.until('nothing is left', async () => processesOf(host.directory).length === 0);
});

test.serial('With --stop-dataplane-on-exit a HAProxy from before the agent continues', async (t) => {
  const host = await TestHost.create(t);
  await startMembers(t, host);
  await host.serve();
  await (await host.start()).stop();
  const worker = await host.worker();
  const agent = await host.start(['--stop-dataplane-on-exit']);
  t.is(await agent.stop(), 0);
  t.true(await host.answers());
  t.is(await host.worker(), worker);
});

test.serial('An agent that cannot start reports the reason and leaves nothing behind', async (t) => {
  const host = await TestHost.create(t, { haproxy: '/no/such/haproxy' });
  const agent = await host.launch();
  t.is(await agent.exited, 1);
  t.regex(agent.text, /Cannot run "\/no\/such\/haproxy": install HAProxy 2\.6 or newer/);
  t.deepEqual(processesOf(host.directory), []);
  const folder = join(host.directory, 'gone');
  await mkdir(folder);
  const wrong = await host.launch(['--state-dri', folder]);
  t.is(await wrong.exited, 2);
  t.regex(wrong.text, /state-dir/);
  const missing = await host.launch(['--manifests', join(host.directory, 'missing')]);
  t.is(await missing.exited, 2);
  t.regex(missing.text, /missing/);
  t.false(missing.hasLogged('Headgate runs'));
});

test.serial(
  'A kubeconfig that is missing is one warning, however many parts of the agent need it',
  async (t) => {
    const host = await TestHost.create(t, { flags: ['--kubeconfig', '/no/such/file'] });
    const agent = await host.launch();
    await host.until('it is logged', async () => agent.hasLogged('Cannot read from the API server'));
    // Each part tries several times.
    await delay(SEVERAL_ATTEMPTS);
    const warnings = agent.log.filter(({ level }) => level === 'warn' || level === 'error');
    t.deepEqual(
      warnings.map(({ message }) => message),
      ['Cannot read from the API server; traffic is not affected'],
    );
    t.regex(String(warnings[0]?.error), /\/no\/such\/file/);
  },
);
