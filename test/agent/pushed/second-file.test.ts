import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { readRecord, writeRecord } from '../../../agent/pushed/boot-record.ts';
import { fileDigests } from '../../../agent/pushed/file-digests.ts';
import { pushedFiles } from '../../../agent/pushed/files.ts';
import { groupOfImage, secondFile } from '../../../agent/pushed/second-file.ts';
import { readText } from '../../../agent/pushed/text/pushed-text.ts';
import { textOf } from '../../support/octavia/pushed-texts.ts';

const files = pushedFiles('/run/headgate/octavia/lb');
const EXPORTER = 'frontend prometheus-exporter-internal-endpoint\n    bind 127.0.0.1:9101\n';

async function folder(t: { teardown: (step: () => unknown) => void }): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'headgate-pushed-'));
  t.teardown(() => rm(path, { recursive: true, force: true }));
  return path;
}

test('secondFile() has the mark, the group and a socket of level admin', (t) => {
  const text = secondFile(readText(textOf()), 'headgate-1', 'haproxy', files);
  t.regex(text, /^ {4}description headgate-1$/m);
  t.regex(text, /^ {4}group haproxy$/m);
  t.regex(text, /^ {4}stats socket \/run\/headgate\/octavia\/lb\/admin\.sock mode 600 level admin$/m);
  t.notRegex(text, /^frontend/m);
});

test("secondFile() answers on the port of metrics if the text has HAProxy's own", (t) => {
  const text = secondFile(readText(textOf() + EXPORTER), 'headgate-1', 'haproxy', files);
  t.regex(text, /^ {4}bind 127\.0\.0\.1:9102$/m);
  t.regex(text, /^ {4}server agent unix@\/run\/headgate\/octavia\/lb\/metrics\.sock$/m);
});

test('groupOfImage() reads the group of the image, and takes no other word for one', async (t) => {
  const path = join(await folder(t), 'group.conf');
  t.is(groupOfImage(path), 'nogroup');
  await writeFile(path, 'group haproxy\n');
  t.is(groupOfImage(path), 'haproxy');
  await writeFile(path, 'group a;b\n');
  t.is(groupOfImage(path), 'nogroup');
});

test('readRecord() gives what writeRecord() wrote, and nothing of another file', async (t) => {
  const path = join(await folder(t), 'boot.json');
  t.is(readRecord(path), undefined);
  const record = { mark: 'm', text: 't', since: 7, cause: 'c', files: new Map([['/a', '1']]) };
  writeRecord(path, record);
  t.deepEqual(readRecord(path), record);
  await writeFile(path, '{"mark": 1}');
  t.is(readRecord(path), undefined);
});

test('fileDigests() reads the files of the text and those in its lists', async (t) => {
  const path = await folder(t);
  const list = join(path, 'list.pem');
  await writeFile(list, `${join(path, 'a.pem')}\n${join(path, 'gone.pem')}\n`);
  await writeFile(join(path, 'a.pem'), 'a');
  const digests = await fileDigests(textOf({ bind: `10.0.0.2:443 ssl crt-list ${list}` }));
  t.is(digests.get(join(path, 'a.pem')), '0cc175b9c0f1b6a831c399e269772661');
  t.is(digests.get(join(path, 'gone.pem')), '');
  t.is(digests.get(list)?.length, 32);
});
