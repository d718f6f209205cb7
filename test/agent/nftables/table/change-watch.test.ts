// ChangeWatch with real nftables.

import { readdirSync, readFileSync } from 'node:fs';
import ava from 'ava';
import { createLog } from '../../../../agent/host/log.ts';
import { inNamespace } from '../../../../agent/host/namespace.ts';
import { runCommand } from '../../../../agent/host/run-command.ts';
import { type Changed, ChangeWatch } from '../../../../agent/nftables/table/change-watch.ts';
import { eventually } from '../../../support/basics/eventually.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { TestNetwork } from '../../../support/host/namespaces.ts';
import { nftExecutable } from '../../../support/host/nft.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const test = requires(ava, { programs: ['ip', 'nft', 'perl'], root: true });

test('ChangeWatch reports each transaction in its tables, with its process, and no other', async (t) => {
  const network = await TestNetwork.create(t, ['a']);
  const seen: (readonly [number, Changed])[] = [];
  const watch = new ChangeWatch({
    netns: network.netns('a'),
    tables: ['lb', 'lb_counts'],
    onChanged: (process, what) => seen.push([process, what]),
    onMissed: () => t.fail('nothing was missed'),
    log: silentLog(),
  });
  t.teardown(() => watch.close());
  watch.start();
  const nft = async (text: string): Promise<number> => {
    let pid = 0;
    const [program, args] = inNamespace(network.netns('a'), nftExecutable, [text]);
    const onStart = (started: number): void => {
      pid = started;
    };
    const { exitCode, stderr } = await runCommand(program, args, { timeout: 10_000, onStart });
    t.is(exitCode, 0, stderr);
    return pid;
  };
  // It has begun when it reports something.
  let turn = 0;
  await eventually(
    async () => {
      await nft(`add table ip6 lb_counts { comment "${turn++}"; }; delete table ip6 lb_counts`);
      return seen.length;
    },
    (count) => count > 0,
  );
  const last = await nft('add table ip lb_counts; delete table ip lb_counts');
  await eventually(
    async () => seen,
    (all) => all.some(([process]) => process === last),
  );
  seen.length = 0;

  const made = await nft('add table ip lb; add set ip lb s { type ipv4_addr; }');
  await nft(
    'add table ip other; add set ip other s { type ipv4_addr; }; add element ip other s { 10.0.0.1 }',
  );
  const added = await nft('add element ip lb s { 10.0.0.1, 10.0.0.2 }');
  const removed = await nft('delete element ip lb s { 10.0.0.1 }');
  await nft('list ruleset');
  const both = await nft('delete element ip lb s { 10.0.0.2 }; add chain ip lb c');
  const flushed = await nft('flush ruleset');
  await eventually(
    async () => seen,
    (all) => all.some(([process]) => process === flushed),
  );
  t.deepEqual(seen, [
    [made, 'rules'],
    [added, 'elements'],
    [removed, 'elements'],
    [both, 'rules'],
    [flushed, 'rules'],
  ]);
});

test('A process that ends again and again is reported once, and started more and more seldom', async (t) => {
  const network = await TestNetwork.create(t, ['a']);
  const clock = new FakeClock();
  const waits: number[] = [];
  const after = (milliseconds: number, callback: () => void): (() => void) => {
    waits.push(milliseconds);
    return clock.after(milliseconds, callback);
  };
  const lines: string[] = [];
  let missed = 0;
  const watch = new ChangeWatch({
    netns: network.netns('a'),
    tables: ['lb'],
    onChanged: () => undefined,
    onMissed: () => missed++,
    log: createLog({ level: 'warn', destination: { write: (text) => lines.push(text) }, format: 'json' }),
    clock: { monotonic: () => clock.monotonic(), wall: () => clock.wall(), after },
  });
  t.teardown(() => watch.close());
  const others = childrenOf(process.pid);
  watch.start();
  for (const waitMs of [1_000, 2_000, 4_000]) {
    const [child = 0] = await eventually(
      async () => childrenOf(process.pid).filter((child) => !others.includes(child)),
      (children) => children.length === 1,
    );
    process.kill(child, 'SIGKILL');
    await eventually(
      async () => waits.at(-1),
      (last) => last === waitMs,
    );
    await clock.advance(waitMs);
  }
  await eventually(
    async () => missed,
    (count) => count > 0,
  );
  t.is(lines.length, 1, lines.join(''));
  t.regex(lines.join(''), /Cannot watch the tables of nftables/);
});

function childrenOf(pid: number): readonly number[] {
  const threads = readdirSync(`/proc/${pid}/task`);
  const lists = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8'));
  return lists.flatMap((list) => list.split(' ').filter(Boolean).map(Number));
}
