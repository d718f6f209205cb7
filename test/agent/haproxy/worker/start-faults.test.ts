import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { Quarantine } from '../../../../agent/haproxy/config/quarantine.ts';
import { StartFaults, type StartFaultsOptions } from '../../../../agent/haproxy/worker/start-faults.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

/** StartFaults for a HAProxy that another process starts; records the writes and checks. */
async function started(
  t: ExecutionContext<unknown>,
  rejectInvalid: () => Promise<boolean> = async () => false,
) {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const log = join(directory, 'haproxy.log');
  const done: string[] = [];
  const note = (text: string) => () => {
    done.push(text);
  };
  const quarantine = new Quarantine();
  const faults = new StartFaults({
    paths: { log },
    maker: {
      refused: note('refused'),
      globalAccepted: note('global accepted'),
      globalRefused: note('global refused'),
      effective: () => new Map(),
      rejectInvalid: () => {
        done.push('checked');
        return rejectInvalid();
      },
    },
    file: { restoreLastGood: note('restored') },
    quarantine,
    desired: new Map(),
    onRefused: note('told'),
    log: silentLog(),
  } as unknown as StartFaultsOptions);
  const say = (...lines: readonly string[]) => appendFile(log, `${lines.join('\n')}\n`);
  await say('[ALERT]    (7) : config : of long ago');
  await faults.begin();
  return { faults, say, done, quarantine };
}

test('readOutput() ignores output from before the start and about an ended worker', async (t) => {
  const { faults, say, done } = await started(t);
  t.is(await faults.readOutput(), '');
  await say(
    '[NOTICE]   (7) : haproxy version is 2.6.12',
    '[ALERT]    (7) : Current worker (8) exited with code 143 (Terminated)',
    '[ALERT]    (7) : exit-on-failure: killing every processes with SIGTERM',
  );
  t.is(await faults.readOutput(), '');
  t.deepEqual(done, []);
});

test('readOutput() leaves out an address that HAProxy cannot bind, and nothing else', async (t) => {
  const { faults, say, done, quarantine } = await started(t);
  await say(
    '[ALERT]    (7) : Starting frontend a:b:tcp:80:v4: cannot bind socket (Address already in use) [127.0.0.9:80]',
    '[ALERT]    (7) : Starting frontend a:b:tcp:80:v4: cannot bind socket (Address already in use) for [127.0.0.8:80]',
    '[ALERT]    (7) : [haproxy.main()] Some protocols failed to start their listeners! Exiting.',
  );
  t.regex(await faults.readOutput(), /^HAProxy does not start: Starting frontend/);
  t.true(quarantine.isBlocked('127.0.0.8', 80));
  t.deepEqual(done, ['global accepted']);
  t.is(await faults.readOutput(), '', 'Nothing is read twice');
});

test('A repeated alert that a check attributes to no load balancer restores the last good file', async (t) => {
  const { faults, say, done } = await started(t);
  const words = (pid: number) =>
    `[ALERT]    (${pid}) : [haproxy.main()] Cannot raise FD limit to 99, limit is 9.`;
  await say(words(7), words(8));
  t.is(
    await faults.readOutput(),
    'HAProxy does not start: [haproxy.main()] Cannot raise FD limit to 99, limit is 9.',
  );
  t.deepEqual(done, ['refused', 'checked']);
  await say(words(9));
  await faults.readOutput();
  t.deepEqual(done, ['refused', 'checked', 'checked', 'global refused', 'restored']);
});

test('A load balancer that a check refuses is left out', async (t) => {
  const { faults, say, done } = await started(t, async () => true);
  for (const pid of [7, 8]) {
    await say(`[ALERT]    (${pid}) : config : parsing [/x:9] : unknown keyword 'poison'`);
    await faults.readOutput();
  }
  t.deepEqual(done, ['refused', 'checked', 'checked']);
});
