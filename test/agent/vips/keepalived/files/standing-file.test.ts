import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { runCommand } from '../../../../../agent/host/run-command.ts';
import { StandingFile } from '../../../../../agent/vips/keepalived/files/standing-file.ts';

test('StandingFile truncates a longer text, and makes a file that was removed', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'standing-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'standing');
  const file = new StandingFile(path, () => undefined);
  for (const lowered of [153, 0, 51]) {
    file.set(lowered);
    await file.write();
    t.is(await readFile(path, 'utf8'), `${lowered}\n`);
    t.true(await file.isIntact());
  }
  await rm(path);
  await file.restore();
  t.is(await readFile(path, 'utf8'), '51\n');
});

test('StandingFile takes VRRP out of service whatever the number is, and gives the last number back', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'standing-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'standing');
  const written = async (change: (file: StandingFile) => void): Promise<string> => {
    change(file);
    await file.write();
    return readFile(path, 'utf8');
  };
  const file = new StandingFile(path, () => undefined);
  t.is(await written(() => file.takeOut(true)), '254\n');
  // As if HAProxy did not answer, because no number is set yet.
  t.is(await written(() => file.takeOut(false)), '153\n');
  t.is(await written(() => file.set(51)), '51\n');
  t.is(await written(() => file.takeOut(true)), '254\n');
  t.is(await written(() => file.set(0)), '254\n');
  t.is(await written(() => file.takeOut(false)), '0\n');
});

// For keepalived an empty file means 0.
test('StandingFile leaves the old number if the write fails', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'standing-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'standing');
  await writeFile(path, '153\n');
  const script = `
    import { StandingFile } from '${new URL('../../../../../agent/vips/keepalived/files/standing-file.ts', import.meta.url)}';
    const file = new StandingFile(process.argv[1], () => undefined);
    file.set(51);
    console.log(await file.write().catch((error) => error.code));
  `;
  // No file may grow: a write fails, as on a full disk.
  const limited = ['-c', 'ulimit -f 0; exec "$0" "$@"', process.execPath];
  const words = ['--input-type=module', '--eval', script, path];
  const { stdout } = await runCommand('sh', [...limited, ...words], { timeout: 60_000 });
  t.is(stdout, 'FILE_WRITE\n');
  t.is(await readFile(path, 'utf8'), '153\n');
});
