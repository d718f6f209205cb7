import test from 'ava';
import type { BootedWorker } from '../../../../agent/haproxy/booted-worker.ts';
import type { Command } from '../../../../agent/haproxy/socket/commands.ts';
import type { Runtime } from '../../../../agent/haproxy/socket/runtime.ts';
import { LogNames } from '../../../../agent/haproxy/worker/log-names.ts';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { endpoint, service, slice } from '../../../support/values/build.ts';
import { silentLog } from '../../../support/values/silent-log.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

test('LogNames sends the words and all names to a new worker, and then what a change adds', (t) => {
  const rig = rigOf({ web: ['10.0.0.1'] });
  rig.names.changed(['default/web']);
  t.is(rig.sent[0], 'ClearMap');
  t.true(rig.sent.includes('AddMapEntry C@by client'));
  t.is(rig.sent.at(-1), `AddMapEntry ${keyOf('10.0.0.1')} pod-of-10.0.0.1`);

  rig.sent.length = 0;
  rig.names.changed(['default/web']);
  t.deepEqual(rig.sent, []);
  rig.serve({ web: ['10.0.0.1', '10.0.0.2'] });
  rig.names.changed(['default/web']);
  t.deepEqual(rig.sent, [`AddMapEntry ${keyOf('10.0.0.2')} pod-of-10.0.0.2`]);
});

test('LogNames keeps the names of members that are gone, and replaces that of an address with another pod', (t) => {
  const rig = rigOf({ web: ['10.0.0.1'] });
  rig.names.changed([]);
  rig.sent.length = 0;
  rig.serve({ web: [] });
  rig.names.changed(['default/web']);
  t.deepEqual(rig.sent, []);
  rig.serve({ web: ['10.0.0.1'] }, 'another-');
  rig.names.changed(['default/web']);
  t.deepEqual(rig.sent, [`SetMapEntry ${keyOf('10.0.0.1')} another-10.0.0.1`]);
});

test('LogNames sends nothing without a connection log, and all names again after a reload without a plan', async (t) => {
  const rig = rigOf({ web: ['10.0.0.1'] }, 'none');
  rig.names.start();
  await rig.clock.advance(1_000);
  t.deepEqual(rig.sent, []);
  rig.serve({ web: ['10.0.0.1'] });
  rig.replace();
  await rig.clock.advance(1_000);
  t.is(rig.sent.at(-1), `AddMapEntry ${keyOf('10.0.0.1')} pod-of-10.0.0.1`);
  rig.sent.length = 0;
  await rig.clock.advance(1_000);
  t.deepEqual(rig.sent, []);
  rig.names.close();
});

test('LogNames begins with an empty map again if too many names are of members that are gone', (t) => {
  const rig = rigOf({ web: [] });
  rig.names.changed([]);
  t.true(rig.sent.includes('AddMapEntry C@by client'), 'The words do not depend on pods');
  rig.sent.length = 0;
  const generations = 11;
  for (let generation = 0; generation < generations; generation++) {
    rig.serve({ web: Array.from({ length: 1_000 }, (_, at) => `10.${generation}.${at >> 8}.${at & 255}`) });
    rig.names.changed(['default/web']);
  }
  t.is(rig.sent.filter((each) => each === 'ClearMap').length, 0);
  rig.serve({ web: ['10.0.0.1'] });
  rig.names.changed(['default/web']);
  rig.names.changed(['default/web']);
  t.is(rig.sent.filter((each) => each === 'ClearMap').length, 1);
  t.is(rig.sent.at(-1), `AddMapEntry ${keyOf('10.0.0.1')} pod-of-10.0.0.1`);
});

function keyOf(address: string): string {
  return `${address}:8080@pod@default:web:tcp:80:v4`;
}

function rigOf(members: Readonly<Record<string, readonly string[]>>, log: 'none' | 'all' = 'all') {
  const sent: string[] = [];
  const desired = new Map<string, LoadBalancer>();
  const clock = new FakeClock();
  const send = async (commands: readonly Command[]) => {
    for (const command of commands)
      sent.push(
        'key' in command && 'value' in command
          ? `${command.kind} ${command.key} ${command.value}`
          : command.kind,
      );
    return [];
  };
  const workerOf = (): BootedWorker =>
    ({ runtime: { send } as unknown as Runtime, booted: new Map(desired) }) as unknown as BootedWorker;
  const serve = (of: typeof members, prefix = 'pod-of-', logs: typeof log = 'all'): void => {
    for (const [name, addresses] of Object.entries(of)) {
      const endpoints = addresses.map((address) => endpoint(address, { target: `Pod/${prefix}${address}` }));
      const objects = [service({ name }), slice({ serviceName: name, endpoints })];
      desired.set(`default/${name}`, loadBalancerOf(translated(objects, { connectionLog: logs })));
    }
  };
  serve(members, 'pod-of-', log);
  let worker = workerOf();
  const names = new LogNames({ worker: () => worker, desired, log: silentLog(), clock });
  const replace = (): void => {
    worker = workerOf();
  };
  return { names, sent, serve, clock, replace };
}
