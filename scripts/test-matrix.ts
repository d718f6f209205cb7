// Runs the tests with a real HAProxy, keepalived or nft on the installed versions and on each other version of Debian:
// test-matrix.ts [haproxy|keepalived|nft [VERSION]]. Ends with a line for each run: `haproxy 3.2.26, keepalived 2.3.3, nft
// 1.0.6: N passed, N failed, N skipped in 9 min`. An unavailable version makes the run fail, unless ALLOW_SKIP=1.

import { spawnSync } from 'node:child_process';
import { type Daemon, testsOf } from '../test/support/repository/tests-of.ts';
import { root } from './check.ts';
import { type Host, matrixRuns, type Program } from './matrix-runs.ts';
import { runAva } from './run-ava.ts';
import { tallyTap, verdictOf } from './tap-tally.ts';

const VARIABLES: Readonly<Record<Daemon, string>> = {
  haproxy: 'HAPROXY',
  keepalived: 'KEEPALIVED',
  nft: 'NFT',
};
const allowSkip = process.env.ALLOW_SKIP === '1';
const [only, version] = process.argv.slice(2);
if (only !== undefined && !Object.hasOwn(VARIABLES, only)) {
  console.error(`Cannot test "${only}": it is not one of ${Object.keys(VARIABLES).join(', ')}`);
  process.exit(2);
}

const here: Host = {
  haproxy: installed('haproxy'),
  keepalived: installed('keepalived'),
  nft: installed('nft'),
};
const others = { haproxy: debians('haproxy'), keepalived: debians('keepalived'), nft: debians('nft') };
const runs = matrixRuns(here, others, only, version);
const lines: string[] = [];
let isGood = runs.length > 0;
if (!isGood) lines.push(`${only} ${version}: not run, because this version does not exist`);
for (const [at, { host, daemons }] of runs.entries()) {
  const { haproxy, keepalived, nft } = host;
  const what = `haproxy ${haproxy.version}, keepalived ${keepalived.version}, nft ${nft.version}`;
  if (haproxy.path === undefined || keepalived.path === undefined || nft.path === undefined) {
    lines.push(`${what}: not run, because one of them is not available`);
    isGood &&= allowSkip;
    continue;
  }
  const files = [...new Set(daemons.flatMap((daemon) => testsOf(daemon, root)))].sort();
  console.log(`${at + 1} of ${runs.length}: ${what}: ${files.length} test files of ${daemons.join(' and ')}`);
  const begin = performance.now();
  const env = {
    [VARIABLES.haproxy]: haproxy.path,
    [VARIABLES.keepalived]: keepalived.path,
    [VARIABLES.nft]: nft.path,
  };
  const { output, exitCode } = await runAva(root, files, { env: { ...process.env, ...env } });
  const tally = tallyTap(output, exitCode);
  const { line, good } = verdictOf(tally, allowSkip);
  const minutes = Math.ceil((performance.now() - begin) / 60_000);
  lines.push(`${what}: ${line} in ${minutes} min`);
  lines.push(...tally.failed.map((title) => `  FAILED: ${title}`));
  lines.push(...tally.skipped.map((title) => `  SKIPPED: ${title}`));
  isGood &&= good;
}
console.log(lines.join('\n'));
process.exitCode = isGood ? 0 : 1;

function installed(daemon: Daemon): Program {
  const path = process.env[VARIABLES[daemon]] ?? daemon;
  const version = versionOf(path);
  return version === undefined ? { version: '(installed)', path: undefined } : { version, path };
}

/** Debian's versions, unpacked into the cache, and the branches that are not available; oldest first. */
function debians(daemon: Daemon): readonly Program[] {
  return matrix(daemon, '--list').map((branch) => {
    const path = matrix(daemon, branch)[0];
    return { version: (path && versionOf(path)) ?? branch, path };
  });
}

function matrix(daemon: Daemon, word: string): readonly string[] {
  const script = ['test/support/haproxy/debian-matrix.sh', daemon, word];
  const { stdout } = spawnSync('sh', script, {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return stdout.split('\n').filter((line) => line !== '');
}

function versionOf(program: string): string | undefined {
  const { stdout, stderr } = spawnSync(program, ['-v'], { encoding: 'utf8' });
  return /version (\d+\.\d+[\d.]*)|(?:Keepalived|nftables) v([\d.]+)/
    .exec(`${stdout}${stderr}`)
    ?.slice(1)
    .find(Boolean);
}
