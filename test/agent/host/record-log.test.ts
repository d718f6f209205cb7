import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { RecordLog } from '../../../agent/host/record-log.ts';

function place(t: ExecutionContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'headgate-records-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return join(directory, 'folder', 'records');
}

/** What an agent that starts now would find. */
const found = (path: string) => Object.fromEntries(new RecordLog(path).values());

test('RecordLog gives the last record of each key, also to the next agent', async (t) => {
  const path = place(t);
  const log = new RecordLog(path);
  t.deepEqual([...log.values()], []);
  await log.write([
    ['a key', '{"n":1}'],
    ['b', '"text with blanks\\n"'],
  ]);
  await log.write([
    ['a key', '{"n":2}'],
    ['c', '3'],
    ['b', undefined],
    ['never there', undefined],
  ]);
  for (const each of [log, new RecordLog(path)]) {
    t.deepEqual(
      [...each.values()],
      [
        ['a key', { n: 2 }],
        ['c', 3],
      ],
    );
    t.deepEqual(each.read('a key'), { n: 2 });
    t.is(each.read('b'), undefined);
    t.true(each.has('c', '3'));
    t.false(each.has('c', '4'));
    t.deepEqual([...each.keys()], ['a key', 'c']);
    t.is(each.damage, undefined);
  }
  t.is(statSync(path).mode & 0o777, 0o600);
  t.false(readFileSync(path, 'utf8').includes('never there'));
});

test('RecordLog reads each record that a crash or a disk has left whole, wherever the write ended', async (t) => {
  const path = place(t);
  await new RecordLog(path).write([['a', '1']]);
  const { size } = statSync(path);
  await new RecordLog(path).write([
    ['a', '2'],
    ['b', '3'],
  ]);
  const whole = readFileSync(path);
  for (let length = size; length <= whole.length; length++) {
    writeFileSync(path, whole.subarray(0, length));
    const { a, b } = found(path);
    t.is(b, length === whole.length ? 3 : undefined);
    t.true(a === 1 || a === 2);
    await new RecordLog(path).write([['c', '4']]);
    t.deepEqual(found(path), { a, ...(b === undefined ? {} : { b }), c: 4 });
  }
  for (let at = 0; at < size - 1; at++) {
    const bytes = Buffer.from(whole);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    t.deepEqual(found(path), { a: 2, b: 3 });
  }
  writeFileSync(path, Buffer.concat([Buffer.from('nonsense\n\n'), whole]));
  t.regex(new RecordLog(path).damage?.message ?? '', /^2 lines of ".*records" are damaged and ignored$/);
});

test('RecordLog keeps what is whole of a file that another process has changed', async (t) => {
  const path = place(t);
  const log = new RecordLog(path);
  await log.write([
    ['a', '1'],
    ['b', '2'],
  ]);
  appendFileSync(path, 'nonsense\nmore');
  await log.write([['c', '3']]);
  t.deepEqual(found(path), { a: 1, b: 2, c: 3 });
  truncateSync(path, 20);
  await log.write([['d', '4']]);
  t.deepEqual(found(path), { a: 1, d: 4 });
  rmSync(path);
  await log.write([['e', '5']]);
  t.deepEqual(found(path), { e: 5 });
});

test('RecordLog rewrites its file with the current records when more than half of them are out of date', async (t) => {
  const path = place(t);
  const values = new Map<string, string>();
  for (const log of [new RecordLog(path), new RecordLog(`${path}-all`, () => values)]) {
    const file = statSync.bind(undefined, log.path);
    let longest = 0;
    for (let round = 0; round < 40; round++) {
      for (let key = 0; key < 10; key++) values.set(String(key), JSON.stringify(`${round}`.repeat(5_000)));
      await log.write(values);
      longest = Math.max(longest, file().size);
    }
    t.true(longest > 1_000_000 && longest < 1_400_000, String(longest));
    t.deepEqual(
      found(log.path),
      Object.fromEntries([...values].map(([key, json]) => [key, JSON.parse(json)])),
    );
  }
});

test('With all that is to be kept RecordLog makes the file that, at the first write and after each change from outside', async (t) => {
  const path = place(t);
  await new RecordLog(path).write([['old', '1']]);
  const values = new Map([['new', '2']]);
  const log = new RecordLog(path, () => values);
  t.deepEqual([...log.values()], [['old', 1]]);
  await log.write([]);
  t.deepEqual(found(path), { new: 2 });
  for (const damage of [
    () => rmSync(path),
    () => truncateSync(path, 3),
    () => writeFileSync(path, 'nonsense'),
  ]) {
    damage();
    await log.write([]);
    t.deepEqual(found(path), { new: 2 });
  }
});

test('RecordLog keeps the records before a write that failed, and writes the next', async (t) => {
  const path = place(t);
  const log = new RecordLog(path);
  await log.write([['a', '1']]);
  await t.throwsAsync(new RecordLog('/dev/null/folder/records').write([['a', '1']]), { code: 'FILE_WRITE' });
  const failing = function* (): Generator<readonly [string, string]> {
    yield ['b', '2'];
    throw new Error('No more');
  };
  const whole = new RecordLog(path, failing);
  await t.throwsAsync(whole.write([]));
  t.deepEqual(found(path), { a: 1 });
});
