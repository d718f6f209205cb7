import test from 'ava';
import { HeadgateError } from '../../../agent/base/errors.ts';
import type { Refusal, WorkerOutcome } from '../../../agent/haproxy/apply.ts';
import { outcomeOf } from '../../../agent/haproxy/outcome.ts';
import type { HaproxyPlan, ReloadReason } from '../../../agent/haproxy/plan.ts';
import type { Command } from '../../../agent/haproxy/socket/commands.ts';

const KEY = 'default/web';
const COMMAND: Command = { kind: 'SetServerState', backend: 'b', server: 's', state: 'ready' };
const REFUSED: readonly Refusal[] = [{ key: KEY, command: COMMAND, reply: 'No' }];
const DONE: WorkerOutcome = {
  acknowledged: [],
  refused: [],
  repaired: [],
  refusedCertificates: [],
  refusedRows: [],
  beyondRepair: [],
  lost: undefined,
};
const LOST = new HeadgateError('RUNTIME_CLOSED', 'Gone');

function plan(commands: readonly Command[], reload?: ReloadReason): HaproxyPlan {
  const effort = reload !== undefined ? 'reload' : commands.length > 0 ? 'runtime' : 'none';
  return { key: KEY, effort, commands, reload, unneededRows: new Map() };
}

for (const [what, given, outcome, acknowledged, pending] of [
  ['nothing to do', plan([]), {}, false, false],
  ['commands that HAProxy acknowledged', plan([COMMAND]), {}, true, false],
  ['a new listener', plan([], 'listener-added'), {}, false, true],
  ['a new listener and commands', plan([COMMAND], 'listener-added'), {}, true, true],
  ['a server that needs another id', plan([COMMAND], 'server-renumbered'), {}, true, true],
  ['commands and a reload for an option', plan([COMMAND], 'listener-changed'), {}, true, false],
  ['a lost connection', plan([COMMAND]), { lost: LOST }, false, true],
  [
    'a refused command that was repaired',
    plan([COMMAND]),
    { refused: REFUSED, repaired: ['b'] },
    true,
    false,
  ],
  ['a refused command beyond repair', plan([COMMAND]), { refused: REFUSED, beyondRepair: ['b'] }, true, true],
] as const) {
  const words = `${acknowledged ? '' : 'not '}acknowledged and ${pending ? '' : 'not '}pending`;
  test(`outcomeOf() of ${what} is ${words}`, (t) => {
    const { lost, ...keys } = outcomeOf([given], { ...DONE, ...outcome });
    t.deepEqual([keys.acknowledged.has(KEY), keys.pending.has(KEY)], [acknowledged, pending]);
    t.is(lost, 'lost' in outcome ? outcome.lost : undefined);
  });
}
