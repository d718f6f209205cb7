import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { keepalivedProgram } from '../../../../../agent/vips/keepalived/process/process.ts';

const outcome = test.macro({
  async exec(
    t,
    script: string,
    expected: { version?: string; dumpSignal?: number; canAuthenticate?: boolean; message?: RegExp },
  ) {
    const directory = await mkdtemp(join(tmpdir(), 'headgate-keepalived-'));
    t.teardown(() => rm(directory, { recursive: true }));
    const path = join(directory, 'keepalived');
    await writeFile(path, `#!/bin/sh\n${script}\n`);
    await chmod(path, 0o755);
    const { message, ...program } = expected;
    if (message === undefined) t.deepEqual(await keepalivedProgram(path), program as never);
    else await t.throwsAsync(keepalivedProgram(path), { code: 'KEEPALIVED_VERSION', message });
  },
  title: (what) => `keepalivedProgram() ${what}`,
});

const VERSION = '[ "$1" = --version ] && echo "Keepalived v2.3.3 (03/30,2025)" >&2';

test('reads version and signal', outcome, `${VERSION}\n[ "$1" = --signum=JSON ] && echo 36`, {
  version: '2.3.3',
  dumpSignal: 36,
  canAuthenticate: false,
});
test('refuses a version that is too old', outcome, 'echo "Keepalived v2.1.5 (07/13,2020)" >&2', {
  message: /is 2\.1\.5: keepalived 2\.2\.7 or newer is needed/,
});
test('refuses a program without JSON', outcome, VERSION, { message: /was built without JSON/ });
test(
  'reports the message of a program that does not start',
  outcome,
  'echo "Unable to read build config options file" >&2',
  {
    message: /prints "Unable to read build config options file"/,
  },
);
test('refuses a program that prints nothing', outcome, 'exit 1', { message: /prints no version/ });
