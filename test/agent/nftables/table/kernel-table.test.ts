// KernelTable with real nftables.

import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { KernelTable } from '../../../../agent/nftables/table/kernel-table.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { TestNetwork } from '../../../support/host/namespaces.ts';
import { nftExecutable } from '../../../support/host/nft.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const test = requires(ava, { programs: ['ip', 'nft'], root: true });

async function loaded(t: ExecutionContext) {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  await mkdir(join(directory, 'run'));
  const network = await TestNetwork.create(t, ['a']);
  const table = new KernelTable({
    nft: nftExecutable,
    netns: network.netns('a'),
    table: 'headgate',
    rulesFile: join(directory, 'rules.nft'),
    changeFile: join(directory, 'run/change.nft'),
    countsTraffic: true,
    sources: () => ({ groups: [], groupOf: () => 0 }),
    log: silentLog(),
  });
  t.teardown(() => table.close());
  await table.load([]);
  const processes = async (): Promise<readonly number[]> => {
    const { stdout } = await network.try('a', 'ip', 'netns', 'pids', network.netns('a'));
    return stdout
      .split('\n')
      .map(Number)
      .filter((pid) => table.hasStarted(pid));
  };
  return { table, processes };
}

test('Another nft takes the place of one that has answered a thousand times, because it remembers each line', async (t) => {
  const { table, processes } = await loaded(t);
  t.true(await table.isIntact());
  const before = await processes();
  t.is(before.length, 1);
  // Two answers each.
  for (let look = 0; look < 520; look++) t.true(await table.isIntact());
  const after = await processes();
  t.is(after.length, 1);
  t.notDeepEqual(after, before);
});

test('nft does not read the history of its user', async (t) => {
  const { table, processes } = await loaded(t);
  await table.isIntact();
  const [pid] = await processes();
  const environment = (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0');
  t.deepEqual(
    environment.filter((each) => each.startsWith('HOME=')),
    ['HOME=/nonexistent'],
  );
});
