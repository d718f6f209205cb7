// The handover from one real worker to the next, with the file that the agent writes.

import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import ava from 'ava';
import { service, slice } from '../../../support/build.ts';
import { Loopback, startRendered } from '../../../support/rendered-haproxy.ts';
import { requires } from '../../../support/requirements.ts';
import { loadBalancerOf, translated } from '../../../support/translated.ts';

const test = requires(ava, { haproxy: true });

test('Before HAProxy 3.1 the old worker goes on taking connections for a moment, later ones need not', async (t) => {
  const loopback = new Loopback();
  const [before, after] = await Promise.all(
    [80, 81].map((port) =>
      loopback.bindable(loadBalancerOf(translated([service({ ports: [port] }), slice()]))),
    ),
  );
  if (before === undefined || after === undefined) return t.fail();
  const { paths, worker, reload } = await startRendered(t, [before]);
  const { version } = worker.runtime.worker;
  const next = await reload([after]);
  t.not(next.runtime.worker.pid, worker.runtime.worker.pid);
  const said = async (): Promise<boolean> =>
    (await readFile(paths.log, 'utf8')).includes('Scheduling a soft-stop in 50 ms.');
  const goesOn = version.major < 3 || (version.major === 3 && version.minor < 1);
  // The old one ends all the same.
  for (const end = performance.now() + 10_000; performance.now() < end && isAlive(worker); ) await delay(20);
  t.false(isAlive(worker));
  t.is(await said(), goesOn);
});

function isAlive({ runtime }: { readonly runtime: { readonly worker: { readonly pid: number } } }): boolean {
  try {
    return process.kill(runtime.worker.pid, 0);
  } catch {
    return false;
  }
}
