import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { HeadgateError } from '../../../../agent/errors.ts';
import { ManifestSnapshots } from '../../../../agent/kubernetes/manifests/manifest-snapshots.ts';
import { NEVER, temporaryFolder } from '../../../support/watched-manifests.ts';

const MODIFIED = Date.UTC(2026, 0, 31, 12, 0, 0, 123) + 0.456;

function open(t: ExecutionContext, times = { delay: NEVER, retry: NEVER }) {
  const { root } = temporaryFolder(t);
  const directory = join(root, 'state/snapshots');
  const failures: HeadgateError[] = [];
  const again = () => new ManifestSnapshots(directory, (error) => failures.push(error), times);
  return { root, directory, failures, again, snapshots: again() };
}

test('A snapshot comes back as it was saved, with the time of its manifest', async (t) => {
  const { directory, snapshots, again } = open(t);
  const bytes = Buffer.from([0x61, 0xff, 0x00]);
  snapshots.save('/m/a.yaml', bytes, MODIFIED);
  t.deepEqual(snapshots.load('/m/a.yaml'), bytes);
  await snapshots.flush();
  t.deepEqual(again().load('/m/a.yaml'), bytes);
  t.is(again().load('/m/b.yaml'), undefined);
  t.true(again().has('/m/a.yaml', 3, MODIFIED));
  t.false(again().has('/m/a.yaml', 4, MODIFIED));
  t.false(again().has('/m/a.yaml', 3, MODIFIED + 1));
  t.false(again().has('/m/b.yaml', 3, MODIFIED));
  const [name = ''] = readdirSync(directory);
  t.is(statSync(join(directory, name)).mode & 0o777, 0o600);
  t.is(statSync(directory).mode & 0o777, 0o700);
});

test('The last of several contents is kept, and a removed one is gone at once', async (t) => {
  const { directory, snapshots } = open(t);
  snapshots.save('/m/a.yaml', Buffer.from('1'), MODIFIED);
  snapshots.save('/m/a.yaml', Buffer.from('2'), MODIFIED);
  snapshots.save('/m/b.yaml', Buffer.from('3'), MODIFIED);
  await snapshots.flush();
  t.is(snapshots.load('/m/a.yaml')?.toString(), '2');
  snapshots.remove('/m/a.yaml');
  t.is(snapshots.load('/m/a.yaml'), undefined);
  await snapshots.flush();
  t.is(snapshots.load('/m/a.yaml'), undefined);
  t.is(readdirSync(directory).length, 1);
});

test('keepOnly() removes the snapshots of other manifests and half-written ones, and nobody else’s files', async (t) => {
  const { directory, snapshots } = open(t);
  for (const name of ['a', 'b', 'c']) snapshots.save(`/m/${name}.yaml`, Buffer.from(name), MODIFIED);
  await snapshots.flush();
  const foreign = join(directory, 'README');
  writeFileSync(foreign, '');
  writeFileSync(join(directory, `${'0'.repeat(64)}.new`), '');
  snapshots.keepOnly(['/m/b.yaml']);
  await snapshots.flush();
  t.is(snapshots.load('/m/b.yaml')?.toString(), 'b');
  t.is(snapshots.load('/m/a.yaml'), undefined);
  t.is(readdirSync(directory).length, 2);
  t.true(readdirSync(directory).includes('README'));
});

test('An empty snapshot counts as none', async (t) => {
  const { snapshots } = open(t);
  snapshots.save('/m/a.yaml', Buffer.alloc(0), MODIFIED);
  await snapshots.flush();
  t.is(snapshots.load('/m/a.yaml'), undefined);
});

test('A snapshot that cannot be written is told of, and written once it can be', async (t) => {
  const { root, snapshots, failures } = open(t, { delay: 1, retry: 20 });
  writeFileSync(join(root, 'state'), 'in the way');
  snapshots.save('/m/a.yaml', Buffer.from('1'), MODIFIED);
  while (failures.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  t.is(failures[0]?.code, 'FILE_WRITE');
  t.regex(failures[0]?.message ?? '', /^Cannot keep manifests in /);
  t.is(snapshots.load('/m/a.yaml')?.toString(), '1');
  rmSync(join(root, 'state'));
  mkdirSync(join(root, 'state'));
  while (!snapshots.has('/m/a.yaml', 1, MODIFIED)) await new Promise((resolve) => setTimeout(resolve, 5));
  t.is(snapshots.load('/m/a.yaml')?.toString(), '1');
  await snapshots.flush();
});

test('flush() does not wait for the rests between writes', async (t) => {
  const { directory, snapshots } = open(t, { delay: 0, retry: NEVER });
  for (let index = 0; index < 200; index++) snapshots.save(`/m/${index}.yaml`, Buffer.from('x'), MODIFIED);
  // The first is written: the background has begun.
  while (!snapshots.has('/m/0.yaml', 1, MODIFIED)) await new Promise((resolve) => setImmediate(resolve));
  await snapshots.flush();
  t.is(readdirSync(directory).length, 200);
});
