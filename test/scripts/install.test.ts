import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import anyTest, { type TestFn } from 'ava';
import { PROGRAM_TABLE, programTable } from '../support/basics/program-table.ts';

// The script runs in its own directory, and its PATH has only these programs and those of the test.
const TOOLS = ['cat', 'chmod', 'dirname', 'find', 'flock', 'id', 'mkdir', 'rm', 'sh', 'sleep', 'touch', 'tr'];
const script = fileURLToPath(new URL('../../scripts/install.sh', import.meta.url));
const table = fileURLToPath(new URL(`../../${PROGRAM_TABLE}`, import.meta.url));
const assets = fileURLToPath(new URL('../support/kube/kube-assets.sh', import.meta.url));

interface Context {
  readonly app: string;
  /** The environment of `install`. */
  readonly env: Record<string, string>;
  /** Creates a program, whose calls go to the journal. */
  program(name: string, body?: string): Promise<void>;
  install(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }>;
  journal(): Promise<string[]>;
}

const test = anyTest as TestFn<Context>;

test.beforeEach(async (t) => {
  const app = await mkdtemp(join(tmpdir(), 'install-'));
  const [bin, journal] = [join(app, 'path'), join(app, 'journal')];
  await mkdir(bin);
  await mkdir(join(app, 'scripts'));
  await copyFile(script, join(app, 'scripts/install.sh'));
  await copyFile(table, join(app, PROGRAM_TABLE));
  for (const module of ['kubernetes', 'external-dns'])
    await mkdir(join(app, 'test/support/kube', module), { recursive: true });
  await copyFile(assets, join(app, 'test/support/kube/kube-assets.sh'));
  await writeFile(join(app, 'package-lock.json'), '{}');
  await writeFile(journal, '');
  for (const tool of TOOLS) await symlink(`/usr/bin/${tool}`, join(bin, tool));
  const env: Record<string, string> = {
    PATH: bin,
    SBIN: '/nowhere',
    POLICY_RC_D: join(app, 'policy'),
    APP: app,
    HOME: app,
  };
  t.context = {
    app,
    env,
    async program(name, body = '') {
      await rm(join(bin, name), { force: true });
      await writeFile(join(bin, name), `#!/bin/sh\necho "${name} $*" >>${journal}\n${body}\n`);
      await chmod(join(bin, name), 0o755);
    },
    install: (...args) =>
      new Promise((resolve) => {
        execFile('/bin/sh', [join(app, 'scripts/install.sh'), ...args], { env }, (error, stdout, stderr) =>
          resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
        );
      }),
    async journal() {
      return (await readFile(journal, 'utf8')).split('\n').filter((line) => line !== '');
    },
  };
});

test.afterEach.always(async (t) => {
  await rm(t.context.app, { recursive: true, force: true });
});

/** Programs that install.sh may install. */
const PROGRAMS = [...programTable().values()]
  .filter(
    ({ kinds }) => !kinds.has('given') && !kinds.has('built') && !kinds.has('base') && !kinds.has('optional'),
  )
  .map(({ command }) => command)
  .filter((command) => command !== 'pip3');

/** Provides everything except the named programs. */
async function complete({ app, program }: Context, ...missing: string[]): Promise<void> {
  for (const name of [...PROGRAMS, 'node', 'npm']) if (!missing.includes(name)) await program(name);
  if (missing.includes('node_modules')) return;
  await mkdir(join(app, 'node_modules/node/bin'), { recursive: true });
  await symlink('/bin/true', join(app, 'node_modules/node/bin/node'));
  await writeFile(join(app, 'node_modules/.package-lock.json'), '{}');
}

// The fake npm installs the packages, including Node.
const NPM = `
  mkdir -p "$APP/node_modules/node/bin"
  printf '#!/bin/sh\\n' >"$APP/node_modules/node/bin/node"
  chmod 755 "$APP/node_modules/node/bin/node"
  printf '{}' >"$APP/node_modules/.package-lock.json"
`;
// The fake apt-get installs haproxy and ip if no daemon can start.
const APT = `
  [ -x "$POLICY_RC_D" ] || exit 100
  for name in haproxy ip; do
    printf '#!/bin/sh\\n' >"$APP/path/$name"
    chmod 755 "$APP/path/$name"
  done
`;

test('install.sh bundles the agent if the bundle is missing or older than a source, and continues after a failure', async (t) => {
  const { app, install, journal, program } = t.context;
  await complete(t.context, 'wrk');
  for (const folder of ['agent', 'health', 'dist']) await mkdir(join(app, folder));
  await writeFile(join(app, 'scripts/bundle.ts'), '');
  const node = join(app, 'node_modules/node/bin/node');
  await program('bundler', `: >"$APP/dist/agent.mjs"`);
  await rm(node);
  await symlink(join(app, 'path/bundler'), node);
  t.deepEqual(await install(), { code: 0, stdout: '', stderr: '' });
  t.deepEqual(await journal(), ['bundler scripts/bundle.ts']);
  await install();
  t.is((await journal()).length, 1);
  await utimes(join(app, 'dist/agent.mjs'), 1_000, 1_000);
  await program('bundler', 'exit 1');
  const { code, stderr } = await install();
  t.is(code, 0);
  t.regex(stderr, /bin\/headgate runs its sources/);
});

test('install.sh prints nothing and runs nothing if nothing is missing', async (t) => {
  await complete(t.context, 'wrk');
  t.deepEqual(await t.context.install(), { code: 0, stdout: '', stderr: '' });
  t.deepEqual(await t.context.journal(), []);
});

test('install.sh node installs Node and not HAProxy', async (t) => {
  const { app, install, journal, program } = t.context;
  await complete(t.context, 'node_modules', 'haproxy', 'ip', 'wrk');
  await program('npm', NPM);
  await program('apt-get', APT);
  await writeFile(join(app, 'scripts/bundle.ts'), '');
  t.is((await install('node')).code, 0);
  t.deepEqual(await journal(), ['npm ci --no-audit --no-fund --no-update-notifier --loglevel=error']);
  t.deepEqual(await install('node'), { code: 0, stdout: '', stderr: '' });
});

test('install.sh says every moment that npm is still at work, and no longer than npm is', async (t) => {
  const { env, install, program } = t.context;
  env.PATIENCE = '0.2';
  await complete(t.context, 'node_modules', 'wrk');
  await program('npm', `sleep 1\n${NPM}`);
  const { code, stderr } = await install('node');
  t.is(code, 0);
  t.true(stderr.split('install: npm ci is still at work\n').length > 2, stderr);
  await program('npm', 'exit 1');
  await rm(join(t.context.app, 'node_modules'), { recursive: true });
  const failed = await install('node');
  t.is(failed.code, 1);
  t.regex(failed.stderr, /Cannot install the packages of package\.json: npm ci failed\n$/);
});

test('install.sh as root installs the missing packages and prevents the start of daemons', async (t) => {
  await complete(t.context, 'haproxy', 'ip');
  await t.context.program('id', 'echo 0');
  await t.context.program('apt-get', APT);
  const { code, stderr } = await t.context.install();
  t.is(code, 0, stderr);
  t.true(stderr.includes('install: Package haproxy is missing: it is the dataplane of TCP\n'));
  t.true(stderr.includes('install: Running apt-get install haproxy iproute2\n'));
  t.deepEqual(
    (await t.context.journal()).filter((line) => line.startsWith('apt-get')),
    [
      'apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 update',
      'apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 install -y --no-install-recommends haproxy iproute2',
    ],
  );
  await t.throwsAsync(readFile(join(t.context.app, 'policy')), { code: 'ENOENT' });
  t.deepEqual(await t.context.install(), { code: 0, stdout: '', stderr: '' });
});

test('install.sh does not change an existing policy about daemons', async (t) => {
  await complete(t.context, 'haproxy');
  await t.context.program('id', 'echo 0');
  await t.context.program('apt-get', APT);
  const policy = join(t.context.app, 'policy');
  await writeFile(policy, '#!/bin/sh\nexit 0\n', { mode: 0o755 });
  t.is((await t.context.install()).code, 0);
  t.is(await readFile(policy, 'utf8'), '#!/bin/sh\nexit 0\n');
});

test('install.sh uses a sudo without a password', async (t) => {
  await complete(t.context, 'haproxy');
  await t.context.program('id', 'echo 1000');
  await t.context.program('sudo', 'shift; [ "$1" = true ] || exec "$@"');
  await t.context.program('apt-get', APT);
  const { code, stderr } = await t.context.install();
  t.is(code, 0, stderr);
  t.true((await t.context.journal()).includes('sudo -n sh scripts/install.sh --packages haproxy'));
});

test('install.sh without root prints the exact command to run, and fails', async (t) => {
  await complete(t.context, 'haproxy', 'ip');
  await t.context.program('id', 'echo 1000');
  await t.context.program('sudo', 'exit 1');
  await t.context.program('apt-get', APT);
  const { code, stderr } = await t.context.install();
  t.is(code, 1);
  t.is(
    stderr.split('\n').at(-2),
    'install: Cannot install packages without root: run as root: apt-get install --no-install-recommends haproxy iproute2',
  );
  t.false((await t.context.journal()).some((line) => line.startsWith('apt-get')));
});

test('install.sh test and install.sh bench require pip only on a machine without a recent Go', async (t) => {
  await complete(t.context);
  await t.context.program('id', 'echo 1000');
  await t.context.program('sudo', 'exit 1');
  await t.context.program('apt-get', APT);
  const asks = async (kind: string): Promise<void> => {
    const without = await t.context.install(kind);
    t.is(without.code, 1);
    t.true(without.stderr.includes('apt-get install --no-install-recommends python3-pip'));
  };
  for (const kind of ['test', 'bench']) await asks(kind);
  await t.context.program('go', 'exit 1');
  await asks('test');
  await t.context.program('go');
  for (const kind of ['test', 'bench']) t.is((await t.context.install(kind)).code, 0);
});

test('install.sh test installs the programs of the tests', async (t) => {
  await complete(
    t.context,
    'dnsmasq',
    'knotd',
    'curl',
    'keepalived',
    'conntrackd',
    'prometheus',
    'promtool',
    'sysctl',
    'man',
    'systemd-analyze',
    'python3',
  );
  await t.context.program('go');
  await t.context.program('id', 'echo 1000');
  await t.context.program('apt-get', APT);
  t.is((await t.context.install()).code, 0);
  const { code, stderr } = await t.context.install('test');
  t.is(code, 1);
  t.regex(
    stderr,
    / --no-install-recommends keepalived conntrackd procps systemd prometheus dnsmasq-base knot curl man-db python3\n$/,
  );
});

test('install.sh test continues without a program that it cannot install if tests may be skipped, and reports that', async (t) => {
  await complete(t.context, 'haproxy', 'node_modules');
  await t.context.program('go');
  await t.context.program('id', 'echo 1000');
  await t.context.program('npm', NPM);
  t.context.env.ALLOW_SKIP = '1';
  t.is((await t.context.install()).code, 1);
  for (const apt of [false, true]) {
    if (apt) await t.context.program('apt-get', APT);
    const { code, stderr } = await t.context.install('test');
    t.is(code, 0, stderr);
    t.regex(stderr, /Cannot install packages without .*haproxy/);
    t.regex(stderr, /Continuing without it, because ALLOW_SKIP=1/);
  }
});

test('install.sh fails if apt-get fails, and allows the start of daemons again', async (t) => {
  await complete(t.context, 'haproxy');
  await t.context.program('id', 'echo 0');
  await t.context.program('apt-get', 'exit 100');
  const { code, stderr } = await t.context.install();
  t.is(code, 1);
  t.regex(stderr, /Cannot install packages: apt-get failed: try as root: apt-get install/);
  await t.throwsAsync(readFile(join(t.context.app, 'policy')), { code: 'ENOENT' });
});

test('install.sh on a system without apt-get names the missing packages', async (t) => {
  await complete(t.context, 'ip');
  const { code, stderr } = await t.context.install();
  t.is(code, 1);
  t.regex(stderr, /Cannot install packages without apt-get: install iproute2 with/);
});

test('install.sh bench also installs the load generator', async (t) => {
  await complete(t.context, 'wrk');
  await t.context.program('go');
  await t.context.program('id', 'echo 1000');
  await t.context.program('apt-get', APT);
  const { code, stderr } = await t.context.install('bench');
  t.is(code, 1);
  t.regex(stderr, /run as root: apt-get install --no-install-recommends wrk\n$/);
});

test('install.sh runs npm ci if the packages are missing or older than the lock file', async (t) => {
  await complete(t.context, 'node_modules');
  await t.context.program('npm', NPM);
  const { code, stderr } = await t.context.install();
  t.is(code, 0, stderr);
  t.deepEqual(await t.context.journal(), [
    'npm ci --no-audit --no-fund --no-update-notifier --loglevel=error',
  ]);

  await t.context.install();
  t.is((await t.context.journal()).length, 1);
  const later = new Date(Date.now() + 60_000);
  await utimes(join(t.context.app, 'package-lock.json'), later, later);
  await t.context.install();
  t.is((await t.context.journal()).length, 2);
});

test('install.sh runs the installer of the package node if npm did not, and fails if Node still does not run', async (t) => {
  await complete(t.context, 'node_modules');
  await t.context.program(
    'npm',
    'mkdir -p "$APP/node_modules/node"; printf "{}" >"$APP/node_modules/.package-lock.json"',
  );
  const failed = await t.context.install();
  t.is(failed.code, 1);
  t.regex(failed.stderr, /Cannot run node_modules\/node\/bin\/node/);
  t.true((await t.context.journal()).includes('node installArchSpecificPackage.js'));

  await t.context.program('node', NPM);
  t.is((await t.context.install()).code, 0);
});

test('install.sh without any Node names the program to install', async (t) => {
  await complete(t.context, 'node_modules', 'node');
  const { code, stderr } = await t.context.install();
  t.is(code, 1);
  t.regex(stderr, /Cannot find node and npm: install Node 20 or newer/);
});

test('Two simultaneous runs of install.sh install once', async (t) => {
  await complete(t.context, 'node_modules');
  await t.context.program('npm', `sleep 0.3\n${NPM}`);
  const runs = await Promise.all([t.context.install(), t.context.install()]);
  t.deepEqual(
    runs.map(({ code }) => code),
    [0, 0],
  );
  t.is((await t.context.journal()).length, 1);
});
