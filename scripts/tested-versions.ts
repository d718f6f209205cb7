// The versions with which a conformance suite has run, for its page.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './check.ts';
import { runProgram } from './run-program.ts';

export async function testedVersions(apiServer: string): Promise<readonly string[]> {
  return [
    `Headgate ${headgateVersion()}`,
    `Kubernetes ${await versionOf(apiServer, '--version')}`,
    `HAProxy ${await versionOf('haproxy', '-v')}`,
    `nftables ${await versionOf('nft', '--version')}`,
    `Linux ${await versionOf('uname', '-r')}`,
  ];
}

export function headgateVersion(): string {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version;
}

async function versionOf(program: string, flag: string): Promise<string> {
  const { output } = await runProgram(program, [flag], { cwd: root });
  return /\d+(\.\d+)+/.exec(output)?.[0] ?? 'of an unknown version';
}
