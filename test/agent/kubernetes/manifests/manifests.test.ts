import {
  appendFileSync,
  linkSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { ManifestSource } from '../../../../agent/kubernetes/manifests/manifests.ts';
import { listJson, serviceJson, sliceJson } from '../../../support/values/kubernetes-json.ts';
import {
  temporaryFolder,
  type WatchedManifests,
  watchManifests,
  write,
} from '../../../support/values/watched-manifests.ts';

const service = (name: string, port = 80) => serviceJson(name, { spec: { ports: [{ port }] } });
const yaml = (name: string, port = 80) =>
  `apiVersion: v1\nkind: Service\nmetadata:\n  name: ${name}\nspec:\n  ports:\n  - port: ${port}\n`;

function portOf({ objects }: WatchedManifests, name = 'web'): number | undefined {
  const object = objects.get(`Service default/${name}`);
  return object?.kind === 'Service' ? object.ports[0]?.port : undefined;
}

const names = ({ objects }: WatchedManifests) => [...objects.keys()].map((key) => basename(key)).sort();
const removals = ({ changes }: WatchedManifests) =>
  changes.flatMap(({ removed }) => removed.map(({ key }) => key));

test('start() reports everything in one change: YAML, JSON, lists and subfolders', async (t) => {
  const { manifests } = temporaryFolder(t);
  write(join(manifests, 'a.yaml'), `${yaml('a')}---\n${yaml('b')}`);
  write(join(manifests, 'c.yml'), yaml('c'));
  write(join(manifests, 'sub/sub/d.json'), listJson([service('d'), sliceJson('e')]));
  for (const ignored of ['.hidden.yaml', '.git/x.yaml', 'x.yaml~', 'x.txt'])
    write(join(manifests, ignored), yaml('x'));
  const watched = await watchManifests(t, manifests);
  t.is(watched.changes.length, 1);
  t.deepEqual(names(watched), ['a', 'b', 'c', 'd', 'e']);
  t.deepEqual(watched.problems, []);
});

test('start() of an empty folder reports nothing, and then the first file', async (t) => {
  const { manifests } = temporaryFolder(t);
  const watched = await watchManifests(t, manifests);
  t.is(watched.changes.length, 0);
  write(join(manifests, 'a.yaml'), yaml('web'));
  await watched.until(() => portOf(watched) === 80);
  t.pass();
});

test('check() and start() refuse a missing folder, and what is neither a folder nor a file', async (t) => {
  const { root, manifests } = temporaryFolder(t);
  symlinkSync('/dev/null', join(root, 'device'));
  for (const directory of ['missing', 'device']) {
    const source = new ManifestSource({
      places: [manifests, join(root, directory)],
      snapshotDirectory: undefined,
      onChange: () => t.fail(),
      onFailure: () => t.fail(),
    });
    const refusal = { code: 'SETTINGS_INVALID', message: new RegExp(`manifests.*/${directory}"`) };
    t.throws(() => source.check(), refusal);
    await t.throwsAsync(source.start(), refusal);
    await source.close();
  }
});

test('A single file is read and followed, whatever its name, and no other file of its folder', async (t) => {
  const { manifests } = temporaryFolder(t);
  const file = join(manifests, 'web.txt');
  write(file, yaml('web'));
  write(join(manifests, 'other.yaml'), yaml('other'));
  write(join(manifests, 'sub/deep.yaml'), yaml('deep'));
  const watched = await watchManifests(t, manifests, { places: [file], lossDelayMs: 10 });
  t.deepEqual(names(watched), ['web']);
  // An editor writes a new file and renames it.
  write(join(manifests, '.web.txt.swp'), yaml('web', 81));
  renameSync(join(manifests, '.web.txt.swp'), file);
  write(join(manifests, 'third.yaml'), yaml('third'));
  await watched.until(() => portOf(watched) === 81);
  rmSync(file);
  await watched.until(() => names(watched).length === 0);
  write(file, yaml('web', 82));
  await watched.until(() => portOf(watched) === 82);
  t.deepEqual(names(watched), ['web']);
});

test('A single file in a folder of the settings changes nothing', async (t) => {
  const { manifests } = temporaryFolder(t);
  write(join(manifests, 'sub/web.yaml'), yaml('web'));
  write(join(manifests, 'sub/other.yaml'), yaml('other'));
  const places = [join(manifests, 'sub/web.yaml'), manifests];
  const watched = await watchManifests(t, manifests, { places });
  t.deepEqual(names(watched), ['other', 'web']);
});

test('An edit is reported by its event alone, with nothing but the edited object', async (t) => {
  const { manifests } = temporaryFolder(t);
  const file = join(manifests, 'web.yaml');
  write(file, `${yaml('web')}---\n${yaml('other')}`);
  const watched = await watchManifests(t, manifests);
  const other = watched.objects.get('Service default/other');
  for (let port = 81; port <= 100; port++) {
    write(file, `${yaml('web', port)}---\n${yaml('other')}`);
    await watched.until(() => portOf(watched) === port);
  }
  t.true(watched.changes.slice(1).every(({ upserted }) => upserted.length === 1));
  t.deepEqual(removals(watched), []);
  t.is(watched.objects.get('Service default/other'), other);
});

test('A file that is written again unchanged is not reported', async (t) => {
  const { manifests } = temporaryFolder(t);
  write(join(manifests, 'a.json'), service('a'));
  const watched = await watchManifests(t, manifests);
  write(join(manifests, 'a.json'), JSON.stringify(service('a'), null, 2));
  // A second file, whose report comes after whatever the first one gives.
  write(join(manifests, 'b.json'), service('b'));
  await watched.until(() => names(watched).includes('b'));
  t.deepEqual(
    watched.changes.map(({ upserted }) => upserted.map(({ key }) => key)),
    [['default/a'], ['default/b']],
  );
});

test('A file that is emptied and written again in parts keeps its objects', async (t) => {
  const { manifests } = temporaryFolder(t);
  const file = join(manifests, 'all.yaml');
  const before = `${yaml('a')}---\n${yaml('b')}---\n${yaml('c')}`;
  const after = `${yaml('a', 81)}---\n${yaml('b', 82)}---\n${yaml('c', 83)}`;
  write(file, before);
  const watched = await watchManifests(t, manifests);
  const sign = join(manifests, 'sign.yaml');
  // Each step is seen before the next: the sign comes after it.
  const seen = async (port: number) => {
    write(sign, yaml('sign', port));
    await watched.until(() => portOf(watched, 'sign') === port);
  };
  truncateSync(file);
  await seen(1);
  // In the middle of the words, of the first port (8 of 81), behind a line, between documents, of the last port.
  const cuts = [
    20,
    after.indexOf('81') + 1,
    after.indexOf('spec:'),
    after.indexOf('---') + 4,
    after.length - 2,
  ];
  for (const [step, at] of cuts.entries()) {
    writeFileSync(file, after.slice(0, at));
    await seen(10 + step);
  }
  // At the fourth the first document is complete; what is behind it is missing, not changed.
  t.deepEqual(
    ['a', 'b', 'c'].map((name) => portOf(watched, name)),
    [81, 80, 80],
  );
  writeFileSync(file, after);
  await watched.until(() => portOf(watched, 'c') === 83);
  t.deepEqual(
    ['a', 'b', 'c'].map((name) => portOf(watched, name)),
    [81, 82, 83],
  );
  t.deepEqual(removals(watched), []);
  t.true(watched.changes.every(({ problems }) => problems.length === 0));
  // Never 8, which is what half of 81 looks like.
  const ports = watched.changes.flatMap(({ upserted }) =>
    upserted.flatMap((object) => (object.kind === 'Service' && object.name !== 'sign' ? object.ports : [])),
  );
  t.deepEqual(
    ports.map(({ port }) => port),
    [80, 80, 80, 81, 82, 83],
  );
});

test('A broken file keeps its last good objects, however long it stays broken', async (t) => {
  const { manifests } = temporaryFolder(t);
  const file = join(manifests, 'a.yaml');
  write(file, yaml('web'));
  const watched = await watchManifests(t, manifests, { lossDelayMs: 2000 });
  truncateSync(file);
  write(join(manifests, 'sign.yaml'), yaml('sign'));
  await watched.until(() => names(watched).includes('sign'));
  writeFileSync(file, yaml('web', 81).slice(0, 20));
  await watched.until(() => watched.problems.length === 1);
  t.deepEqual(removals(watched), []);
  t.is(portOf(watched), 80);
});

test('A missing object is removed after lossDelayMs, and not before', async (t) => {
  const { manifests } = temporaryFolder(t);
  write(join(manifests, 'a.yaml'), `${yaml('a')}---\n${yaml('b')}`);
  write(join(manifests, 'c.yaml'), yaml('c'));
  write(join(manifests, 'd.yaml'), yaml('d'));
  const lossDelayMs = 150;
  const watched = await watchManifests(t, manifests, { lossDelayMs });
  const begin = performance.now();
  write(join(manifests, 'a.yaml'), yaml('a'));
  rmSync(join(manifests, 'c.yaml'));
  truncateSync(join(manifests, 'd.yaml'));
  await watched.until(() => names(watched).length < 4);
  t.true(performance.now() - begin >= lossDelayMs);
  await watched.until(() => names(watched).length === 1);
  t.deepEqual(names(watched), ['a']);
});

test('A large file that loses most of its objects keeps them for longer', async (t) => {
  const { manifests } = temporaryFolder(t);
  const file = join(manifests, 'all.yaml');
  const all = Array.from({ length: 12 }, (_, index) => yaml(`web-${index}`));
  write(file, all.join('---\n'));
  const lossDelayMs = 20;
  const watched = await watchManifests(t, manifests, { lossDelayMs });
  const begin = performance.now();
  write(file, all.slice(0, 2).join('---\n'));
  await watched.until(() => names(watched).length === 2);
  t.true(performance.now() - begin >= 20 * lossDelayMs);
  write(file, all.slice(0, 1).join('---\n'));
  await watched.until(() => names(watched).length === 1);
  t.deepEqual(names(watched), ['web-0']);
});

test('A missing object is removed even if its file continues to change', async (t) => {
  const { manifests } = temporaryFolder(t);
  const file = join(manifests, 'a.yaml');
  write(file, `${yaml('web')}---\n${yaml('gone')}`);
  const watched = await watchManifests(t, manifests, { lossDelayMs: 100 });
  for (let port = 1; names(watched).includes('gone'); port++) {
    write(file, yaml('web', port));
    await watched.until(() => portOf(watched) === port);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  t.deepEqual(removals(watched), ['default/gone']);
});

test('A file that is deleted and created again keeps its objects', async (t) => {
  const { manifests } = temporaryFolder(t);
  const file = join(manifests, 'a.yaml');
  write(file, yaml('web'));
  const watched = await watchManifests(t, manifests, { lossDelayMs: 2000 });
  rmSync(file);
  write(join(manifests, 'sign.yaml'), yaml('sign'));
  await watched.until(() => names(watched).includes('sign'));
  write(file, yaml('web', 81));
  await watched.until(() => portOf(watched) === 81);
  t.deepEqual(removals(watched), []);
});

test('A file renamed over another is read at once', async (t) => {
  const { manifests } = temporaryFolder(t);
  const file = join(manifests, 'a.yaml');
  write(file, yaml('web'));
  const watched = await watchManifests(t, manifests);
  write(`${file}.new`, yaml('web', 81));
  renameSync(`${file}.new`, file);
  await watched.until(() => portOf(watched) === 81);
  t.deepEqual(removals(watched), []);
});

test('A renamed file keeps its objects without a problem', async (t) => {
  const { manifests } = temporaryFolder(t);
  write(join(manifests, 'a.yaml'), yaml('web'));
  const watched = await watchManifests(t, manifests);
  renameSync(join(manifests, 'a.yaml'), join(manifests, 'b.yaml'));
  write(join(manifests, 'b.yaml'), yaml('web', 81));
  await watched.until(() => portOf(watched) === 81);
  t.deepEqual(removals(watched), []);
  t.true(watched.changes.every(({ problems }) => problems.length === 0));
});

test('All files of a ConfigMap mount are read at once when it is replaced', async (t) => {
  const { manifests } = temporaryFolder(t);
  const version = (number: number, port: number) => {
    write(join(manifests, `..v${number}`, 'a.yaml'), yaml('a', port));
    write(join(manifests, `..v${number}`, 'b.yaml'), yaml('b', port));
    symlinkSync(`..v${number}`, join(manifests, '..data_tmp'));
    renameSync(join(manifests, '..data_tmp'), join(manifests, '..data'));
  };
  version(1, 80);
  symlinkSync('..data/a.yaml', join(manifests, 'a.yaml'));
  symlinkSync('..data/b.yaml', join(manifests, 'b.yaml'));
  const watched = await watchManifests(t, manifests);
  t.deepEqual(names(watched), ['a', 'b']);
  version(2, 81);
  await watched.until(() => portOf(watched, 'a') === 81 && portOf(watched, 'b') === 81);
  rmSync(join(manifests, '..v1'), { recursive: true });
  version(3, 82);
  await watched.until(() => portOf(watched, 'a') === 82 && portOf(watched, 'b') === 82);
  t.deepEqual(removals(watched), []);
});

test('A folder behind a replaced symbolic link is read', async (t) => {
  const { root, manifests } = temporaryFolder(t);
  write(join(manifests, 'a.yaml'), yaml('web'));
  write(join(root, 'next/a.yaml'), yaml('web', 81));
  const current = join(root, 'current');
  symlinkSync('manifests', current);
  const watched = await watchManifests(t, current);
  symlinkSync('next', join(root, 'link'));
  renameSync(join(root, 'link'), current);
  await watched.until(() => portOf(watched) === 81);
  write(join(root, 'next/a.yaml'), yaml('web', 82));
  await watched.until(() => portOf(watched) === 82);
  t.deepEqual(removals(watched), []);
});

test('A symbolic link to its own folder is followed once', async (t) => {
  const { manifests } = temporaryFolder(t);
  write(join(manifests, 'sub/a.yaml'), yaml('web'));
  symlinkSync('..', join(manifests, 'sub/up'));
  const watched = await watchManifests(t, manifests);
  t.deepEqual(names(watched), ['web']);
  t.deepEqual(watched.problems, []);
});

test('New subfolders are watched, and removed ones lose their objects', async (t) => {
  const { manifests } = temporaryFolder(t);
  const watched = await watchManifests(t, manifests, { lossDelayMs: 100 });
  write(join(manifests, 'x/y/a.yaml'), yaml('web'));
  await watched.until(() => portOf(watched) === 80);
  write(join(manifests, 'x/y/a.yaml'), yaml('web', 81));
  await watched.until(() => portOf(watched) === 81);
  rmSync(join(manifests, 'x'), { recursive: true });
  await watched.until(() => watched.objects.size === 0);
  t.deepEqual(removals(watched), ['default/web']);
});

test('A folder that goes away keeps its objects until it is back', async (t) => {
  const { manifests } = temporaryFolder(t);
  write(join(manifests, 'a.yaml'), yaml('web'));
  write(join(manifests, 'b.yaml'), yaml('other'));
  const watched = await watchManifests(t, manifests, { lossDelayMs: 100 });
  rmSync(manifests, { recursive: true });
  await watched.until(() => watched.problems.length === 1);
  t.deepEqual(watched.problems, [`${manifests}: Cannot read the folder; what was in it stays in force`]);
  t.deepEqual(names(watched), ['other', 'web']);
  mkdirSync(manifests);
  write(join(manifests, 'a.yaml'), yaml('web', 81));
  await watched.until(() => portOf(watched) === 81);
  t.deepEqual(watched.problems, []);
  await watched.until(() => names(watched).length === 1);
  t.deepEqual(removals(watched), ['default/other']);
});

test('A change without an event is found by the next scan', async (t) => {
  const { manifests } = temporaryFolder(t);
  // Behind a link, in a folder without a watch.
  write(join(manifests, '.hidden/a.yaml'), yaml('web'));
  symlinkSync('.hidden/a.yaml', join(manifests, 'a.yaml'));
  const watched = await watchManifests(t, manifests, {
    folderTimes: { intervalMs: 50, unwatchedIntervalMs: 50 },
  });
  t.is(portOf(watched), 80);
  write(join(manifests, '.hidden/a.yaml'), yaml('web', 81));
  await watched.until(() => portOf(watched) === 81);
  t.pass();
});

test('A change whose event was lost is found by a complete scan', async (t) => {
  const { root, manifests } = temporaryFolder(t);
  write(join(root, 'elsewhere/a.yaml'), yaml('web'));
  // Another name of the same file, in a folder without a watch.
  linkSync(join(root, 'elsewhere/a.yaml'), join(manifests, 'a.yaml'));
  const watched = await watchManifests(t, manifests, {
    folderTimes: { intervalMs: 20, unwatchedIntervalMs: 60_000 },
  });
  writeFileSync(join(root, 'elsewhere/a.yaml'), yaml('web', 81));
  await watched.until(() => portOf(watched) === 81);
  t.pass();
});

test('A broken file serves what can be read of it, and the rest as it was', async (t) => {
  const { manifests } = temporaryFolder(t);
  const file = join(manifests, 'a.yaml');
  write(file, [yaml('a'), yaml('b'), yaml('gone')].join('---\n'));
  const watched = await watchManifests(t, manifests, { lossDelayMs: 50 });
  write(file, [yaml('a', 81), yaml('b', 70000), yaml('new', 70000)].join('---\n'));
  write(join(manifests, 'c.yaml'), yaml('c'));
  await watched.until(() => watched.problems.length === 2 && portOf(watched, 'a') === 81);
  const fault = 'spec.ports[0].port: 70000 is not a whole number from 1 to 65535';
  t.deepEqual(watched.problems, [
    `${file}: Service default/b: ${fault}; its last good version stays in force`,
    `${file}: Service default/new: ${fault}; it is not in force`,
  ]);
  t.is(portOf(watched, 'b'), 80);
  await delay(200);
  t.deepEqual(names(watched), ['a', 'b', 'c', 'gone'], 'A broken file loses nothing');
  write(file, `${yaml('a', 82)}---\na: 1\na: 2\n---\n${yaml('d')}`);
  await watched.until(() => names(watched).includes('d'));
  t.deepEqual(watched.problems, [
    `${file}:10:1: Duplicated mapping key; what could be read of the file, now or before, is in force`,
  ]);
  t.is(portOf(watched, 'a'), 82);
  t.deepEqual(names(watched), ['a', 'b', 'c', 'd', 'gone']);
  write(file, yaml('a', 83));
  await watched.until(() => names(watched).length === 2);
  t.is(portOf(watched, 'a'), 83);
  t.deepEqual(watched.problems, []);
});

test('A file that was never good serves what can be read of it, also after a start without its folder', async (t) => {
  const { root, manifests } = temporaryFolder(t);
  const snapshotDirectory = join(root, 'snapshots');
  const file = join(manifests, 'a.yaml');
  write(file, `${yaml('a')}---\n${yaml('bad', 70000)}`);
  const first = await watchManifests(t, manifests, { snapshotDirectory });
  t.deepEqual(names(first), ['a']);
  t.deepEqual(first.source.pathsOf('Service default/a'), [file]);
  t.deepEqual(first.source.pathsOf('Service default/bad'), []);
  await first.source.close();
  renameSync(manifests, join(root, 'away'));
  t.deepEqual(names(await watchManifests(t, manifests, { snapshotDirectory })), ['a']);
});

test('A link out of the folder is not followed, and no error has text of its file', async (t) => {
  const { root, manifests } = temporaryFolder(t);
  write(join(root, 'secret'), yaml('secret'));
  write(join(root, 'elsewhere/b.yaml'), yaml('b'));
  write(join(root, 'elsewhere/.hidden/c.yaml'), yaml('c'));
  write(join(manifests, 'in.yaml'), yaml('in'));
  symlinkSync('../secret', join(manifests, 'a.yaml'));
  symlinkSync('../elsewhere', join(manifests, 'sub'));
  symlinkSync('in.yaml', join(manifests, 'link.yaml'));
  const watched = await watchManifests(t, manifests);
  t.deepEqual(names(watched), ['in']);
  const refused = (path: string, target: string) =>
    `${join(manifests, path)}: The link is not followed, because it leads to ${join(root, target)}, outside the folders of manifests; nothing of the file is in force`;
  t.deepEqual(
    watched.problems.filter((text) => text.includes('link is')),
    [refused('a.yaml', 'secret'), refused('sub/b.yaml', 'elsewhere/b.yaml')],
  );
});

test('A missing object is removed even if the same text is written again', async (t) => {
  const { manifests } = temporaryFolder(t);
  const file = join(manifests, 'a.yaml');
  write(file, `${yaml('a')}---\n${yaml('b')}`);
  const watched = await watchManifests(t, manifests, { lossDelayMs: 500 });
  write(file, yaml('a', 81));
  await watched.until(() => portOf(watched, 'a') === 81);
  t.deepEqual(names(watched), ['a', 'b']);
  // Half of the file, as during a write in place.
  writeFileSync(file, 'a: [');
  await delay(100);
  writeFileSync(file, yaml('a', 81));
  await watched.until(() => !names(watched).includes('b'));
  t.deepEqual(watched.problems, []);
});

test('The problem of a broken file goes with the file', async (t) => {
  const { manifests } = temporaryFolder(t);
  const file = join(manifests, 'a.yaml');
  write(file, 'a: [');
  const watched = await watchManifests(t, manifests);
  t.regex(watched.problems[0] ?? '', /^.*a\.yaml:1:\d+: .*; nothing of the file is in force$/);
  rmSync(file);
  await watched.until(() => watched.problems.length === 0);
  t.pass();
});

test('A broken file has the objects of its snapshot after a restart', async (t) => {
  const { root, manifests } = temporaryFolder(t);
  const snapshotDirectory = join(root, 'snapshots');
  const file = join(manifests, 'a.yaml');
  write(file, yaml('web', 81));
  const first = await watchManifests(t, manifests, { snapshotDirectory });
  write(file, yaml('web', 82));
  await first.until(() => portOf(first) === 82);
  await first.source.close();
  write(file, 'a: [');
  const second = await watchManifests(t, manifests, { snapshotDirectory, lossDelayMs: 50 });
  t.is(portOf(second), 82);
  t.regex(
    second.problems[0] ?? '',
    /a\.yaml:1:\d+: .*; what could be read of the file, now or before, is in force$/,
  );
  // Neither does the broken content replace the snapshot.
  await second.source.close();
  const third = await watchManifests(t, manifests, { snapshotDirectory, lossDelayMs: 50 });
  t.is(portOf(third), 82);
  write(file, yaml('web', 83));
  await third.until(() => portOf(third) === 83);
  t.deepEqual(third.problems, []);
});

test('A folder that is away at the start has its last objects until it is back', async (t) => {
  const { root, manifests } = temporaryFolder(t);
  const snapshotDirectory = join(root, 'snapshots');
  write(join(manifests, 'a.yaml'), yaml('web'));
  write(join(manifests, 'sub/b.yaml'), yaml('other'));
  await (await watchManifests(t, manifests, { snapshotDirectory })).source.close();
  renameSync(manifests, join(root, 'away'));
  await (await watchManifests(t, manifests, { snapshotDirectory })).source.close();
  const watched = await watchManifests(t, manifests, { snapshotDirectory, lossDelayMs: 50 });
  t.deepEqual(names(watched), ['other', 'web']);
  t.deepEqual(watched.problems, [`${manifests}: Cannot read the folder; what was in it stays in force`]);
  rmSync(join(root, 'away/sub'), { recursive: true });
  renameSync(join(root, 'away'), manifests);
  await watched.until(() => names(watched).length === 1);
  t.deepEqual(removals(watched), ['default/other']);
  t.deepEqual(watched.problems, []);
  const elsewhere = new ManifestSource({
    places: [`${manifests}-2`],
    snapshotDirectory,
    onChange: () => t.fail(),
    onFailure: () => t.fail(),
  });
  await t.throwsAsync(elsewhere.start(), { code: 'SETTINGS_INVALID' });
  await elsewhere.close();
});

test('A file that is empty at the start has the objects of its snapshot for a moment', async (t) => {
  const { root, manifests } = temporaryFolder(t);
  const snapshotDirectory = join(root, 'snapshots');
  const file = join(manifests, 'a.yaml');
  write(file, yaml('web'));
  await (await watchManifests(t, manifests, { snapshotDirectory })).source.close();
  truncateSync(file);
  const patient = await watchManifests(t, manifests, { snapshotDirectory });
  t.is(portOf(patient), 80);
  await patient.source.close();
  const second = await watchManifests(t, manifests, { snapshotDirectory, lossDelayMs: 1_000 });
  t.is(portOf(second), 80);
  await second.until(() => second.objects.size === 0);
  await second.source.close();
  const third = await watchManifests(t, manifests, { snapshotDirectory });
  t.is(third.objects.size, 0);
});

/** A folder that an agent has read before, one Service in each file. */
async function readBefore(t: ExecutionContext, count: number) {
  const { root, manifests } = temporaryFolder(t);
  const snapshotDirectory = join(root, 'snapshots');
  const files = Array.from({ length: count }, (_, at) => join(manifests, `s${at}.yaml`));
  for (const [at, file] of files.entries()) write(file, yaml(`s${at}`));
  await (await watchManifests(t, manifests, { snapshotDirectory })).source.close();
  return { root, manifests, snapshotDirectory, files };
}

test('A folder that is emptied before the start has its last objects for a moment', async (t) => {
  const { manifests, snapshotDirectory, files } = await readBefore(t, 2);
  for (const file of files) rmSync(file);
  const doubting = await watchManifests(t, manifests, { snapshotDirectory });
  t.deepEqual(names(doubting), ['s0', 's1']);
  t.deepEqual(doubting.problems, []);
  await doubting.source.close();
  const patient = await watchManifests(t, manifests, { snapshotDirectory, lossDelayMs: 20 });
  await patient.until(() => patient.objects.size === 0);
  await patient.source.close();
  t.is((await watchManifests(t, manifests, { snapshotDirectory })).objects.size, 0);
});

test('An empty folder instead of the last one counts as away until it has a manifest', async (t) => {
  const { root, manifests, snapshotDirectory } = await readBefore(t, 2);
  renameSync(manifests, join(root, 'away'));
  write(join(manifests, '.hidden'), 'is passed over');
  await (await watchManifests(t, manifests, { snapshotDirectory, lossDelayMs: 1 })).source.close();
  const folderTimes = { intervalMs: 50, unwatchedIntervalMs: 50 };
  const watched = await watchManifests(t, manifests, { snapshotDirectory, lossDelayMs: 1, folderTimes });
  t.deepEqual(names(watched), ['s0', 's1']);
  t.deepEqual(watched.problems, [`${manifests}: The folder is empty; what was in it stays in force`]);
  write(join(manifests, 'none.yaml'), '');
  await watched.until(() => watched.objects.size === 0);
  t.deepEqual(watched.problems, []);
  await watched.source.close();
  t.is((await watchManifests(t, manifests, { snapshotDirectory })).objects.size, 0);
});

test('An empty folder that replaces another one removes nothing', async (t) => {
  const { root, manifests } = temporaryFolder(t);
  write(join(manifests, 'a.yaml'), yaml('a'));
  const folderTimes = { intervalMs: 50, unwatchedIntervalMs: 50 };
  const watched = await watchManifests(t, manifests, { lossDelayMs: 1, folderTimes });
  renameSync(manifests, join(root, 'away'));
  mkdirSync(manifests);
  await watched.until(() => /: The folder is empty; /.test(watched.problems[0] ?? ''));
  rmSync(manifests, { recursive: true });
  await watched.until(() => /: Cannot read the folder; /.test(watched.problems[0] ?? ''));
  mkdirSync(manifests);
  await watched.until(() => /: The folder is empty; /.test(watched.problems[0] ?? ''));
  rmSync(manifests, { recursive: true });
  renameSync(join(root, 'away'), manifests);
  await watched.until(() => watched.problems.length === 0);
  write(join(manifests, 'a.yaml'), yaml('a', 81));
  await watched.until(() => portOf(watched, 'a') === 81);
  t.deepEqual(removals(watched), []);
});

test('Objects that are missing at the start go at once, unless they are more than half', async (t) => {
  const { manifests, snapshotDirectory, files } = await readBefore(t, 5);
  const start = () => watchManifests(t, manifests, { snapshotDirectory });
  for (const file of files.slice(3)) rmSync(file);
  const fewer = await start();
  t.deepEqual(names(fewer), ['s0', 's1', 's2']);
  await fewer.source.close();
  for (const file of files.slice(1, 3)) rmSync(file);
  const doubting = await start();
  t.deepEqual(names(doubting), ['s0', 's1', 's2']);
  t.deepEqual(doubting.problems, []);
  await doubting.source.close();
  const begin = performance.now();
  const patient = await watchManifests(t, manifests, { snapshotDirectory, lossDelayMs: 20 });
  t.deepEqual(names(patient), ['s0', 's1', 's2']);
  await patient.until(() => names(patient).length === 1);
  t.true(performance.now() - begin >= 20 * 20);
  await patient.source.close();
  t.deepEqual(names(await start()), ['s0']);
});

test('A Service that moved to another file before the start stays', async (t) => {
  const { manifests, snapshotDirectory, files } = await readBefore(t, 2);
  for (const file of files) rmSync(file);
  write(join(manifests, 'all.yaml'), `${yaml('s0', 81)}---\n${yaml('s1')}`);
  const watched = await watchManifests(t, manifests, { snapshotDirectory });
  t.deepEqual([portOf(watched, 's0'), portOf(watched, 's1')], [81, 80]);
  t.is(watched.changes.length, 1);
  write(join(manifests, 'all.yaml'), `${yaml('s0', 82)}---\n${yaml('s1')}`);
  await watched.until(() => portOf(watched, 's0') === 82);
  t.deepEqual(removals(watched), []);
});

test('While the files of a folder come back one by one, all objects stay', async (t) => {
  const { manifests, snapshotDirectory, files } = await readBefore(t, 6);
  for (const file of files) rmSync(file);
  write(files[0] ?? '', yaml('s0', 81));
  const lossDelayMs = 100;
  const watched = await watchManifests(t, manifests, { snapshotDirectory, lossDelayMs });
  const begin = performance.now();
  for (const [at, file] of files.entries()) {
    if (at === 0 || at === 5) continue;
    await new Promise((resolve) => setTimeout(resolve, 600));
    write(file, yaml(`s${at}`, 81));
    await watched.until(() => portOf(watched, `s${at}`) === 81);
  }
  t.true(performance.now() - begin > 20 * lossDelayMs);
  t.deepEqual(removals(watched), []);
  await watched.until(() => names(watched).length === 5);
  t.deepEqual(removals(watched), ['default/s5']);
});

test('Many files that are removed at once keep their objects for longer', async (t) => {
  const { manifests } = temporaryFolder(t);
  const files = Array.from({ length: 20 }, (_, at) => join(manifests, `s${at}.yaml`));
  for (const [at, file] of files.entries()) write(file, `${yaml(`s${at}`)}---\n${yaml(`t${at}`)}`);
  const lossDelayMs = 20;
  const watched = await watchManifests(t, manifests, { lossDelayMs });
  for (const file of files.slice(0, 8)) rmSync(file);
  await watched.until(() => watched.objects.size === 24);
  const next = performance.now();
  for (const file of files.slice(8, 18)) rmSync(file);
  await watched.until(() => watched.objects.size < 24);
  t.true(performance.now() - next >= 20 * lossDelayMs);
  await watched.until(() => watched.objects.size === 4);
});

test.serial('A loss is judged only after the events of the other files', async (t) => {
  const { manifests } = temporaryFolder(t);
  const files = Array.from({ length: 20 }, (_, at) => join(manifests, `s${at}.yaml`));
  for (const [at, file] of files.entries()) write(file, yaml(`s${at}`));
  const lossDelayMs = 500;
  const watched = await watchManifests(t, manifests, { lossDelayMs });
  const turns = async () => {
    for (let turn = 0; turn < 5; turn++) await setImmediate();
  };
  rmSync(files[0] ?? '');
  await turns();
  for (const file of files.slice(1)) rmSync(file);
  // After a stall timers come first.
  const stalled = performance.now();
  while (performance.now() - stalled < 2 * lossDelayMs);
  await turns();
  t.deepEqual(removals(watched), []);
  for (const [at, file] of files.entries()) write(file, yaml(`s${at}`, 81));
  await watched.until(() => files.every((_, at) => portOf(watched, `s${at}`) === 81));
  t.deepEqual(removals(watched), []);
});

test('A new file does not take over the object of another file', async (t) => {
  const { manifests } = temporaryFolder(t);
  const [other, own] = [join(manifests, 'a.yaml'), join(manifests, 'b.yaml')];
  write(own, yaml('web', 82));
  const watched = await watchManifests(t, manifests, { lossDelayMs: 50 });
  write(other, yaml('web', 81));
  await watched.until(() => watched.problems.length === 1);
  t.deepEqual(watched.problems, [`${other}: Service default/web is also in ${own}, which has precedence`]);
  t.is(portOf(watched), 82);
  write(own, yaml('web', 83));
  await watched.until(() => portOf(watched) === 83);
  rmSync(own);
  await watched.until(() => portOf(watched) === 81);
  t.deepEqual(watched.problems, []);
});

test('At a start the first file in path order has precedence, and then the other one', async (t) => {
  const { manifests } = temporaryFolder(t);
  const [first, second] = [join(manifests, 'a.yaml'), join(manifests, 'b.yaml')];
  write(second, yaml('web', 82));
  write(first, yaml('web', 81));
  const watched = await watchManifests(t, manifests, { lossDelayMs: 50 });
  t.is(portOf(watched), 81);
  t.deepEqual(watched.problems, [`${second}: Service default/web is also in ${first}, which has precedence`]);
  t.is(watched.changes.at(-1)?.problems[0]?.reason, 'DuplicateObject');
  t.is(watched.changes.at(-1)?.problems[0]?.object, 'Service default/web');
  write(second, yaml('web', 83));
  rmSync(first);
  await watched.until(() => portOf(watched) === 83);
  t.deepEqual(watched.problems, []);
  t.deepEqual(removals(watched), []);
});

test('A folder that the settings list twice is read once', async (t) => {
  const { root, manifests } = temporaryFolder(t);
  write(join(manifests, 'a.yaml'), yaml('web'));
  const watched = await watchManifests(t, root, { places: [root, manifests] });
  t.deepEqual(names(watched), ['web']);
  t.deepEqual(watched.problems, []);
  write(join(manifests, 'a.yaml'), yaml('web', 81));
  await watched.until(() => portOf(watched) === 81);
  t.deepEqual(watched.problems, []);
});

test('Two hundred files written at once are all reported, and all removed', async (t) => {
  const { manifests } = temporaryFolder(t);
  const watched = await watchManifests(t, manifests, { lossDelayMs: 100 });
  const files = Array.from({ length: 200 }, (_, index) => join(manifests, `f${index}.yaml`));
  for (const [index, file] of files.entries()) write(file, yaml(`s${index}`));
  await watched.until(() => watched.objects.size === 200);
  for (const [index, file] of files.entries()) write(file, yaml(`s${index}`, 81));
  await watched.until(() => names(watched).every((name) => portOf(watched, name) === 81));
  for (const file of files) rmSync(file);
  await watched.until(() => watched.objects.size === 0);
  t.is(new Set(removals(watched)).size, 200);
});

test('A file that grows by appending is read whole', async (t) => {
  const { manifests } = temporaryFolder(t);
  const file = join(manifests, 'a.yaml');
  write(file, yaml('s0'));
  const watched = await watchManifests(t, manifests);
  for (let index = 1; index < 20; index++) appendFileSync(file, `---\n${yaml(`s${index}`)}`);
  await watched.until(() => watched.objects.size === 20);
  t.deepEqual(removals(watched), []);
});

test('A file that is not regular counts as absent', async (t) => {
  const { manifests } = temporaryFolder(t);
  symlinkSync('/dev/null', join(manifests, 'masked.yaml'));
  symlinkSync('nowhere', join(manifests, 'dangling.yaml'));
  mkdirSync(join(manifests, 'folder.yaml'));
  write(join(manifests, 'folder.yaml/a.yaml'), yaml('web'));
  const watched = await watchManifests(t, manifests);
  t.deepEqual(names(watched), ['web']);
  t.deepEqual(watched.problems, []);
});

test('A circular link is a problem of its own', async (t) => {
  const { manifests } = temporaryFolder(t);
  symlinkSync('a.yaml', join(manifests, 'a.yaml'));
  write(join(manifests, 'b.yaml'), yaml('web'));
  const watched = await watchManifests(t, manifests);
  t.deepEqual(names(watched), ['web']);
  t.regex(watched.problems[0] ?? '', /a\.yaml: Cannot read the file: ELOOP/);
});

test('Snapshots that cannot be written harm nothing', async (t) => {
  const { root, manifests } = temporaryFolder(t);
  write(join(root, 'file'), 'in the way');
  const file = join(manifests, 'a.yaml');
  write(file, yaml('web'));
  const watched = await watchManifests(t, manifests, { snapshotDirectory: join(root, 'file/snapshots') });
  write(file, yaml('web', 81));
  await watched.until(() => portOf(watched) === 81);
  await watched.source.close();
  t.regex(watched.failures[0] ?? '', /^Cannot keep manifests in ".*file\/snapshots"$/);
});

test('Nothing is reported after close()', async (t) => {
  const { manifests } = temporaryFolder(t);
  const file = join(manifests, 'a.yaml');
  write(file, yaml('web'));
  const watched = await watchManifests(t, manifests, { lossDelayMs: 1 });
  const other = await watchManifests(t, manifests, { lossDelayMs: 1 });
  rmSync(file);
  await watched.source.close();
  const count = watched.changes.length;
  await other.until(() => other.objects.size === 0);
  t.is(watched.changes.length, count);
});

const file = fc.constantFrom('a.yaml', 'b.yaml', 'x/a.yaml', 'x/y/b.yaml');
const operation = fc.oneof(
  fc.record({
    kind: fc.constant('write' as const),
    file,
    ports: fc.array(fc.tuple(fc.constantFrom('s1', 's2', 's3'), fc.integer({ min: 1, max: 3 })), {
      maxLength: 3,
    }),
  }),
  fc.record({ kind: fc.constant('break' as const), file }),
  fc.record({ kind: fc.constant('remove' as const), file }),
  fc.record({ kind: fc.constant('rename' as const), file, to: file }),
  fc.record({ kind: fc.constant('remove folder' as const) }),
  fc.record({ kind: fc.constant('wait' as const), milliseconds: fc.integer({ min: 0, max: 30 }) }),
);

test('After any writes, renames and removals the source has the objects of the files that are not broken', async (t) => {
  const { root } = temporaryFolder(t);
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 15 }), async (operations) => {
      const manifests = join(root, `run${++run}`);
      mkdirSync(manifests);
      const watched = await watchManifests(t, manifests, { lossDelayMs: 20 });
      const contents = new Map<string, string>();
      for (const each of operations) {
        if (each.kind === 'write') {
          const text = each.ports.map(([name, port]) => yaml(name, port)).join('---\n');
          write(join(manifests, each.file), text);
          contents.set(each.file, text);
        } else if (each.kind === 'break') {
          write(join(manifests, each.file), 'a: [');
          contents.set(each.file, 'a: [');
        } else if (each.kind === 'remove') {
          rmSync(join(manifests, each.file), { force: true });
          contents.delete(each.file);
        } else if (each.kind === 'remove folder') {
          rmSync(join(manifests, 'x'), { recursive: true, force: true });
          for (const path of contents.keys()) if (path.startsWith('x/')) contents.delete(path);
        } else if (each.kind === 'rename') {
          const text = contents.get(each.file);
          if (text === undefined || each.file === each.to) continue;
          mkdirSync(dirname(join(manifests, each.to)), { recursive: true });
          renameSync(join(manifests, each.file), join(manifests, each.to));
          contents.delete(each.file);
          contents.set(each.to, text);
        } else await new Promise((resolve) => setTimeout(resolve, each.milliseconds));
      }
      // What was broken at the end may still have an older content in force: make it good again.
      for (const [path, text] of contents) {
        if (text === 'a: [') write(join(manifests, path), '');
      }
      // If several files have an object, which counts depends on when the agent has read each of them.
      const expected = new Map<string, number[]>();
      for (const text of contents.values()) {
        const firstOfFile = new Map<string, number>();
        for (const [, name = '', port] of text.matchAll(/name: (s\d)\n.*\n.*\n.*port: (\d)/g)) {
          if (!firstOfFile.has(name)) firstOfFile.set(name, Number(port));
        }
        for (const [name, port] of firstOfFile) expected.set(name, [...(expected.get(name) ?? []), port]);
      }
      const wanted = [...expected.keys()].sort().join();
      const isHeld = () =>
        names(watched).join() === wanted &&
        names(watched).every((name) => expected.get(name)?.includes(portOf(watched, name) ?? 0));
      await watched.until(() => isHeld() && watched.problems.every((text) => !text.includes('in force')));
      await watched.source.close();
    }),
    { numRuns: 40 },
  );
  t.is(run, 40);
});
