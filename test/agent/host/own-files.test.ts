import test from 'ava';
import { type OwnFile, OwnFiles } from '../../../agent/host/own-files.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';
import { silentLog } from '../../support/values/silent-log.ts';

interface FakeFile extends OwnFile {
  isThere: boolean;
  fault: Error | undefined;
}

function fakeFile(kind: OwnFile['kind']): FakeFile {
  const file: FakeFile = {
    path: `/run/${kind}`,
    kind,
    isThere: true,
    fault: undefined,
    isIntact: () => file.isThere,
    restore: async () => {
      if (file.fault !== undefined) throw file.fault;
      file.isThere = true;
    },
  };
  return file;
}

function watched() {
  const clock = new FakeClock();
  const files = [fakeFile('socket'), fakeFile('file')] as const;
  const restored: string[] = [];
  const said: string[] = [];
  const log = { ...silentLog(), error: (message: string) => void said.push(message) };
  const ownFiles = new OwnFiles({ files, onRestored: (kind) => restored.push(kind), log, clock });
  ownFiles.start();
  return { clock, files, restored, said, ownFiles };
}

test('OwnFiles restores each file that is not intact, once, and leaves the others', async (t) => {
  const { clock, files, restored } = watched();
  await clock.advance(10_000);
  t.deepEqual(restored, []);
  files[1].isThere = false;
  await clock.advance(3_000);
  t.true(files[1].isThere);
  await clock.advance(10_000);
  t.deepEqual(restored, ['file']);
});

test('OwnFiles retries a file that cannot be restored, reports it once, and checks the other files', async (t) => {
  const { clock, files, restored, said } = watched();
  for (const file of files) file.isThere = false;
  files[0].fault = new Error('read-only');
  await clock.advance(9_000);
  t.deepEqual(restored, ['file']);
  t.is(said.length, 1);
  files[0].fault = undefined;
  await clock.advance(3_000);
  t.deepEqual(restored, ['file', 'socket']);
});

test('OwnFiles restores nothing after close()', async (t) => {
  const { clock, files, restored, ownFiles } = watched();
  ownFiles.close();
  files[0].isThere = false;
  await clock.advance(10_000);
  t.deepEqual(restored, []);
});
