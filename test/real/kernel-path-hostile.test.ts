// No hostile object gives a line that nft refuses, or one that the rules do not have.

import { ok, strictEqual } from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava from 'ava';
import fc from 'fast-check';
import { runCommand } from '../../agent/host/run-command.ts';
import { parseObject } from '../../agent/kubernetes/parse-object.ts';
import { transactionText } from '../../agent/nftables/command-text.ts';
import { elementChange } from '../../agent/nftables/elements.ts';
import { isForKernel, kernelListener } from '../../agent/nftables/kernel-listener.ts';
import { rulesText } from '../../agent/nftables/rules-file.ts';
import { requires } from '../support/basics/requirements.ts';
import { clusterOf } from '../support/values/build.ts';
import { hostileObjects } from '../support/values/hostile.ts';
import { translateCluster } from '../support/values/translated.ts';

const test = requires(ava, { root: true, programs: ['nft', 'unshare'] });

/** A transaction has only these characters and words. */
const LINE =
  /^(?:(?:add|delete) (?:counter|element) ip6? headgate\w*(?: l_[0-9a-f]{16}| \w+ \{ [0-9a-f.:/,\s]*(?:(?:udp|sctp|tcp|goto|flow_\d+|client_\d+|"l_[0-9a-f]{16}")[0-9a-f.:/,\s]*)* \})(?:; |$))*$/;

test('Hostile objects give only rules that nft accepts', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-hostile-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'rules.nft');
  let listeners = 0;
  const batches = fc.tuple(
    fc.array(hostileObjects, { minLength: 50, maxLength: 60 }),
    fc.constantFrom({ externalIPs: true, clusterIPs: true }, {
      members: 'nodes',
      handleUnclassed: true,
    } as const),
  );
  const property = fc.asyncProperty(batches, async ([batch, settings]) => {
    const objects = batch.flatMap((json) => parseObject(json, '').objects);
    const model = translateCluster(clusterOf(objects), settings);
    const kernel = [...model.loadBalancers.values()].flatMap((each) =>
      each.listeners.filter(isForKernel).map(kernelListener),
    );
    listeners += kernel.length;
    const fixed = { table: 'headgate', generation: '0'.repeat(16), anchors: ['10.9.0.1'], counts: new Map() };
    const sourceOf = (vip: string): string => (vip.includes(':') ? '' : '10.9.0.1');
    await writeFile(path, [...rulesText({ ...fixed, listeners: kernel, sourceOf })].join(''));
    const words = ['-n', 'nft', '-c', '-f', path];
    const { exitCode, stderr } = await runCommand('unshare', words, { timeout: 30_000 });
    strictEqual(exitCode, 0, stderr.slice(0, 1_000));
    for (const listener of kernel)
      for (const change of [elementChange(undefined, listener), elementChange(listener, undefined)]) {
        const text = transactionText('headgate', [change]);
        ok(LINE.test(text), text.slice(0, 500));
      }
  });
  const { failed, seed, counterexamplePath, errorInstance } = await fc.check(property, {
    numRuns: 30,
    endOnFailure: true,
  });
  t.false(failed, `Seed ${seed}, path ${counterexamplePath}: ${errorInstance}`);
  t.true(listeners > 30, `${listeners} come through`);
});
