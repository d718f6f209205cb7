import test from 'ava';
import type { BootedWorker } from '../../../../agent/haproxy/booted-worker.ts';
import { Ejector } from '../../../../agent/haproxy/ejection/ejector.ts';
import { BackendNames } from '../../../../agent/haproxy/socket/backend-names.ts';
import type { Command } from '../../../../agent/haproxy/socket/commands.ts';
import { allColumns } from '../../../../agent/haproxy/stats/columns.ts';
import { type Listener, type LoadBalancer, PLAIN_MONITOR } from '../../../../agent/model/load-balancer.ts';
import { FakeClock, settled } from '../../../support/basics/fake-clock.ts';
import { POOL, poolName, poolOf } from '../../../support/values/routes.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const MEMBERS = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80'];
const [FIRST = '', SECOND = ''] = MEMBERS;
const EJECTION = { after: 3, statuses: '500,502-504', share: 34 };

function webPool(service = 'web', members = MEMBERS, changes: Partial<Listener['pool']> = {}): LoadBalancer {
  return poolOf(service, members, { pool: { ...POOL, ejection: EJECTION, ...changes } });
}

const HEADER = `# pxname,svname,${allColumns.join(',')},status,check_status,mode,`;

function rigOf(...loadBalancers: readonly LoadBalancer[]) {
  const clock = new FakeClock();
  const desired = new Map(loadBalancers.map((each) => [each.key, each]));
  const sent: string[] = [];
  const results: string[] = [];
  /** Good answers of each member. */
  const good = new Map<string, number>();
  const workerOf = (): BootedWorker => {
    const send = async (commands: readonly Command[]) => {
      for (const command of commands)
        if ('server' in command) sent.push(`${command.kind} ${command.backend}/${command.server}`);
      return commands.map(() => ({ ok: true }));
    };
    const ask = async () => '';
    const askAll = async (questions: readonly string[]) =>
      questions.map((question) => {
        const [, , backend, , id] = question.split(' ');
        const members = [...desired.values()].flatMap(({ listeners }) => listeners[0]?.pool.members ?? []);
        const name = members.find((member) => String(member.id) === id)?.name ?? '';
        const numbers = allColumns.map((column) => (column === 'hrsp_2xx' ? (good.get(name) ?? 0) : 0));
        return question.startsWith('show stat')
          ? `${HEADER}\n${backend},${name},${numbers.join(',')},UP,,http,`
          : '';
      });
    return {
      runtime: { send, ask, askAll, names: new BackendNames() },
      running: { has: () => true },
    } as unknown as BootedWorker;
  };
  const ejector = new Ejector({
    desired,
    checkResults: new Map(),
    certificates: '/certificates',
    onChanged: () => undefined,
    onEjected: (result) => void results.push(result),
    log: silentLog(),
    clock,
  });
  const put = (loadBalancer: LoadBalancer): void => {
    desired.set(loadBalancer.key, loadBalancer);
    ejector.changed([loadBalancer.key]);
  };
  ejector.changed(desired.keys());
  ejector.serve(workerOf());
  const fail = async (
    member: string,
    times: number,
    ended = '-- 500',
    backend = poolName('web'),
  ): Promise<void> => {
    for (let at = 0; at < times; at++) {
      ejector.line(`headgate ${backend} ${member} ${ended}`);
      await settled();
    }
  };
  const rests = (member: string, service = 'web'): boolean =>
    ejector.causeOf(poolName(service), member) !== '';
  const probe = (member: string, state: 'UP' | 'DOWN'): void =>
    ejector.line(`Server headgate:probes/default:${member} is ${state}, reason: a check`);
  return { ejector, clock, sent, results, good, put, fail, rests, probe, workerOf };
}

const DOWN = `AssumeFailure ${poolName('web')}/${FIRST}`;
const UP = `AssumeHealth ${poolName('web')}/${FIRST}`;

test('Ejector lets a member rest after three errors in a row, and probes it', async (t) => {
  const { fail, rests, sent, results, ejector } = rigOf(webPool());
  await fail(FIRST, 2);
  t.false(rests(FIRST));
  await fail(FIRST, 1, 'sH 504');
  t.true(rests(FIRST));
  t.deepEqual(results, ['rested']);
  const probe = `headgate:probes/default:${FIRST}`;
  t.deepEqual(sent, [
    DOWN,
    `AddServer ${probe}`,
    `SetServerState ${probe}`,
    `AssumeFailure ${probe}`,
    `EnableHealth ${probe}`,
  ]);
  t.is(
    ejector.causeOf(poolName('web'), FIRST),
    'it rests, because of 3 errors in a row: it did not answer in time',
  );
});

test('Ejector counts errors over all pools of a member, by the strictest of them, and lets it rest in all', async (t) => {
  const other = { ...EJECTION, after: 5, statuses: '501' };
  const { fail, rests, sent } = rigOf(webPool(), webPool('other', MEMBERS, { ejection: other }));
  await fail(FIRST, 2);
  await fail(FIRST, 1, '-- 501');
  t.true(rests(FIRST) && rests(FIRST, 'other'));
  t.true(sent.includes(DOWN) && sent.includes(`AssumeFailure ${poolName('other')}/${FIRST}`));
});

test('Ejector begins to count again after a good answer', async (t) => {
  const { fail, rests, good } = rigOf(webPool());
  await fail(FIRST, 2);
  good.set(FIRST, 1);
  await fail(FIRST, 1);
  t.false(rests(FIRST));
  await fail(FIRST, 1);
  t.false(rests(FIRST));
  await fail(FIRST, 1);
  t.true(rests(FIRST));
});

test('Ejector brings a member back when it has rested and a probe has passed, and lets it rest longer the next time', async (t) => {
  const { fail, rests, clock, sent, probe } = rigOf(webPool());
  await fail(FIRST, 3);
  probe(FIRST, 'UP');
  t.true(rests(FIRST), 'it has not rested');
  probe(FIRST, 'DOWN');
  await clock.advance(500);
  t.true(rests(FIRST), 'the last probe failed');
  probe(FIRST, 'UP');
  t.false(rests(FIRST));
  t.true(sent.includes(UP) && sent.includes(`DeleteServer headgate:probes/default:${FIRST}`));

  await fail(FIRST, 3);
  probe(FIRST, 'UP');
  await clock.advance(999);
  t.true(rests(FIRST));
  await clock.advance(1);
  t.false(rests(FIRST));
  t.is(sent.filter((each) => each === UP).length, 2);
});

test('Ejector tries a member whose probes fail after a minute', async (t) => {
  const { fail, rests, clock } = rigOf(webPool());
  await fail(FIRST, 3);
  await clock.advance(59_999);
  t.true(rests(FIRST));
  await clock.advance(1);
  t.false(rests(FIRST));
});

test('Ejector lets no second of three members rest, and no only one', async (t) => {
  const { fail, rests, results, put } = rigOf(webPool());
  await fail(FIRST, 3);
  await fail(SECOND, 3);
  t.true(rests(FIRST));
  t.false(rests(SECOND));
  t.deepEqual(results, ['rested', 'kept']);
  put(webPool('web', [FIRST]));
  t.false(rests(FIRST));
});

test('Ejector leaves the return of a member with a health monitor to the monitor', async (t) => {
  const monitor = {
    type: 'tcp',
    ...PLAIN_MONITOR,
    interval: 5_000,
    timeout: 3_000,
    rise: 2,
    fall: 3,
    port: 0,
  } as const;
  const { fail, rests, clock, sent } = rigOf(webPool('web', MEMBERS, { monitor }));
  await fail(FIRST, 3);
  t.deepEqual(sent, [DOWN]);
  await clock.advance(500);
  t.false(rests(FIRST));
  t.deepEqual(sent, [DOWN]);
});

test('Ejector tells the next worker which members rest, and brings them back at its end', async (t) => {
  const { fail, rests, sent, ejector, workerOf } = rigOf(webPool());
  await fail(FIRST, 3);
  sent.length = 0;
  ejector.serve(workerOf());
  await settled();
  t.true(rests(FIRST));
  t.is(sent[0], DOWN);
  sent.length = 0;
  await ejector.close();
  t.is(sent[0], UP);
});

test('Ejector forgets a member that is removed, and brings one back that drains', async (t) => {
  const { fail, rests, sent, put } = rigOf(webPool());
  await fail(FIRST, 3);
  put(webPool('web', MEMBERS.slice(1)));
  t.false(rests(FIRST));
  t.false(sent.includes(UP));
  await fail(FIRST, 3);
  t.false(rests(FIRST), 'it has no place any more');
  put(webPool());
  await fail(FIRST, 3);
  t.true(rests(FIRST));
  const [listener] = webPool().listeners;
  const members = listener?.pool.members.map((each) =>
    each.name === FIRST ? { ...each, state: 'drain' as const } : each,
  );
  const draining = { ...listener, pool: { ...listener?.pool, members } } as Listener;
  put({ ...webPool(), listeners: [draining] });
  t.false(rests(FIRST));
});

test('Ejector counts each namespace for itself, so that no other one lets a member rest', async (t) => {
  const strict = webPool('web', MEMBERS, { ejection: { after: 1, statuses: '500', share: 99 } });
  const foreign: LoadBalancer = { ...strict, key: strict.key.replace('default', 'evil'), namespace: 'evil' };
  const name = poolName('web').replace('default', 'evil');
  const listeners = strict.listeners.map((each) => ({ ...each, name }));
  const { fail, rests, sent } = rigOf(webPool(), { ...foreign, listeners });
  await fail(FIRST, 5, '-- 500', name);
  t.false(rests(FIRST));
  t.true(sent.includes(`AssumeFailure ${name}/${FIRST}`));
  t.false(sent.includes(DOWN));
  await fail(FIRST, 3);
  t.true(rests(FIRST));
});
