import { mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test from 'ava';
import { GlobalSection, type GlobalSectionOptions } from '../../../../agent/haproxy/config/global-section.ts';
import { haproxyPaths } from '../../../../agent/haproxy/paths.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

test('GlobalSection.keepFiles() restores the folder and the files of the shared tables', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-global-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const paths = haproxyPaths(join(directory, 's'), join(directory, 'r'));
  // In another network namespace no address is tried.
  const settings = (() => ({ netns: 'elsewhere' })) as unknown as GlobalSectionOptions['settings'];
  const section = new GlobalSection({ paths, settings, isRunning: async () => false, log: silentLog() });
  const place = { address: '192.0.2.1', peers: ['192.0.2.2'], port: 1024 };
  await section.shareTables(place, { identity: 'key\n', trusted: 'certificates\n', fingerprint: 'f' });
  const folder = dirname(paths.config);
  const [identity, trusted] = [join(folder, 'pair.pem'), join(folder, 'pair-trusted.pem')];
  const damages = [
    ...[folder, identity, trusted].map((gone) => () => rm(gone, { recursive: true, force: true })),
    ...[identity, trusted].flatMap((file) => [() => truncate(file), () => writeFile(file, 'nonsense')]),
  ];
  for (const carryOut of damages) {
    await carryOut();
    await section.keepFiles();
    t.is(await readFile(identity, 'utf8'), 'key\n');
    t.is(await readFile(trusted, 'utf8'), 'certificates\n');
  }
  t.is((await stat(folder)).mode & 0o777, 0o700);
  t.is((await stat(identity)).mode & 0o777, 0o600);
  // An unchanged file is not written.
  const { ino } = await stat(identity);
  await section.keepFiles();
  t.is((await stat(identity)).ino, ino);
});
