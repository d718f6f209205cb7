import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { haproxyVariables } from '../../../../agent/haproxy/process/haproxy-variables.ts';

test('haproxyVariables() asks for huge pages but where free memory is given back to the host', async (t) => {
  const balloons = await mkdtemp(join(tmpdir(), 'hg-balloons-'));
  t.teardown(() => rm(balloons, { recursive: true }));
  const isHuge = (folder = balloons): boolean => 'GLIBC_TUNABLES' in haproxyVariables(folder);
  t.true(isHuge(join(balloons, 'none')));
  t.true(isHuge());
  await mkdir(join(balloons, 'virtio0'));
  t.true(isHuge(), 'features that cannot be read');
  await writeFile(join(balloons, 'virtio0', 'features'), `0110000${'0'.repeat(57)}\n`);
  t.true(isHuge());
  await mkdir(join(balloons, 'virtio3'));
  await writeFile(join(balloons, 'virtio3', 'features'), `0110010${'0'.repeat(57)}\n`);
  t.false(isHuge());
  t.is(haproxyVariables(balloons).HAPROXY_MWORKER, '1');
});
