// What a user sees of the commands beside a running agent: the list, names in short, help, completion in real shells,
// colours, and a socket of another user.

import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import ava from 'ava';
import { commands } from '../../agent/cli/commands.ts';
import type { ListedLoadBalancer } from '../../agent/report/answers/list.ts';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { startMembers } from '../support/traffic/members.ts';

const test = requires(ava, { haproxy: true, programs: ['bash', 'zsh', 'fish', 'script'] });
const asRoot = requires(ava, { haproxy: true, root: true });

test.serial(
  '`list` shows each load balancer in a row, the worst first, and those of one namespace',
  async (t) => {
    const host = await TestHost.create(t);
    await startMembers(t, host);
    await host.serve();
    await host.serve({ name: 'empty', address: host.address(2), members: [] });
    await host.serve({ name: 'pending', spec: { loadBalancerIP: undefined } });
    await host.serve({
      name: 'dated',
      namespace: 'shop',
      address: host.address(3),
      created: '2020-01-01T00:00:00Z',
    });
    await host.start();
    await host.until('all are served', async () => {
      const rows = JSON.parse((await host.command('list', ['--json'])).stdout) as ListedLoadBalancer[];
      return rows.filter(({ verdict }) => verdict === 'served').length === 2;
    });
    const { status, stdout } = await host.command('list');
    t.is(status, 0);
    const [head = '', ...rows] = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/));
    t.deepEqual(head, ['NAME', 'ADDRESSES', 'PORTS', 'READY', 'ENGINE', 'VERDICT', 'AGE']);
    const port = host.place().port;
    t.deepEqual(rows.slice(0, 3), [
      ['default/pending', '-', '-', '0/0', '-', 'not served', '-'],
      ['default/empty', host.address(2), `${port}/TCP`, '0/0', 'haproxy', 'no ready member', '-'],
      ['default/web', host.address(1), `${port}/TCP`, '1/1', 'haproxy', 'served', '-'],
    ]);
    t.deepEqual(rows[3]?.slice(0, 6), [
      'shop/dated',
      host.address(3),
      `${port}/TCP`,
      '1/1',
      'haproxy',
      'served',
    ]);
    t.regex(rows[3]?.[6] ?? '', /^\d{4}d$/);

    const ofShop = await host.command('list', ['-n', 'shop', '--json']);
    t.like(JSON.parse(ofShop.stdout), {
      0: {
        key: 'shop/dated',
        kind: 'Service',
        namespace: 'shop',
        name: 'dated',
        created: '2020-01-01T00:00:00.000Z',
      },
      length: 1,
    });
    t.is((await host.command('list', ['-n', 'nowhere'])).stdout, 'No load balancer in namespace "nowhere"\n');
    t.is((await host.command('list', ['-n', 'no/where'])).status, 2);

    // `status` names what has no member, too.
    const state = (await host.command('status')).stdout;
    t.regex(state, /^ {2}Service default\/empty: OFFLINE, the only listener OFFLINE$/m);
    t.regex(state, /^ {2}Service default\/pending: OFFLINE, no address$/m);
  },
);

test.serial('`why` takes a name in the namespace "default" or in that of -n', async (t) => {
  const host = await TestHost.create(t);
  await host.serve();
  await host.serve({ name: 'shop', namespace: 'shop', address: host.address(2) });
  await host.start();
  for (const [words, key] of [
    [['web'], 'default/web'],
    [['shop/shop'], 'shop/shop'],
    [['shop', '-n', 'shop'], 'shop/shop'],
    [['--namespace', 'shop', 'shop/shop'], 'shop/shop'],
  ] as const) {
    await host.until('it is served', async () => (await host.why(key)).verdict === 'served');
    const { status, stdout } = await host.command('why', words);
    t.is(status, 0, words.join(' '));
    t.is(stdout.split(':')[0], `Service ${key}`);
  }
  const gateway = await host.command('why', ['gateway:edge']);
  t.is(gateway.status, 1);
  t.true(
    gateway.stdout.startsWith('Gateway default/edge: not found\n  - There is no Gateway "default/edge"\n'),
  );
  for (const wrong of [['a/b/c'], ['shop/shop', '-n', 'default'], ['volume:a/b']]) {
    const { status, stderr } = await host.command('why', wrong);
    t.is(status, 2, wrong.join(' '));
    t.regex(stderr, /^headgate: USAGE: Cannot look up "/);
  }
});

test.serial(
  '`help` and --help show each command with its flags and examples, and the nearest name of a mistyped one',
  async (t) => {
    const host = await TestHost.create(t);
    const run = async (words: readonly string[]) => {
      const outcome = await promisify(execFile)(host.headgate, words).catch((error) => error);
      return {
        status: outcome.code ?? 0,
        stdout: outcome.stdout as string,
        stderr: outcome.stderr as string,
      };
    };
    const overview = (await run(['help'])).stdout;
    for (const { name, purpose, flags, examples } of commands) {
      t.regex(overview, new RegExp(`^ {2}${name} +${purpose}$`, 'm'));
      const { stdout } = await run(['help', name]);
      t.is(stdout, (await run([name, '--help'])).stdout, name);
      for (const flag of Object.keys(flags)) t.true(stdout.includes(`--${flag}`), `${name} --${flag}`);
      for (const { line } of examples) t.true(stdout.includes(`\n  ${line}\n`), line);
    }
    t.true((await run(['help', 'run'])).stdout.includes('--drain-timeout'));
    t.false((await run(['help', 'why'])).stdout.includes('--drain-timeout'));
    const mistyped = await run(['statsu']);
    t.is(mistyped.status, 2);
    t.regex(mistyped.stderr, /^headgate: USAGE: Unknown command "statsu", the nearest is "status": /);
    const { version } = JSON.parse((await run(['version', '--json'])).stdout);
    t.is((await run(['version'])).stdout, `headgate ${version}\n`);
    t.is((await run(['version', '--jsno'])).status, 2);
  },
);

test.serial(
  'bash, zsh and fish complete commands, flags, choices, and names of the running agent',
  async (t) => {
    const host = await TestHost.create(t);
    await host.serve();
    await host.serve({ name: 'shop', namespace: 'shop', address: host.address(2) });
    await host.start();
    const flags = ['--state-dir', host.stateDir, '--runtime-dir', host.runtimeDir];
    for (const shell of ['bash', 'zsh', 'fish'] as const) {
      const script = join(host.directory, shell);
      await writeFile(script, (await promisify(execFile)(host.headgate, ['completion', shell])).stdout);
      const completed = async (...words: readonly string[]): Promise<readonly string[]> => {
        const line = [host.headgate, ...words].join(' ');
        const [program, ...rest] = COMPLETE[shell](script, line, words.length + 1);
        const { stdout } = await promisify(execFile)(program, rest, { cwd: host.directory });
        return stdout
          .split('\n')
          .filter((each) => each !== '')
          .sort();
      };
      t.deepEqual(await completed('st'), ['status'], shell);
      t.deepEqual(await completed('maintenance', 'o'), ['off', 'on'], shell);
      t.deepEqual(await completed('run', '--haproxy-supervisor', 'e'), ['external'], shell);
      t.deepEqual(await completed('render', '--o'), ['--old-worker-memory', '--output'], shell);
      t.deepEqual(await completed('help', 'maint'), ['maintenance'], shell);
      t.deepEqual(await completed('why', ...flags, 's'), ['shop/shop'], shell);
      t.deepEqual(await completed('why', ...flags, 'w'), ['web'], shell);
      t.deepEqual(await completed('why', ...flags, 'default/'), ['default/web'], shell);
      t.deepEqual(await completed('why', ...flags, '-n', 'shop', 's'), ['shop'], shell);
      t.deepEqual(await completed('list', ...flags, '--namespace', 'd'), ['default'], shell);
    }
  },
);

/** The command that makes a shell complete the line; it prints what the shell offers. */
const COMPLETE: Readonly<
  Record<'bash' | 'zsh' | 'fish', (script: string, line: string, words: number) => [string, ...string[]]>
> = {
  bash: (script, line) => [
    'bash',
    '--norc',
    '-c',
    `source "$1"; COMP_LINE=$2 COMP_POINT=\${#2}; _headgate; printf '%s\\n' "\${COMPREPLY[@]}"`,
    'bash',
    script,
    line,
  ],
  // Instead of the line editor's own functions.
  zsh: (script, line, count) => [
    'zsh',
    '-f',
    '-c',
    `compdef() { : }; compadd() { print -l -- \${(P)2} }; source "$1"; words=(\${=2}); CURRENT=$3; _headgate`,
    'zsh',
    script,
    line,
    String(count),
  ],
  fish: (script, line) => [
    'fish',
    '--no-config',
    '-c',
    'source $argv[1]; complete -C $argv[2]',
    script,
    line,
  ],
};

test.serial('A terminal gets colours, and neither a pipe nor a user with NO_COLOR does', async (t) => {
  const host = await TestHost.create(t);
  await host.serve();
  await host.start();
  await host.until('it is served', async () => (await host.why()).verdict === 'served');
  const terminal = async (words: string, env: NodeJS.ProcessEnv = {}): Promise<string> => {
    const line = `'${host.headgate}' ${words} --runtime-dir '${host.runtimeDir}'`;
    // With CI in its environment, Node takes a terminal for one without colours.
    const { NO_COLOR: _, FORCE_COLOR: __, CI: ___, ...own } = process.env;
    return (
      await promisify(execFile)('script', ['-qec', line, '/dev/null'], {
        env: { ...own, TERM: 'xterm', ...env },
      })
    ).stdout;
  };
  for (const words of ['list', 'why web', 'status']) {
    const coloured = await terminal(words);
    t.true(coloured.includes('\u001b[32m'), `${words}: ${JSON.stringify(coloured)}`);
    t.false((await terminal(words, { NO_COLOR: '1' })).includes('\u001b'), words);
    const [name = '', ...args] = words.split(' ');
    t.false((await host.command(name, args)).stdout.includes('\u001b'), words);
  }
});

asRoot.serial(
  'A command that may not ask the agent says so, with another status than without an agent',
  async (t) => {
    const host = await TestHost.create(t);
    await host.serve();
    await host.start();
    const nobody = { uid: 65_534, gid: 65_534 };
    const words = ['list', '--runtime-dir', host.runtimeDir];
    const denied = await t.throwsAsync(promisify(execFile)(host.headgate, words, nobody));
    t.like(denied, { code: 1 });
    t.regex(String(denied?.message), /AGENT_DENIED: Permission denied at ".*": .* as root \(sudo\)/);
  },
);
