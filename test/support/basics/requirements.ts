// Declares the requirements of a test file: `const test = requires(ava, { haproxy: true })` replaces AVA's `test`.
// If the machine does not meet one, each test of the file fails with the reason; with ALLOW_SKIP=1 it is skipped.

import { accessSync, constants, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { TestFn } from 'ava';
import { PROGRAM_TABLE, programTable } from './program-table.ts';

export interface Needs {
  readonly haproxy?: boolean;
  /** Root with the capabilities for network namespaces, addresses and mounts, which root in a container may lack. */
  readonly root?: boolean;
  /** Programs of scripts/programs.txt, in PATH or one of the sbin directories. */
  readonly programs?: readonly string[];
}

/** The machine; the tests of this file pass others. */
export interface Machine {
  readonly uid: number;
  /** Effective capabilities, one bit each, as in linux/capability.h. */
  readonly capabilities: bigint;
  readonly allowSkip: boolean;
  has(program: string): boolean;
}

/** CAP_NET_ADMIN and CAP_SYS_ADMIN. */
const ADMIN = (1n << 12n) | (1n << 21n);

/** Hooks of a file do not run if a requirement is not met. */
export function requires<Context>(
  test: TestFn<Context>,
  needs: Needs,
  machine = thisMachine(),
): TestFn<Context> {
  const missing = unmet(needs, machine);
  if (missing.length === 0) return test;
  const reason = `This machine lacks what the test needs: ${missing.join(', ')}`;
  if (machine.allowSkip) console.error(`Skipped: ${reason}`);
  const instead = machine.allowSkip ? skipping(test) : failing(test, reason);
  const nothing = Object.assign(() => undefined, { always: () => undefined, skip: () => undefined });
  return Object.assign(instead, {
    serial: instead,
    failing: instead,
    skip: test.skip,
    todo: test.todo,
    macro: test.macro,
    meta: test.meta,
    before: nothing,
    after: nothing,
    beforeEach: nothing,
    afterEach: nothing,
  }) as unknown as TestFn<Context>;
}

function skipping<Context>(test: TestFn<Context>): (...declaration: Parameters<typeof test.skip>) => void {
  return (...declaration) => test.skip(...declaration);
}

function failing<Context>(test: TestFn<Context>, reason: string): (title: unknown) => void {
  // The first argument is a macro or a title.
  let untitled = 0;
  return (title) => {
    const name = typeof title === 'string' ? title : `A test of a macro, the ${++untitled}.`;
    test(name, (t) => t.fail(reason));
  };
}

function unmet({ haproxy = false, root = false, programs = [] }: Needs, machine: Machine): string[] {
  const missing: string[] = [];
  if (root && machine.uid !== 0) missing.push('root');
  else if (root && (machine.capabilities & ADMIN) !== ADMIN) {
    missing.push('CAP_NET_ADMIN and CAP_SYS_ADMIN (in a container: that it is privileged)');
  }
  for (const program of haproxy ? ['haproxy', ...programs] : programs) {
    if (!machine.has(program)) missing.push(`the program ${program}${packageOf(program)}`);
  }
  return missing;
}

function packageOf(program: string): string {
  const row = programTable().get(program);
  if (row === undefined) return `, which ${PROGRAM_TABLE} does not have`;
  return row.package === undefined ? '' : ` of Debian's package ${row.package}`;
}

function thisMachine(): Machine {
  const directories =
    `${process.env.PATH}${delimiter}/usr/local/sbin${delimiter}/usr/sbin${delimiter}/sbin`.split(delimiter);
  const status = readFileSync('/proc/self/status', 'utf8');
  return {
    uid: process.getuid?.() ?? -1,
    capabilities: BigInt(`0x${/^CapEff:\s+([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`),
    allowSkip: process.env.ALLOW_SKIP === '1',
    has: (program) => directories.some((directory) => canRun(join(directory, program))),
  };
}

function canRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
