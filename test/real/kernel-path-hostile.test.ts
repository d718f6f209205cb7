// No hostile object gives a line that nft refuses, or one that the rules do not have.

import { ok, strictEqual } from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava from 'ava';
import fc from 'fast-check';
import { runCommand } from '../../agent/host/run-command.ts';
import { parseObject } from '../../agent/kubernetes/parse-object.ts';
import type { Listener } from '../../agent/model/load-balancer.ts';
import type { SourceGroups } from '../../agent/model/source-groups.ts';
import { transactionText } from '../../agent/nftables/rules/command-text.ts';
import { elementChange } from '../../agent/nftables/rules/elements.ts';
import { isForKernel, kernelListener } from '../../agent/nftables/rules/kernel-listener.ts';
import { rulesText } from '../../agent/nftables/rules/rules-file.ts';
import { SharedElements } from '../../agent/nftables/rules/shared-elements.ts';
import { requires } from '../support/basics/requirements.ts';
import { nftExecutable } from '../support/host/nft.ts';
import { clusterOf } from '../support/values/build.ts';
import { hostileObjects } from '../support/values/hostile.ts';
import { webObjects } from '../support/values/service-objects.ts';
import { translateCluster } from '../support/values/translated.ts';

const test = requires(ava, { root: true, programs: ['nft', 'unshare'] });

/** A transaction has only these characters and words. */
const LINE =
  /^(?:(?:add|delete) element ip6? headgate\w* \w+ \{ [0-9a-f.:/,\s]*(?:(?:udp|sctp|tcp|goto (?:(?:flow|client|affinity)_\d+|affinity)|goto (?:from_51|for_\d+)|original|reply)[0-9a-f.:/,\s]*)* \}(?:; |$))*$/;

const SOURCES: SourceGroups = {
  groups: [{ id: 51, addresses: ['10.9.0.1', '10.9.0.2', 'fd09::1'] }],
  groupOf: (vip) => (vip.startsWith('2') ? 0 : 51),
};

/** A Service with a ready member beside the others, so that there is always one. */
const HARMLESS = webObjects({
  name: 'harmless',
  address: '192.0.2.77',
  members: ['10.0.0.77'],
  annotations: { members: 'pods' },
  spec: { loadBalancerClass: 'headgate.io/agent' },
});

test('Hostile objects give only rules that nft accepts', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-hostile-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'rules.nft');
  let listeners = 0;
  let answers = 0;
  const batches = fc.tuple(
    fc.array(hostileObjects, { minLength: 50, maxLength: 60 }),
    fc.constantFrom({ externalIPs: true, clusterIPs: true }, {
      members: 'nodes',
      handleUnclassed: true,
    } as const),
    fc.boolean(),
  );
  const property = fc.asyncProperty(batches, async ([batch, settings, isGateway]) => {
    const objects = [...batch, ...HARMLESS].flatMap((json) => parseObject(json, '').objects);
    const model = translateCluster(clusterOf(objects), settings);
    const kernel = [...model.loadBalancers.values()].flatMap((each) =>
      each.listeners
        .map((listener) => (isGateway ? inGatewayMode(listener) : listener))
        .filter(isForKernel)
        .map(kernelListener),
    );
    listeners += kernel.length;
    const fixed = {
      table: 'headgate',
      generation: '0'.repeat(16),
      counts: new Map(),
      countsTraffic: true,
      knowsSockets: true,
    };
    await writeFile(path, [...rulesText({ ...fixed, listeners: kernel, sources: SOURCES })].join(''));
    const words = ['-n', nftExecutable, '-c', '-f', path];
    const { exitCode, stderr } = await runCommand('unshare', words, { timeout: 30_000 });
    strictEqual(exitCode, 0, stderr.slice(0, 1_000));
    const shared = new SharedElements(SOURCES.groupOf);
    for (const listener of kernel)
      for (const change of [
        { before: undefined, after: listener },
        { before: listener, after: undefined },
      ]) {
        const elements = elementChange(change.before, change.after);
        const text = transactionText('headgate', [shared.change([change]), elements]);
        ok(LINE.test(text), text.slice(0, 500));
        if (text.includes(' answers {')) answers++;
      }
  });
  const { failed, seed, counterexamplePath, errorInstance } = await fc.check(property, {
    numRuns: 30,
    endOnFailure: true,
  });
  t.false(failed, `Seed ${seed}, path ${counterexamplePath}: ${errorInstance}`);
  t.true(listeners > 30, `${listeners} come through`);
  t.true(answers > 10, `${answers} changes of members that see the clients' addresses`);
});

/** Also HAProxy's, so that there are many of TCP. */
function inGatewayMode(listener: Listener): Listener {
  return { ...listener, engine: 'kernel', sourceAddress: 'client' };
}
