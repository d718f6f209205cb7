import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { ConfigFile } from '../../../../agent/haproxy/config/config-file.ts';

async function emptyFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-config-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const textOf = (file: ConfigFile): Promise<string> => readFile(file.path, 'utf8');
const [ONE, TWO] = [[Buffer.from('one\n')], [Buffer.from('two\n')]];

test('The later of two simultaneous writes counts, and none fails', async (t) => {
  const folder = await emptyFolder(t);
  const file = new ConfigFile(join(folder, 'haproxy.cfg'));
  await Promise.all([file.write(ONE), file.write(TWO)]);
  t.is(await textOf(file), 'two\n');
  t.true(file.isUntouched());
  t.deepEqual(await readdir(folder), ['haproxy.cfg']);
});

test('restoreLastGood() restores text and mode, and the file counts as untouched', async (t) => {
  const folder = await emptyFolder(t);
  const file = new ConfigFile(join(folder, 'haproxy.cfg'), { mode: 0o640 });
  await file.write(ONE);
  await file.keepAsLastGood();
  await file.write(TWO);
  await file.restoreLastGood();
  t.is(await textOf(file), 'one\n');
  t.is((await stat(file.path)).mode & 0o777, 0o640);
  t.true(file.isUntouched());
  t.deepEqual((await readdir(folder)).sort(), ['haproxy.cfg', 'haproxy.cfg.last-good']);
});

test('restoreLastGood() without a last good text leaves the file unchanged', async (t) => {
  const folder = await emptyFolder(t);
  const file = new ConfigFile(join(folder, 'haproxy.cfg'));
  await file.write(TWO);
  await file.restoreLastGood();
  t.is(await textOf(file), 'two\n');
  t.true(file.isUntouched());
  t.deepEqual(await readdir(folder), ['haproxy.cfg']);
});
