import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type TestFn } from 'ava';
import { hostIdentity } from '../../../../agent/kubernetes/writers/host-identity.ts';

const test = ava as TestFn<{ directory: string }>;

test.beforeEach(async (t) => {
  t.context.directory = await mkdtemp(join(tmpdir(), 'headgate-identity-'));
});
test.afterEach.always((t) => rm(t.context.directory, { recursive: true }));

test('hostIdentity() is the same after a restart', async (t) => {
  const { directory } = t.context;
  const first = await hostIdentity('lb', directory);
  t.regex(first, /^lb_[0-9a-f]{12}$/);
  t.is(await hostIdentity('lb', directory), first);
});

test('hostIdentity() differs between two hosts of one name', async (t) => {
  const { directory } = t.context;
  t.not(await hostIdentity('lb', join(directory, 'a')), await hostIdentity('lb', join(directory, 'b')));
});

test('hostIdentity() replaces a damaged file', async (t) => {
  const { directory } = t.context;
  await writeFile(join(directory, 'identity'), '../\n');
  const identity = await hostIdentity('lb', directory);
  t.is(identity, `lb_${(await readFile(join(directory, 'identity'), 'utf8')).trim()}`);
});

test('hostIdentity() works without a writable state folder', async (t) => {
  const nowhere = join(t.context.directory, 'file');
  await writeFile(nowhere, '');
  t.regex(await hostIdentity('lb', nowhere), /^lb_[0-9a-f]{12}$/);
});
