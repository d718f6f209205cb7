import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { HeadgateError } from '../../../../agent/base/errors.ts';
import { ManifestSnapshots } from '../../../../agent/kubernetes/manifests/manifest-snapshots.ts';
import { NEVER, temporaryFolder } from '../../../support/values/watched-manifests.ts';

function open(t: ExecutionContext, times = { delayMs: NEVER, retryMs: NEVER }) {
  const { root } = temporaryFolder(t);
  const directory = join(root, 'state/snapshots');
  const failures: HeadgateError[] = [];
  const again = () => new ManifestSnapshots(directory, (error) => failures.push(error), times);
  return { root, directory, failures, again, snapshots: again() };
}

test('load() gives the saved text, and has() compares it', async (t) => {
  const { directory, snapshots, again } = open(t);
  const bytes = Buffer.from('\uFEFFä: "1"\n\u2028\0');
  snapshots.save('/m/a.yaml', bytes);
  t.deepEqual(snapshots.load('/m/a.yaml'), bytes);
  await snapshots.flush();
  t.deepEqual(again().load('/m/a.yaml'), bytes);
  t.is(again().load('/m/b.yaml'), undefined);
  t.true(again().has('/m/a.yaml', bytes));
  t.false(again().has('/m/a.yaml', bytes.subarray(3)));
  t.false(again().has('/m/b.yaml', bytes));
  const [name = ''] = readdirSync(directory);
  t.is(statSync(join(directory, name)).mode & 0o777, 0o600);
  t.is(statSync(directory).mode & 0o777, 0o700);
});

test('ManifestSnapshots keeps the last content, and removes at once', async (t) => {
  const { snapshots, again } = open(t);
  snapshots.save('/m/a.yaml', Buffer.from('1'));
  snapshots.save('/m/a.yaml', Buffer.from('2'));
  snapshots.save('/m/b.yaml', Buffer.from('3'));
  await snapshots.flush();
  t.is(snapshots.load('/m/a.yaml')?.toString(), '2');
  snapshots.remove('/m/a.yaml');
  t.is(snapshots.load('/m/a.yaml'), undefined);
  await snapshots.flush();
  t.is(snapshots.load('/m/a.yaml'), undefined);
  t.is(again().load('/m/a.yaml'), undefined);
  t.is(again().load('/m/b.yaml')?.toString(), '3');
});

test('ManifestSnapshots writes many bytes at once', async (t) => {
  const { snapshots, again } = open(t);
  for (const name of ['a', 'b', 'c', 'd', 'e'])
    snapshots.save(`/m/${name}.yaml`, Buffer.alloc(1024 * 1024, name));
  const isWritten = () => again().has('/m/a.yaml', Buffer.alloc(1024 * 1024, 'a'));
  for (let look = 0; look < 500 && !isWritten(); look++) await delay(10);
  t.true(isWritten());
});

test('keepOnly() removes the snapshots of other manifests', async (t) => {
  const { snapshots, again } = open(t);
  for (const name of ['a', 'b', 'c']) snapshots.save(`/m/${name}.yaml`, Buffer.from(name));
  await snapshots.flush();
  snapshots.keepOnly(['/m/b.yaml']);
  await snapshots.flush();
  for (const each of [snapshots, again()]) {
    t.is(each.load('/m/b.yaml')?.toString(), 'b');
    t.is(each.load('/m/a.yaml'), undefined);
    t.false(each.has('/m/c.yaml', Buffer.from('c')));
  }
});

test('ManifestSnapshots overwrites an incomplete line, and keeps the lines before it', async (t) => {
  const { directory, snapshots, again } = open(t);
  snapshots.save('/m/a.yaml', Buffer.from('first'));
  await snapshots.flush();
  const file = join(directory, 'snapshots');
  const whole = readFileSync(file);
  for (const torn of [whole.subarray(0, 40), whole.subarray(0, whole.length - 1), Buffer.alloc(5_000)]) {
    writeFileSync(file, Buffer.concat([whole, torn]));
    const next = again();
    t.is(next.load('/m/a.yaml')?.toString(), 'first');
    next.save('/m/b.yaml', Buffer.from('second'));
    await next.flush();
    t.is(again().load('/m/a.yaml')?.toString(), 'first');
    t.is(again().load('/m/b.yaml')?.toString(), 'second');
  }
});

test('load() is undefined for a snapshot that a power loss has damaged', async (t) => {
  const { directory, snapshots, again } = open(t);
  snapshots.save('/m/a.yaml', Buffer.from('content'));
  await snapshots.flush();
  const file = join(directory, 'snapshots');
  const bytes = readFileSync(file);
  for (const end of [bytes.length - 1, bytes.length]) {
    writeFileSync(file, Buffer.from(bytes).fill(0, end - 4, end));
    t.is(again().load('/m/a.yaml'), undefined);
  }
});

test('ManifestSnapshots rewrites the file when more than half of it is out of date', async (t) => {
  const { directory, snapshots, again } = open(t);
  const content = (round: number, index: number): Buffer =>
    Buffer.from(`${round} ${index} `.repeat(1_000 + index));
  const [ROUNDS, FILES] = [8, 100];
  for (let round = 0; round < ROUNDS; round++) {
    for (let index = 0; index < FILES; index++) snapshots.save(`/m/${index}.yaml`, content(round, index));
    if (round === 5) snapshots.remove('/m/0.yaml');
    await snapshots.flush();
  }
  const live = FILES * content(0, FILES / 2).length;
  t.true(statSync(join(directory, 'snapshots')).size < 4 * live, 'Not all eight are in it');
  t.deepEqual(readdirSync(directory), ['snapshots']);
  for (const each of [snapshots, again()]) {
    for (let index = 0; index < FILES; index++) {
      t.true(each.has(`/m/${index}.yaml`, content(ROUNDS - 1, index)));
      t.deepEqual(each.load(`/m/${index}.yaml`), content(ROUNDS - 1, index));
    }
  }
});

test('ManifestSnapshots begins a new file if the old one is removed', async (t) => {
  const { directory, snapshots, again } = open(t);
  snapshots.save('/m/a.yaml', Buffer.from('a'));
  await snapshots.flush();
  rmSync(directory, { recursive: true });
  snapshots.save('/m/b.yaml', Buffer.from('b'));
  await snapshots.flush();
  t.is(snapshots.load('/m/a.yaml'), undefined);
  t.is(again().load('/m/b.yaml')?.toString(), 'b');
});

test('load() is undefined for an empty snapshot', async (t) => {
  const { snapshots } = open(t);
  snapshots.save('/m/a.yaml', Buffer.alloc(0));
  await snapshots.flush();
  t.is(snapshots.load('/m/a.yaml'), undefined);
});

test('ManifestSnapshots reports a failed write, and retries it', async (t) => {
  const { root, snapshots, failures } = open(t, { delayMs: 1, retryMs: 20 });
  writeFileSync(join(root, 'state'), 'in the way');
  snapshots.save('/m/a.yaml', Buffer.from('1'));
  while (failures.length < 1) await new Promise((resolve) => setTimeout(resolve, 5));
  t.is(failures[0]?.code, 'FILE_WRITE');
  t.regex(failures[0]?.message ?? '', /^Cannot keep manifests in /);
  t.is(snapshots.load('/m/a.yaml')?.toString(), '1');
  rmSync(join(root, 'state'));
  mkdirSync(join(root, 'state'));
  while (!snapshots.has('/m/a.yaml', Buffer.from('1')))
    await new Promise((resolve) => setTimeout(resolve, 5));
  t.is(snapshots.load('/m/a.yaml')?.toString(), '1');
  await snapshots.flush();
});
