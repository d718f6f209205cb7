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

ava('makeFolder() makes a folder and those above it, with the mode', async (t) => {
  const path = join(await scratch(t), 'a', 'b', 'c');
  await makeFolder(path, 0o700);
  await makeFolder(path, 0o711);
  for (const each of [path, join(path, '..')]) t.is((await stat(each)).mode & 0o777, 0o700);
});

ava('makeFolder() of several at once makes all of them', async (t) => {
  const folder = join(await scratch(t), 'a', 'b');
  await Promise.all(['c', 'c', 'd'].map((name) => makeFolder(join(folder, name), 0o700)));
  for (const name of ['c', 'd']) t.true((await stat(join(folder, name))).isDirectory());
});

ava('makeFolder() says why where there is a file, or a folder that takes no others', async (t) => {
  const folder = await scratch(t);
  await writeFile(join(folder, 'file'), '');
  await mkdir(join(folder, 'there'));
  await t.throwsAsync(makeFolder(join(folder, 'file'), 0o700), { code: 'FILE_WRITE' });
  await t.throwsAsync(makeFolder(join(folder, 'file', 'below'), 0o700), { code: 'FILE_WRITE' });
  for (const path of ['/proc/headgate', '/proc/headgate/below'])
    await t.throwsAsync(makeFolder(path, 0o700), {
      code: 'FILE_WRITE',
      message: `Cannot make folder "${path}"`,
    });
});
