import { spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { RunningAgent } from '../host/agent.ts';
import { activeResources, INSPECTED, liveHeap, setTimers } from './live-heap.ts';

/** A process that runs this script instead of an agent. */
async function running(script: string): Promise<RunningAgent> {
  const agent = new RunningAgent(
    spawn(process.execPath, ['-e', `${script}; console.log('is set up'); setInterval(() => 0, 1e6)`], {
      env: { ...process.env, ...INSPECTED },
    }),
  );
  while (!agent.text.includes('is set up') && !agent.hasExited) await delay(10);
  return agent;
}

test('setTimers() counts unreferenced timers, and no timer that has ended', async (t) => {
  const own = await running('');
  t.teardown(() => own.kill());
  const leaking = await running(`
    for (let at = 0; at < 3; at++) setInterval(() => 0, 1e6).unref();
    const held = setTimeout(() => 0, 1e6);
    clearTimeout(held);
    globalThis.held = held;
    clearTimeout(setTimeout(() => 0, 1e6));`);
  t.teardown(() => leaking.kill());
  t.is((await setTimers(leaking)) - (await setTimers(own)), 3);
  t.is((await activeResources(leaking)).get('Timeout'), (await activeResources(own)).get('Timeout'));
});

test('liveHeap() counts live objects and no garbage', async (t) => {
  const own = await running('Array.from({ length: 2e6 }, (_, at) => ({ at }))');
  t.teardown(() => own.kill());
  const leaking = await running('globalThis.held = Array.from({ length: 1e5 }, (_, at) => ({ at }))');
  t.teardown(() => leaking.kill());
  const more = (await liveHeap(leaking)) - (await liveHeap(own));
  t.true(more > 1e6 && more < 6e6, `${more} bytes`);
});
