import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import {
  Provisioner,
  type ProvisionerOptions,
  type ProvisionRequest,
} from '../../../agent/address-keeper/provisioner.ts';
import { createLog } from '../../../agent/host/log.ts';
import { runCommand } from '../../../agent/host/run-command.ts';
import type { Problem } from '../../../agent/model/load-balancer.ts';
import { eventually } from '../../support/basics/eventually.ts';

interface Rig {
  readonly provisioner: Provisioner;
  readonly directory: string;
  readonly log: string[];
  /** What the program has been told, in order; it appends each line it reads to `calls`. */
  calls(): Promise<Call[]>;
}

type Call = ProvisionRequest & { readonly others: readonly string[] };

/** `script` is a shell script, run as a program in a directory of its own, which it knows as `$0`'s. */
async function rig(
  t: ExecutionContext,
  script: string,
  more: Partial<ProvisionerOptions> = {},
): Promise<Rig> {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-provisioner-'));
  const program = join(directory, 'program');
  await writeFile(program, `#!/bin/sh\ncd "$(dirname "$0")"\n${script}\n`);
  await chmod(program, 0o755);
  const log: string[] = [];
  const provisioner = new Provisioner({
    program,
    log: createLog({ level: 'info', format: 'json', destination: { write: (line) => log.push(line) } }),
    ...more,
    pace: { backOff: [10, 50], ...more.pace },
  });
  t.teardown(async () => {
    provisioner.close();
    await rm(directory, { recursive: true, force: true });
  });
  const calls = async () => {
    const text = await readFile(join(directory, 'calls'), 'utf8').catch(() => '');
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Call);
  };
  return { provisioner, directory, log, calls };
}

function assign(more: Partial<ProvisionRequest> = {}): ProvisionRequest {
  return {
    action: 'assign',
    address: '192.0.2.10',
    pool: 'a',
    service: 'default/web',
    ports: [],
    ...more,
  };
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  await eventually(async () => condition(), Boolean);
}

test('The program gets one JSON object on its input, and is not called again after a success', async (t) => {
  const others = ['default/api'];
  const { provisioner, calls } = await rig(t, 'cat >> calls', { others: () => others });
  const request = assign({ ports: [{ protocol: 'TCP', port: 80 }] });
  provisioner.request(request);
  t.is(provisioner.pending, 1);
  await until(() => provisioner.pending === 0);
  t.deepEqual(await calls(), [{ ...request, others }]);
  t.deepEqual(problemsIn(provisioner), []);
});

test('A program that fails is called again until it succeeds, and its last line is in the Problem', async (t) => {
  const seen: (string | undefined)[] = [];
  const { provisioner, calls, log } = await rig(
    t,
    'cat >> calls; if [ "$(wc -l < calls)" -lt 3 ]; then echo first >&2; printf "no \\"quota\\"" >&2; exit 7; fi',
    { onProblem: (_, problem) => seen.push(problem?.message) },
  );
  provisioner.request(assign());
  await until(() => provisioner.pending === 0);
  t.is((await calls()).length, 3);
  t.is(seen.length, 2);
  t.regex(
    seen[0] ?? '',
    /^Cannot assign 192\.0\.2\.10: program ".*" failed with status 7: "no \\"quota\\""$/,
  );
  t.is(seen[1], undefined);
  t.deepEqual(problemsIn(provisioner), []);
  const [line = ''] = log;
  t.is(JSON.parse(line).stderr, 'first\nno "quota"');
});

test('A delayed call has the Services that have the address by then, in the order of the requests', async (t) => {
  let others: string[] = [];
  const { provisioner, directory, calls } = await rig(t, 'cat >> calls; test -e fails && exit 1; exit 0', {
    others: () => others,
    pace: { backOff: [2_000, 2_000] },
  });
  const told = async () => (await calls()).map((call) => [call.action, call.service, call.others.join()]);
  await writeFile(join(directory, 'fails'), '');
  provisioner.request(assign({ action: 'release', service: 'default/old' }));
  await until(() => problemsIn(provisioner).length === 1);
  await rm(join(directory, 'fails'));
  others = ['default/new'];
  provisioner.request(assign({ service: 'default/new' }));
  provisioner.request(assign({ service: 'default/newer' }));
  await until(() => provisioner.pending === 0);
  t.deepEqual(await told(), [
    ['release', 'default/old', ''],
    ['assign', 'default/new', 'default/new'],
    ['assign', 'default/newer', 'default/new'],
    ['release', 'default/old', 'default/new'],
  ]);
});

test('A Problem lasts as long as the failure', async (t) => {
  const { provisioner } = await rig(t, 'exit 1');
  provisioner.request(assign());
  await until(() => problemsIn(provisioner).length === 1);
  const [problem] = problemsIn(provisioner);
  t.deepEqual([problem?.object, problem?.reason], ['Service default/web', 'ProvisionerFailed']);
  t.is(provisioner.pending, 1);
});

test('A program that hangs is killed at the deadline with what it has started', async (t) => {
  const { provisioner, directory } = await rig(t, 'sleep 1000 & echo $! > child; echo $$ > parent; wait', {
    pace: { deadline: 300, backOff: [60_000, 60_000] },
  });
  provisioner.request(assign());
  await until(() => problemsIn(provisioner).length === 1);
  t.regex(problemsIn(provisioner)[0]?.message ?? '', /did not end within 300 ms$/);
  for (const file of ['child', 'parent']) {
    const pid = Number(await readFile(join(directory, file), 'utf8'));
    await until(() => !isRunning(pid));
  }
  t.pass();
});

test('A process that keeps the output open does not delay the end of a call', async (t) => {
  const { provisioner, directory } = await rig(t, 'sleep 1000 & echo $! > child; exit 0', {
    pace: { deadline: 120_000 },
  });
  provisioner.request(assign());
  await until(() => provisioner.pending === 0);
  const pid = Number(await readFile(join(directory, 'child'), 'utf8'));
  t.true(isRunning(pid));
  process.kill(pid, 'SIGKILL');
});

test('Output and an unread input do not turn a success into a failure', async (t) => {
  const others = Array.from({ length: 20_000 }, (_, i) => `default/web-${i}`);
  const { provisioner, log } = await rig(
    t,
    'exec 0<&-; head -c 3000000 /dev/urandom; head -c 3000000 /dev/urandom >&2; echo "last line" >&2',
    { others: () => others },
  );
  provisioner.request(assign());
  await until(() => provisioner.pending === 0);
  t.deepEqual(problemsIn(provisioner), []);
  const { stderr } = JSON.parse(log[0] ?? '') as { stderr: string };
  t.true(stderr.endsWith('last line') && stderr.length <= 4096);
});

test('A program that does not exist, or may not be run, is a Problem', async (t) => {
  for (const [program, code] of [
    ['/nonexistent/program', 'ENOENT'],
    ['/dev/null', 'EACCES'],
    // spawn() throws these errors instead of emitting an event.
    ['/bin/\0', 'ERR_INVALID_ARG_VALUE'],
  ]) {
    const { provisioner } = await rig(t, '', { program: program ?? '' });
    provisioner.request(assign());
    await until(() => problemsIn(provisioner).length === 1);
    t.true(problemsIn(provisioner)[0]?.message.endsWith(`cannot be started: ${code}`));
  }
});

test('An agent without free file descriptors has a Problem, and calls the program when it has one', async (t) => {
  const moduleOf = (path: string) => new URL(`../../../agent/${path}`, import.meta.url);
  const script = `
    import { closeSync, openSync } from 'node:fs';
    import { Provisioner } from '${moduleOf('address-keeper/provisioner.ts')}';
    import { createLog } from '${moduleOf('host/log.ts')}';
    // As the agent's sockets do: its timers keep no process alive.
    const alive = setInterval(() => undefined, 1_000);
    const open = [];
    const provisioner = new Provisioner({
      program: '/bin/true',
      log: createLog({ level: 'error', format: 'json', destination: { write: () => undefined } }),
      pace: { backOff: [10, 50] },
      onCall: (request, failure) => {
        process.stdout.write(failure + ', ' + provisioner.pending + ' wanted\\n');
        for (const file of open.splice(0)) closeSync(file);
        if (failure === undefined) clearInterval(alive);
      },
    });
    try { for (;;) open.push(openSync('/dev/null')); } catch {}
    provisioner.request(${JSON.stringify(assign())});
  `;
  const limited = ['-c', 'ulimit -n 100; exec "$0" "$@"', process.execPath];
  const { stdout, stderr } = await runCommand('sh', [...limited, '--input-type=module', '--eval', script], {
    timeout: 60_000,
  });
  t.is(stdout, 'cannot be started: EMFILE, 1 wanted\nundefined, 1 wanted\n', stderr);
});

test("The program gets no arguments and nothing of the agent's environment", async (t) => {
  const { provisioner, directory } = await rig(t, 'env > environment; echo "$#" > count; cat > /dev/null');
  provisioner.request(assign());
  await until(() => provisioner.pending === 0);
  const lines = (await readFile(join(directory, 'environment'), 'utf8')).trim().split('\n');
  const names = lines.map((line) => line.slice(0, line.indexOf('=')));
  // The shell of the test's program sets some of its own.
  t.deepEqual(names.filter((name) => !['PWD', 'OLDPWD', 'SHLVL', '_'].includes(name)).sort(), [
    'LANG',
    'PATH',
  ]);
  t.is(await readFile(join(directory, 'count'), 'utf8'), '0\n');
});

test('One address has one call at a time, and replaced requests are left out', async (t) => {
  const { provisioner, calls, directory } = await rig(
    t,
    'cat >> calls; mkdir busy || touch overlap; while [ ! -e go ]; do sleep 0.01; done; rmdir busy',
  );
  provisioner.request(assign());
  await until(async () => (await calls()).length === 1);
  provisioner.request(assign({ action: 'release' }));
  provisioner.request(assign({ pool: 'b' }));
  await writeFile(join(directory, 'go'), '');
  await until(() => provisioner.pending === 0);
  t.deepEqual(
    (await calls()).map(({ action, pool }) => [action, pool]),
    [
      ['assign', 'a'],
      ['assign', 'b'],
    ],
  );
  await t.throwsAsync(readFile(join(directory, 'overlap')));
});

test('Calls for several addresses run at the same time, up to the limit', async (t) => {
  const { provisioner, calls, directory } = await rig(
    t,
    'cat >> calls; while [ ! -e go ]; do sleep 0.01; done',
    {
      pace: { concurrency: 2 },
    },
  );
  for (const last of [1, 2, 3]) provisioner.request(assign({ address: `192.0.2.${last}` }));
  await until(async () => (await calls()).length === 2);
  t.is(provisioner.pending, 3);
  await writeFile(join(directory, 'go'), '');
  await until(() => provisioner.pending === 0);
  t.is((await calls()).length, 3);
});

test('A Service whose calls fail does not block another one on the same address', async (t) => {
  const { provisioner, calls } = await rig(
    t,
    'read line; echo "$line" >> calls; case "$line" in *bad*) exit 1;; esac',
    {
      pace: { backOff: [60_000, 60_000] },
    },
  );
  provisioner.request(assign({ service: 'default/bad' }));
  await until(() => problemsIn(provisioner).length === 1);
  provisioner.request(assign({ service: 'default/good' }));
  await until(async () => (await calls()).some(({ service }) => service === 'default/good'));
  await until(() => provisioner.pending === 1);
  t.deepEqual(
    problemsIn(provisioner).map(({ object }) => object),
    ['Service default/bad'],
  );
});

test('close() ends the calls that run, and no other follows', async (t) => {
  const { provisioner, directory } = await rig(t, 'echo $$ > parent.new; mv parent.new parent; sleep 1000');
  provisioner.request(assign());
  const parent = () => readFile(join(directory, 'parent'), 'utf8').catch(() => '');
  await until(async () => (await parent()) !== '');
  provisioner.close();
  const pid = Number(await parent());
  await until(() => !isRunning(pid));
  provisioner.request(assign());
  t.is(provisioner.pending, 0);
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function problemsIn(provisioner: Provisioner): readonly Problem[] {
  return [...provisioner.problems().values()].flat();
}
