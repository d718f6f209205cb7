import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import ava, { type ExecutionContext } from 'ava';
import { requires } from './support/basics/requirements.ts';
import { ownNetwork } from './support/host/own-network.ts';

const test = requires(ava, { haproxy: true }).serial;
const root = fileURLToPath(new URL('..', import.meta.url));

// As `npm run` does, which puts another nft first.
const NPM_PATH = `${join(root, 'node_modules/.bin')}:${process.env.PATH}`;

test('make demo loses no request, never reloads the main HAProxy, and leaves nothing behind', async (t) => {
  const { child, output, directory } = await startDemo(t, '1');
  const [status] = await once(child, 'close');
  t.is(status, 0, output());
  for (const phase of [
    'nothing changes',
    'scale from 2 to 20 members',
    'move a Service 18 times',
    'scale back to 5',
    'drain one member, remove it',
    'kill one without notice',
    'replace every member',
    'save a broken manifest',
    'add a Service ten times',
  ]) {
    const [requests, failed, p50, p99, reloads] = cellsOf(output(), phase);
    t.true(Number(requests) > 50, phase);
    t.is(failed, '0', phase);
    t.true(Number(p50) > 0 && Number(p99) >= Number(p50), phase);
    t.is(reloads, '0', phase);
  }
  t.regex(
    output(),
    /^ {2}each after (\d+, ){9}\d+ ms, from a second, small HAProxy; the main one takes all over in a later reload$/m,
  );
  t.regex(output(), /^20 members, .* share this machine: .*\nEach row .*\nA reload .*\n\nphase /m);
  t.regex(output(), /^A controller that .* would have reloaded it 29 times\.$/m);
  t.regex(
    output(),
    /^From the end of an edit to the first answer of the new member: median [\d.]+ ms, worst [\d.]+ ms of 29 edits\.$/m,
  );
  t.regex(
    output(),
    /^ {2}as it should, the agent reports \d+:\d+: .+; what could be read of the file, now or before, is in force$/m,
  );
  t.regex(
    output(),
    /^A Gateway: [\d,]+ requests on new TLS connections, 0 failed; a new route after [\d.]+ ms, a weight moved from 0 to 100 after [\d.]+ ms, a renewed certificate after [\d.]+ ms\.$/m,
  );
  t.regex(
    output(),
    /^One of five members answers 500: [1-5] of 300 requests failed, then it rested; requests again \d+ ms after it was well\.$/m,
  );
  t.regex(
    output(),
    /^One more Service .*:\n {2}1 opens, 0 close; 2 load balancers \(1 by commands, 1 by the landing\); 0 problems\n {2}TCP port \d+ of 127\.0\.0\.1 \(Service default\/debug\): Closed .* → Open to everybody\n {2}changes Service default\/web: \d+ commands?$/m,
  );
  // Where users may make namespaces; the kernel path's own tests need them in any case.
  t.regex(
    output(),
    /^UDP(, by the kernel: [\d,]+ queries, 0 lost, while the members changed 12 times| is not shown: .*)\.$/m,
  );
  t.false(output().includes('\u001B'), 'Plain where the output is no terminal');
  await assertNothingIsLeft(t, directory);
});

for (const [signal, moment] of [
  ['SIGTERM', /^nothing changes/m],
  ['SIGINT', /^phase/m],
] as const) {
  test(`make demo cleans up and returns an error on an early ${signal}`, async (t) => {
    const { child, output, directory } = await startDemo(t, '');
    await until(() => moment.test(output()), output);
    child.kill(signal);
    const [status] = await once(child, 'close');
    t.is(status, 1, output());
    await assertNothingIsLeft(t, directory);
  });
}

test('make demo leaves nothing behind on a SIGINT while its UDP part runs', async (t) => {
  const { child, output, directory } = await startDemo(t, '');
  t.timeout(600_000);
  let hasAgent = false;
  await until(
    () => hasAgent || /^UDP is not shown/m.test(output()),
    output,
    async () => {
      for (const name of await readdir(directory)) {
        const log = await readFile(join(directory, name, 'udp/agent.log'), 'utf8').catch(() => '');
        hasAgent ||= log.includes('Started HAProxy');
      }
    },
  );
  child.kill('SIGINT');
  await once(child, 'close');
  await assertNothingIsLeft(t, directory);
});

test('The example manifests have no problem, and HAProxy accepts their configuration', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'examples-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const run = promisify(execFile);
  const folders = ['--state-dir', join(directory, 's'), '--runtime-dir', join(directory, 'r')];
  const places = ['examples/manifests', 'examples/options.yaml'];
  const manifests = places.flatMap((place) => ['--manifests', join(root, place)]);
  const { stdout, stderr } = await run(
    join(root, 'bin/headgate'),
    ['render', '--json', '--strict', ...manifests, '--output', directory, ...folders],
    { env: environment({}) },
  );
  t.is(stderr, '');
  t.is(JSON.parse(stdout).loadBalancers, 2);
  await t.notThrowsAsync(
    run('haproxy', ['-c', '-f', join(directory, 'haproxy/haproxy.cfg')], { env: environment({}) }),
  );
});

test('A member that ends answers all connections from before its end, even after a stall', async (t) => {
  const address = `${await ownNetwork(t)}.1`;
  // As on a busy machine: the member stalls until a client has connected and its grace period is over.
  const stall = `import { readSync, writeSync } from 'node:fs';
    process.once('SIGTERM', () => setImmediate(() => {
      const end = performance.now() + 600;
      writeSync(1, 'stalls');
      readSync(0, Buffer.alloc(1));
      while (performance.now() < end);
    }));`;
  const args = ['--import', `data:text/javascript,${encodeURIComponent(stall)}`];
  const child = spawn(process.execPath, [...args, join(root, 'examples/member.ts'), address, '17090'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  t.is(String(await once(child.stdout, 'data')), 'stalls');
  const socket = connect(17_090, address);
  await once(socket, 'connect');
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  child.stdin.write('x');
  t.regex(String(await once(socket, 'data')), /^HTTP\/1.1 200 /);
  t.deepEqual(await exited, [0, null]);
});

interface RunningDemo {
  readonly child: ChildProcess;
  readonly output: () => string;
  /** The parent of its temporary directory, which no other process uses. */
  readonly directory: string;
}

async function startDemo(t: ExecutionContext, once: string): Promise<RunningDemo> {
  const directory = await mkdtemp(join(tmpdir(), 'demo-'));
  // Ends with this process, even if the test runner kills it.
  const args = ['--pdeathsig', 'TERM', process.execPath, join(root, 'examples/demo.ts')];
  const child = spawn('setpriv', args, {
    env: environment({ DEMO_ONCE: once, TMPDIR: directory, PATH: NPM_PATH }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM');
      await new Promise((resolve) => child.once('close', resolve));
    }
    await rm(directory, { recursive: true, force: true });
  });
  return { child, output: () => output, directory };
}

/** The cells of a phase's row after its name. */
function cellsOf(output: string, phase: string): string[] {
  const row = output.split('\n').find((line) => line.startsWith(`${phase} `)) ?? '';
  return row.slice(phase.length).replaceAll(',', '').trim().split(/\s+/);
}

/** Every process of the demonstration has the variable that points to this directory. */
async function assertNothingIsLeft(t: ExecutionContext, directory: string): Promise<void> {
  t.deepEqual(await readdir(directory), []);
  const left: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const variables = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
    if (variables.split('\0').includes(`TMPDIR=${directory}`)) {
      left.push(await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => pid));
    }
  }
  t.deepEqual(left, []);
}

async function until(
  condition: () => boolean,
  output: () => string,
  look = () => Promise.resolve(),
): Promise<void> {
  for (const end = performance.now() + 500_000; !condition(); await delay(20)) {
    await look();
    if (performance.now() > end) throw new Error(`Not within 500 s:\n${output()}`);
  }
}

/** The environment without the user's settings. Debian installs haproxy outside an ordinary user's PATH. */
function environment(given: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(HEADGATE_|FORCE_COLOR$)/.test(name));
  return { ...Object.fromEntries(kept), PATH: `${process.env.PATH}:/usr/sbin:/sbin`, ...given };
}
