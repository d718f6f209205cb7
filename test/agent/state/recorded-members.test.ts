import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createLog } from '../../../agent/host/log.ts';
import { RecordLog } from '../../../agent/host/record-log.ts';
import { RecordedMembers } from '../../../agent/state/recorded-members.ts';
import { clusterOf } from '../../support/values/build.ts';
import { type Json, parsedObject, serviceJson, sliceJson } from '../../support/values/kubernetes-json.ts';
import { FollowedState, membersOf } from '../../support/values/translated.ts';

const KEY = 'default/web';
const NOT_READY = { conditions: { ready: false } };

/** An agent that has been started in this directory and has translated its first objects. */
async function started(stateDir: string, objects: readonly Json[], log: string[] = []) {
  const state = new FollowedState(clusterOf([]));
  const { desired } = state;
  const destination = { write: (line: string) => log.push(line) };
  const options = {
    stateDir,
    desired,
    log: createLog({ level: 'warn', format: 'json', destination }),
  };
  const last = new RecordedMembers(options);
  last.read();
  change(state, last, objects);
  return { state, desired, last };
}

/** These are all objects from now on. */
function change(state: FollowedState, last: RecordedMembers, objects: readonly Json[]): void {
  const upserted = objects.map(parsedObject);
  const removed = [...state.cluster.services(), ...state.cluster.slices(KEY)].filter(
    ({ kind, key }) => !upserted.some((each) => each.kind === kind && each.key === key),
  );
  state.apply({ upserted, removed });
  last.changed(new Set([KEY]));
}

function web(whenEmpty = 'keep-last', spec: Json = { loadBalancerIP: '192.0.2.1' }): Json {
  return serviceJson('web', {
    metadata: { annotations: { 'headgate.io/when-empty': whenEmpty } },
    spec: { loadBalancerClass: 'headgate.io/agent', ...spec },
  });
}

const endpoints = (...addresses: readonly string[]): Json => sliceJson('web', addresses);
const unready = (address: string): Json =>
  sliceJson('web', [], { endpoints: [{ addresses: [address], ...NOT_READY }] });

function folder(t: ExecutionContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'headgate-last-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  return directory;
}

test('An agent that starts without ready members keeps those of the agent before it', async (t) => {
  const directory = folder(t);
  const first = await started(directory, [web(), endpoints('10.0.0.2', '10.0.0.1')]);
  const members = first.desired.loadBalancers.get(KEY)?.listeners[0]?.pool.members;
  t.is(members?.length, 2);
  await first.last.close();

  const second = await started(directory, [web(), unready('10.0.0.1')]);
  t.deepEqual(second.desired.loadBalancers.get(KEY)?.listeners[0]?.pool.members, members);
  await second.last.close();

  // And the one after it; once others are ready, those count.
  const third = await started(directory, [web(), unready('10.0.0.1')]);
  t.deepEqual(membersOf(third.desired), ['10.0.0.1:8080 ready', '10.0.0.2:8080 ready']);
  change(third.state, third.last, [web(), endpoints('10.0.0.3')]);
  t.deepEqual(membersOf(third.desired), ['10.0.0.3:8080 ready']);
  t.is(third.desired.remembered.size, 0);
  await third.last.close();
});

test('Members wait for a Service that has no address yet', async (t) => {
  const directory = folder(t);
  const first = await started(directory, [web(), endpoints('10.0.0.1')]);
  await first.last.close();
  const second = await started(directory, [web('keep-last', {}), unready('10.0.0.1')]);
  t.deepEqual(second.desired.loadBalancers.get(KEY)?.listeners, []);
  change(second.state, second.last, [web(), unready('10.0.0.1')]);
  t.deepEqual(membersOf(second.desired), ['10.0.0.1:8080 ready']);
  await second.last.close();
});

test('Members of other pools, and of Services that are gone, are not kept', async (t) => {
  const directory = folder(t);
  const first = await started(directory, [web('reject'), endpoints('10.0.0.1')]);
  await first.last.close();
  t.throws(() => readFileSync(join(directory, 'last-members')), { code: 'ENOENT' });
  change(first.state, first.last, [web(), endpoints('10.0.0.1')]);
  await first.last.close();
  t.true(readFileSync(join(directory, 'last-members'), 'utf8').includes('10.0.0.1'));
  change(first.state, first.last, []);
  await first.last.close();
  const second = await started(directory, [web(), unready('10.0.0.1')]);
  t.deepEqual(membersOf(second.desired), []);
  await second.last.close();
});

test('An invalid record is left out and logged', async (t) => {
  const good = { address: '10.0.0.1', port: 80, weight: 16, state: 'ready', target: '' };
  const pools = (member: Json): string =>
    JSON.stringify([{ listener: 'default:web:tcp:80:v4', members: [member] }]);
  for (const [json, said] of [
    ['1', 'is not a list'],
    ['[{"listener":1,"members":[]}]', 'listener is not a text'],
    [pools({ ...good, address: '10.0.0.1 weight 0' }), 'address is not an IP address'],
    [pools({ ...good, port: 0 }), 'port is not a whole number'],
  ] as const) {
    const directory = folder(t);
    await new RecordLog(join(directory, 'last-members')).write([
      [KEY, json],
      ['default/other', pools(good)],
    ]);
    const log: string[] = [];
    const { desired, last } = await started(directory, [web(), unready('10.0.0.1')], log);
    t.deepEqual(membersOf(desired), []);
    t.is(log.length, 1);
    t.true(log[0]?.includes(said), log[0]);
    t.is(desired.remembered.get('default/other')?.size, 1);
    await last.close();
  }
});

test('A file of another version is logged, and written again', async (t) => {
  const directory = folder(t);
  writeFileSync(join(directory, 'last-members'), '{"service":"default/web","pools":[]}\n');
  const log: string[] = [];
  const first = await started(directory, [web(), endpoints('10.0.0.1')], log);
  t.is(log.length, 1);
  t.true(log[0]?.includes('1 lines of'), log[0]);
  await first.last.close();
  const second = await started(directory, [web(), unready('10.0.0.1')], log);
  t.deepEqual(membersOf(second.desired), ['10.0.0.1:8080 ready']);
  t.is(log.length, 1);
  await second.last.close();
});

test('A change of another pool writes nothing, and a failed write is retried', async (t) => {
  const directory = folder(t);
  const file = join(directory, 'last-members');
  const log: string[] = [];
  const { state, last } = await started(directory, [web(), endpoints('10.0.0.1')], log);
  mkdirSync(`${file}.tmp`);
  await last.close();
  t.is(log.length, 1);
  rmSync(`${file}.tmp`, { recursive: true });
  await last.close();
  const { mtimeMs } = statSync(file);
  change(state, last, [web(), endpoints('10.0.0.1')]);
  await last.close();
  t.is(statSync(file).mtimeMs, mtimeMs);
  change(state, last, [web(), endpoints('10.0.0.2')]);
  await last.close();
  t.true(readFileSync(file, 'utf8').includes('10.0.0.2'));
});
