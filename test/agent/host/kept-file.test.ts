import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import { KeptFile } from '../../../agent/host/kept-file.ts';
import { removeFolder } from '../../support/host/remove-folder.ts';

test('KeptFile restores a file that another process changes during a write', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'hg-'));
  t.teardown(() => removeFolder(directory));
  const path = join(directory, 'kept');
  const file = new KeptFile(path, 'fixed content\n', 0o600);
  const writing = file.write();
  while (!existsSync(path)) await turn();
  writeFileSync(path, 'nonsense\n');
  await writing;
  await file.keep();
  t.is(readFileSync(path, 'utf8'), 'fixed content\n');
});
