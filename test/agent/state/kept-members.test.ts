import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createLog } from '../../../agent/host/log.ts';
import { LastMembers } from '../../../agent/state/kept-members.ts';
import { emptyModel, type Model, translateChanged } from '../../../agent/translate/translate.ts';
import { clusterOf } from '../../support/values/build.ts';
import { type Json, parsedObject, serviceJson, sliceJson } from '../../support/values/kubernetes-json.ts';
import { membersOf, SETTINGS } from '../../support/values/translated.ts';

const KEY = 'default/web';
const NOT_READY = { conditions: { ready: false } };

/** An agent that has been started in this directory and has translated its first objects. */
async function started(stateDir: string, objects: readonly Json[], log: string[] = []) {
  const model = emptyModel();
  const destination = { write: (line: string) => log.push(line) };
  const options = {
    stateDir,
    model,
    log: createLog({ level: 'warn', format: 'json', destination }),
  };
  const last = new LastMembers(options);
  await last.read();
  translate(model, last, objects);
  return { model, last };
}

function translate(model: Model, last: LastMembers, objects: readonly Json[]): void {
  const keys = new Set([KEY]);
  translateChanged(clusterOf(objects.map(parsedObject)), model, keys, SETTINGS);
  last.note(keys);
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

test('An agent that starts while nothing is ready keeps the members of the one before it', async (t) => {
  const directory = folder(t);
  const first = await started(directory, [web(), endpoints('10.0.0.2', '10.0.0.1')]);
  const members = first.model.loadBalancers.get(KEY)?.listeners[0]?.pool.members;
  t.is(members?.length, 2);
  await first.last.close();

  const second = await started(directory, [web(), unready('10.0.0.1')]);
  t.deepEqual(second.model.loadBalancers.get(KEY)?.listeners[0]?.pool.members, members);
  await second.last.close();

  // And the one after it; once others are ready, those count.
  const third = await started(directory, [web(), unready('10.0.0.1')]);
  t.deepEqual(membersOf(third.model), ['10.0.0.1:8080 ready', '10.0.0.2:8080 ready']);
  translate(third.model, third.last, [web(), endpoints('10.0.0.3')]);
  t.deepEqual(membersOf(third.model), ['10.0.0.3:8080 ready']);
  t.is(third.model.remembered.size, 0);
  await third.last.close();
});

test('Members wait for a Service that has no address yet', async (t) => {
  const directory = folder(t);
  const first = await started(directory, [web(), endpoints('10.0.0.1')]);
  await first.last.close();
  const second = await started(directory, [web('keep-last', {}), unready('10.0.0.1')]);
  t.deepEqual(second.model.loadBalancers.get(KEY)?.listeners, []);
  translate(second.model, second.last, [web(), unready('10.0.0.1')]);
  t.deepEqual(membersOf(second.model), ['10.0.0.1:8080 ready']);
  await second.last.close();
});

test('Of other pools, and of Services that are gone, nothing is kept', async (t) => {
  const directory = folder(t);
  const first = await started(directory, [web('reject'), endpoints('10.0.0.1')]);
  await first.last.close();
  t.throws(() => readFileSync(join(directory, 'last-members')), { code: 'ENOENT' });
  translate(first.model, first.last, [web(), endpoints('10.0.0.1')]);
  await first.last.close();
  t.true(readFileSync(join(directory, 'last-members'), 'utf8').includes('10.0.0.1'));
  translate(first.model, first.last, []);
  await first.last.close();
  const second = await started(directory, [web(), unready('10.0.0.1')]);
  t.deepEqual(membersOf(second.model), []);
  await second.last.close();
});

test('A line that is none, or says what cannot be, costs only itself and is told of', async (t) => {
  const directory = folder(t);
  const good = { address: '10.0.0.1', port: 80, weight: 16, state: 'ready', target: '' };
  const line = (member: Json, service = KEY): string =>
    JSON.stringify({ service, pools: [{ listener: 'default:web:tcp:80:v4', members: [member] }] });
  for (const [text, said] of [
    ['{', 'JSON'],
    ['{"service":1,"pools":[]}', 'service'],
    [line({ ...good, address: '10.0.0.1 weight 0' }), 'address is not an IP address'],
    [line({ ...good, port: 0 }), 'port is not a whole number'],
  ] as const) {
    writeFileSync(join(directory, 'last-members'), `${text}\n${line(good, 'default/other')}\n`);
    const log: string[] = [];
    const { model, last } = await started(directory, [web(), unready('10.0.0.1')], log);
    t.deepEqual(membersOf(model), []);
    t.is(log.length, 1);
    t.true(log[0]?.includes(said), log[0]);
    t.is(model.remembered.get('default/other')?.size, 1);
    await last.close();
  }
});

test('A change of what others have writes nothing, and what could not be written is tried again', async (t) => {
  const directory = folder(t);
  const file = join(directory, 'last-members');
  const log: string[] = [];
  const { model, last } = await started(directory, [web(), endpoints('10.0.0.1')], log);
  mkdirSync(`${file}.tmp`);
  await last.close();
  t.is(log.length, 1);
  rmSync(`${file}.tmp`, { recursive: true });
  await last.close();
  const { ino } = statSync(file);
  translate(model, last, [web(), endpoints('10.0.0.1')]);
  await last.close();
  t.is(statSync(file).ino, ino);
  translate(model, last, [web(), endpoints('10.0.0.2')]);
  await last.close();
  t.not(statSync(file).ino, ino);
});
