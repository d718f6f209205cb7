import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { birdPaths } from '../../../../agent/vips/bird/paths.ts';
import { VipFiles } from '../../../../agent/vips/bird/vip-files.ts';

async function world(t: ExecutionContext) {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const paths = birdPaths(directory);
  await mkdir(paths.directory);
  const asked: string[] = [];
  const socket = {
    ask: async (command: string) => {
      asked.push(command);
      return { code: 3, lines: [] };
    },
  };
  return { paths, asked, files: new VipFiles(paths, socket) };
}

test('VipFiles makes BIRD read the files only if they have changed', async (t) => {
  const { files, asked, paths } = await world(t);
  files.set(new Map([['198.51.100.1', 'first']]));
  t.true(await files.apply(true));
  t.false(await files.apply(true));
  t.deepEqual(asked, ['configure soft']);
  t.is(await readFile(paths.vips.v4, 'utf8'), 'route 198.51.100.1/32 blackhole;\n');
  await writeFile(paths.vips.v4, 'route 203.0.113.1/32');
  t.true(await files.apply(true));
  t.is(await readFile(paths.vips.v4, 'utf8'), 'route 198.51.100.1/32 blackhole;\n');
});

test('VipFiles adds the routes of anchors, which are no VIPs of an agent before this one', async (t) => {
  const { files, paths } = await world(t);
  files.set(new Map([['198.51.100.1', 'first']]), [{ address: '10.77.0.1', rank: 2 }]);
  await files.apply(false);
  t.is(
    await readFile(paths.vips.v4, 'utf8'),
    'route 198.51.100.1/32 blackhole;\nroute 10.77.0.1/32 blackhole { bgp_ext_community.add((generic, 0x43484701, 2)); };\n',
  );
  t.deepEqual([...(await files.read()).keys()], ['198.51.100.1']);
});

test('VipFiles makes a new process read a change that came while it started', async (t) => {
  const { files, asked } = await world(t);
  files.set(new Map([['198.51.100.1', 'first']]));
  t.false(await files.apply(false));
  t.deepEqual(asked, []);
  files.processChanged();
  t.true(await files.apply(true));
  t.deepEqual(asked, ['configure soft']);
});

test('VipFiles reads the routes of an agent before this one', async (t) => {
  const { files, paths } = await world(t);
  t.deepEqual([...(await files.read())], []);
  const routes = new Map([
    ['198.51.100.1', 'first'],
    ['198.51.100.2', 'last'],
    ['2001:db8::1', 'first'],
  ] as const);
  files.set(routes);
  await files.apply(false);
  t.deepEqual(await new VipFiles(paths, { ask: async () => ({ code: 3, lines: [] }) }).read(), routes);
});
