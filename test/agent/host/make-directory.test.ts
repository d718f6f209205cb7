import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { makeFolder } from '../../../agent/host/make-directory.ts';

async function scratch(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hg-make-folder-'));
  t.teardown(() => rm(folder, { recursive: true }));
  return folder;
}

ava('makeFolder() creates a folder and its parents with the mode', async (t) => {
  const path = join(await scratch(t), 'a', 'b', 'c');
  await makeFolder(path, 0o700);
  await makeFolder(path, 0o711);
  for (const each of [path, join(path, '..')]) t.is((await stat(each)).mode & 0o777, 0o700);
});

ava('makeFolder() creates folders of concurrent calls', async (t) => {
  const folder = join(await scratch(t), 'a', 'b');
  await Promise.all(['c', 'c', 'd'].map((name) => makeFolder(join(folder, name), 0o700)));
  for (const name of ['c', 'd']) t.true((await stat(join(folder, name))).isDirectory());
});

ava('makeFolder() fails below a file and below a folder that allows no new folders', async (t) => {
  const folder = await scratch(t);
  await writeFile(join(folder, 'file'), '');
  await mkdir(join(folder, 'there'));
  await t.throwsAsync(makeFolder(join(folder, 'file'), 0o700), { code: 'FILE_WRITE' });
  await t.throwsAsync(makeFolder(join(folder, 'file', 'below'), 0o700), { code: 'FILE_WRITE' });
  for (const path of ['/proc/headgate', '/proc/headgate/below'])
    await t.throwsAsync(makeFolder(path, 0o700), {
      code: 'FILE_WRITE',
      message: `Cannot create folder "${path}"`,
    });
});
