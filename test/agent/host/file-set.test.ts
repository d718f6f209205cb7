import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { FileSet, type NamedText } from '../../../agent/host/file-set.ts';

async function folderOf(t: ExecutionContext<unknown>): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'set-'));
  t.teardown(() => rm(parent, { recursive: true }));
  return join(parent, 'files');
}

const modes = { fileMode: 0o600, folderMode: 0o700 };

for (const isInMemory of [true, false])
  test(`FileSet asks for a text only if it is another one, ${isInMemory ? 'in memory' : 'on disk'}`, async (t) => {
    const folder = await folderOf(t);
    const files = new FileSet({ folder, ...modes, isInMemory });
    const asked: string[] = [];
    const file = (id: string): NamedText => ({
      path: join(folder, 'a'),
      id,
      text: () => {
        asked.push(id);
        return id === 'unknown' ? undefined : id;
      },
    });
    const content = () => readFile(join(folder, 'a'), 'utf8');
    await files.write([]);
    await t.throwsAsync(readdir(folder), { code: 'ENOENT' }, 'no folder without files');
    for (const id of ['one', 'one', 'unknown']) await files.write([file(id)]);
    t.deepEqual(asked, ['one', 'unknown']);
    t.is(await content(), 'one');
    await files.write([file('two')]);
    t.is(await content(), 'two');
    await rm(folder, { recursive: true });
    await files.keep();
    t.is(await content(), 'two');
    await writeFile(join(folder, 'of-before'), 'x');
    await files.keepOnly(new Set([join(folder, 'a')]));
    t.deepEqual(await readdir(folder), ['a']);
  });

test('FileSet writes in the order of the calls, however long the texts take', async (t) => {
  const folder = await folderOf(t);
  const files = new FileSet({ folder, ...modes });
  const first = Promise.withResolvers<void>();
  async function* slow(): AsyncGenerator<NamedText> {
    await first.promise;
    yield { path: join(folder, 'a'), id: 'first', text: () => 'first' };
  }
  const writes = [
    files.write(slow()),
    files.write([{ path: join(folder, 'a'), id: 'second', text: () => 'second' }]),
  ];
  first.resolve();
  await Promise.all(writes);
  t.is(await readFile(join(folder, 'a'), 'utf8'), 'second');
});
