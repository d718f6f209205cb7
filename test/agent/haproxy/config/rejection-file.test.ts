import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { type Rejection, structureOfAll } from '../../../../agent/haproxy/config/quarantine.ts';
import { RejectionFile } from '../../../../agent/haproxy/config/rejection-file.ts';
import { clusterOf, service, slice } from '../../../support/values/build.ts';
import { translateCluster } from '../../../support/values/translated.ts';

test('RejectionFile loads the rejections that an earlier agent saved', async (t) => {
  const path = await pathOf(t);
  const first = new RejectionFile(path);
  t.is((await first.load('2.6.12')).size, 0);
  await first.save(rejections());
  const loaded = await new RejectionFile(path).load('2.6.12');
  t.deepEqual([...loaded.keys()], ['default/web']);
  const [[, saved] = [], [, read] = []] = [[...rejections()][0], [...loaded][0]];
  t.deepEqual([read?.structure, read?.problem], [saved?.structure, saved?.problem]);
  if (saved?.lastGood === undefined || read?.lastGood === undefined) return t.fail();
  t.is(structureOfAll(read.lastGood), structureOfAll(saved.lastGood));
});

test('RejectionFile ignores rejections of another version of HAProxy', async (t) => {
  const path = await pathOf(t);
  const first = new RejectionFile(path);
  await first.load('2.6.12');
  await first.save(rejections());
  t.is((await new RejectionFile(path).load('3.0.11')).size, 0);
});

test('RejectionFile writes a removed file again', async (t) => {
  const path = await pathOf(t);
  const file = new RejectionFile(path);
  await file.load('2.6.12');
  await file.save(rejections());
  await rm(path);
  await file.save(rejections());
  t.is((await new RejectionFile(path).load('2.6.12')).size, 1);
});

test('RejectionFile removes the file without rejections', async (t) => {
  const path = await pathOf(t);
  const file = new RejectionFile(path);
  await file.load('2.6.12');
  await file.save(rejections());
  await file.save(new Map());
  await t.throwsAsync(readFile(path), { code: 'ENOENT' });
});

for (const [what, text] of [
  ['empty', ''],
  ['cut off', '{"haproxy":"2.6.12","rejections":[["default/web",{"stru'],
  ['something else', '{"haproxy":"2.6.12","rejections":"none"}'],
  ['of another shape', '{"haproxy":"2.6.12","rejections":[["default/web",{"structure":1,"problem":{}}]]}'],
] as const) {
  test(`A file that is ${what} holds no rejections`, async (t) => {
    const path = await pathOf(t);
    await writeFile(path, text);
    t.is((await new RejectionFile(path).load('2.6.12')).size, 0);
  });
}

function rejections(): ReadonlyMap<string, Rejection> {
  const [web] = translateCluster(clusterOf([service(), slice()])).loadBalancers.values();
  if (web === undefined) throw new Error('No load balancer');
  const problem = { object: 'Service default/web', reason: 'ConfigurationRejected', message: 'no' } as const;
  return new Map([[web.key, { structure: `${structureOfAll(web)} and more`, lastGood: web, problem }]]);
}

async function pathOf(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-rejections-'));
  t.teardown(() => rm(directory, { recursive: true }));
  return join(directory, 'rejected.json');
}
