import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createLog } from '../../../agent/host/log.ts';
import { RecordLog } from '../../../agent/host/record-log.ts';
import { Cluster } from '../../../agent/kubernetes/cluster.ts';
import { RecordedPorts } from '../../../agent/state/recorded-ports.ts';
import { service } from '../../support/values/build.ts';
import { FollowedState, listenerOf } from '../../support/values/translated.ts';

/** An agent that starts in this directory and reads these manifests. */
function started(stateDir: string, names: readonly string[], log: string[] = []) {
  const state = new FollowedState(new Cluster());
  const { desired } = state;
  const destination = { write: (line: string) => log.push(line) };
  const ports = new RecordedPorts({
    stateDir,
    desired,
    log: createLog({ level: 'warn', format: 'json', destination }),
  });
  ports.read();
  const upserted = names.map((name) => service({ name, created: Number.POSITIVE_INFINITY }));
  state.apply({ upserted, removed: [] }, 'manifests');
  ports.began(new Set(desired.loadBalancers.keys()));
  return { state, desired, ports };
}

function folder(t: ExecutionContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'headgate-ports-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  return directory;
}

test('A Service keeps its port over a restart against a manifest that came in the meantime', async (t) => {
  const directory = folder(t);
  const first = started(directory, ['web']);
  await first.ports.close();
  const second = started(directory, ['taken', 'web']);
  t.deepEqual(listenerOf(second.desired, 'default:web:tcp:80:v4').addresses, ['192.0.2.10']);
  t.deepEqual(listenerOf(second.desired, 'default:taken:tcp:80:v4').addresses, []);
  await second.ports.close();
});

test('A Service that is gone has no port after a restart', async (t) => {
  const directory = folder(t);
  const first = started(directory, ['web']);
  await first.ports.close();
  t.true(readFileSync(join(directory, 'last-ports'), 'utf8').includes('192.0.2.10'));
  first.state.apply({ upserted: [], removed: [{ kind: 'Service', key: 'default/web' }] }, 'manifests');
  first.ports.changed(new Set(['default/web']));
  await first.ports.close();
  const second = started(directory, ['taken', 'web']);
  t.deepEqual(listenerOf(second.desired, 'default:taken:tcp:80:v4').addresses, ['192.0.2.10']);
  await second.ports.close();
});

test('An invalid record of ports is left out and logged', async (t) => {
  const directory = folder(t);
  await new RecordLog(join(directory, 'last-ports')).write([
    ['default/web', '[{"address":"192.0.2.10","protocol":"TCP","port":0}]'],
  ]);
  const log: string[] = [];
  const { ports } = started(directory, ['web'], log);
  t.is(log.length, 1);
  t.true(log[0]?.includes('The last ports of a Service cannot be read'), log[0]);
  await ports.close();
});
