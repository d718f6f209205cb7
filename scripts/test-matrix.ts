// Runs the tests with a real HAProxy or keepalived against the installed one and each other version that Debian has, one
// after the other, and ends with a line for each: `haproxy 3.2.26: N passed, N failed, N skipped in 9 min`.
// test-matrix.ts [haproxy|keepalived [VERSION]]. A version that cannot be had counts as skipped tests do: the run fails,
// unless ALLOW_SKIP=1. A keepalived is tested with the HAProxy that the same Debian has, which is how they meet.

import { spawnSync } from 'node:child_process';
import { type Daemon, testsOf } from '../test/support/tests-of.ts';
import { root } from './check.ts';
import { runAva } from './run-ava.ts';
import { tallyTap, verdictOf } from './tap-tally.ts';

interface Version {
  /** Of the installed one the whole version, of another one its branch: '3.2'. */
  readonly name: string;
  /** undefined where it cannot be had. */
  readonly program: string | undefined;
}

const VARIABLES: Readonly<Record<Daemon, string>> = { haproxy: 'HAPROXY', keepalived: 'KEEPALIVED' };
/** Of keepalived's branches: HAProxy's in the same release of Debian. */
const BESIDE: Readonly<Record<string, string>> = { '2.3': '3.0' };
const allowSkip = process.env.ALLOW_SKIP === '1';
const [only, wanted] = process.argv.slice(2);
const daemons = (Object.keys(VARIABLES) as Daemon[]).filter(
  (daemon) => only === undefined || only === daemon,
);
if (daemons.length === 0) {
  console.error(`Cannot test "${only}": it is not one of ${Object.keys(VARIABLES).join(', ')}`);
  process.exit(2);
}

const lines: string[] = [];
let isGood = true;
for (const daemon of daemons) {
  const files = testsOf(daemon, root);
  const versions = [installed(daemon), ...others(daemon)].filter(({ name }) => isWanted(name));
  if (versions.length === 0) {
    lines.push(`${daemon} ${wanted}: not run, because nothing offers it`);
    isGood = false;
  }
  for (const { name, program } of versions) {
    if (program === undefined) {
      lines.push(`${daemon} ${name}: not run, because it cannot be had`);
      isGood &&= allowSkip;
      continue;
    }
    const branch = daemon === 'keepalived' ? BESIDE[name] : undefined;
    const beside = branch === undefined ? undefined : matrix('haproxy', branch)[0];
    const what = `${daemon} ${versionOf(program) ?? name}${beside ? ` with haproxy ${versionOf(beside)}` : ''}`;
    console.log(`${what}: ${files.length} files of tests`);
    const begin = performance.now();
    const env = { ...(beside && { [VARIABLES.haproxy]: beside }), [VARIABLES[daemon]]: program };
    const { output, exitCode } = await runAva(root, files, env);
    const tally = tallyTap(output, exitCode);
    const { line, good } = verdictOf(tally, allowSkip);
    const minutes = Math.ceil((performance.now() - begin) / 60_000);
    lines.push(`${what}: ${line} in ${minutes} min`);
    lines.push(...tally.failed.map((title) => `  FAILED: ${title}`));
    lines.push(...tally.skipped.map((title) => `  SKIPPED: ${title}`));
    isGood &&= good;
  }
}
console.log(lines.join('\n'));
process.exitCode = isGood ? 0 : 1;

function isWanted(name: string): boolean {
  return wanted === undefined || name === wanted || name.startsWith(`${wanted}.`);
}

function installed(daemon: Daemon): Version {
  const program = process.env[VARIABLES[daemon]] ?? daemon;
  const name = versionOf(program);
  return name === undefined ? { name: '(installed)', program: undefined } : { name, program };
}

/** What Debian has, unpacked into the cache; names the branches that cannot be had as well. */
function others(daemon: Daemon): readonly Version[] {
  return matrix(daemon, '--list').map((name) => ({ name, program: matrix(daemon, name)[0] }));
}

function matrix(daemon: Daemon, word: string): readonly string[] {
  const script = ['test/support/debian-matrix.sh', daemon, word];
  const { stdout } = spawnSync('sh', script, {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return stdout.split('\n').filter((line) => line !== '');
}

function versionOf(program: string): string | undefined {
  const { stdout, stderr } = spawnSync(program, ['-v'], { encoding: 'utf8' });
  return /version (\d+\.\d+[\d.]*)|Keepalived v([\d.]+)/.exec(`${stdout}${stderr}`)?.slice(1).find(Boolean);
}
