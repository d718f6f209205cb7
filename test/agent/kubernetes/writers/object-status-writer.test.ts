import test from 'ava';
import { type CurrentObject, readCurrentObject } from '../../../../agent/kubernetes/current-object.ts';
import { ObjectStatusWriter } from '../../../../agent/kubernetes/writers/object-status-writer.ts';
import type { RouteStatus } from '../../../../agent/model/object-status.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { FakeApi, refusal } from '../../../support/kube/fake-api.ts';
import { routeJson } from '../../../support/values/gateways.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const NAME = 'HTTPRoute default/api';
const PATH = '/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes/api';

/** The route as translation gives it. */
const desired = (status: 'True' | 'False' = 'True', generation = 1): RouteStatus => ({
  kind: 'HTTPRoute',
  namespace: 'default',
  name: 'api',
  uid: 'uid-api',
  generation,
  parents: [
    {
      ref: { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'edge' },
      conditions: [{ type: 'Accepted', status, reason: 'Accepted', message: '' }],
    },
  ],
});

function start({ isLeading = true } = {}) {
  const api = new FakeApi();
  api.put(PATH, routeJson('api', [{ name: 'edge' }]));
  const clock = new FakeClock();
  let leads = isLeading;
  /** What the watch has shown. */
  let shown: CurrentObject | undefined;
  const watch = () => {
    shown = readCurrentObject(api.objects.get(PATH));
  };
  watch();
  const writer = new ObjectStatusWriter({
    api,
    clock,
    log: silentLog(),
    isLeader: () => leads,
    currentObject: (name) => (name === NAME ? shown : undefined),
  });
  const lead = (now: boolean) => {
    leads = now;
    writer.lead(now);
  };
  if (isLeading) lead(true);
  const patches = () => api.requests.filter(({ method }) => method === 'PATCH').length;
  const statusOf = () => api.objects.get(PATH).status?.parents?.[0]?.conditions[0]?.status;
  return { api, clock, writer, watch, lead, patches, statusOf };
}

test('ObjectStatusWriter writes a change once, and nothing when the watch shows its own write', async (t) => {
  const { clock, writer, watch, patches, statusOf } = start();
  writer.set(NAME, desired());
  await clock.advance(0);
  t.is(statusOf(), 'True');
  watch();
  writer.observed(NAME);
  for (let i = 0; i < 3; i++) writer.set(NAME, desired());
  await clock.advance(60_000);
  t.is(patches(), 1);
});

test('ObjectStatusWriter gathers changes for as long as it is told', async (t) => {
  const { clock, writer, patches, statusOf } = start();
  writer.set(NAME, desired('False'), 150);
  await clock.advance(100);
  writer.set(NAME, desired('True'), 150);
  t.is(patches(), 0);
  await clock.advance(50);
  t.deepEqual([patches(), statusOf()], [1, 'True']);
});

test('ObjectStatusWriter does not write for an older generation than the API shows', async (t) => {
  const { api, clock, writer, watch, patches, statusOf } = start();
  const route = api.objects.get(PATH);
  api.put(PATH, { ...route, metadata: { ...route.metadata, generation: 2 } });
  watch();
  writer.set(NAME, desired());
  await clock.advance(60_000);
  t.is(patches(), 0);
  writer.set(NAME, desired('True', 2));
  await clock.advance(0);
  t.is(statusOf(), 'True');
});

test('ObjectStatusWriter does not write to another object of the same name', async (t) => {
  const { api, clock, writer, watch, patches } = start();
  const route = api.objects.get(PATH);
  api.put(PATH, { ...route, metadata: { ...route.metadata, uid: 'uid-later' } });
  watch();
  writer.set(NAME, desired());
  await clock.advance(60_000);
  t.is(patches(), 0);
});

test('ObjectStatusWriter reads again after a conflict, and keeps the entry of the other writer', async (t) => {
  const { api, clock, writer, patches } = start();
  const foreign = { parentRef: { name: 'theirs' }, controllerName: 'example.org/x', conditions: [] };
  // The watch is late.
  api.put(PATH, { ...api.objects.get(PATH), status: { parents: [foreign] } });
  writer.set(NAME, desired());
  await clock.advance(0);
  t.is(patches(), 2);
  t.deepEqual(
    api.objects
      .get(PATH)
      .status.parents.map(({ controllerName }: { controllerName: string }) => controllerName),
    ['example.org/x', 'headgate.io/gateway-controller'],
  );
});

test('ObjectStatusWriter sends nothing before the agent leads, and writes then what another agent wrote', async (t) => {
  const { clock, writer, lead, patches, statusOf } = start({ isLeading: false });
  writer.set(NAME, desired());
  await clock.advance(60_000);
  t.is(patches(), 0);
  lead(true);
  await clock.advance(0);
  t.is(statusOf(), 'True');
});

test('ObjectStatusWriter does not repeat a status that the API server refuses', async (t) => {
  const { api, clock, writer, patches } = start();
  api.fault = ({ method }) => (method === 'PATCH' ? refusal(422, 'Invalid') : undefined);
  writer.set(NAME, desired());
  await clock.advance(600_000);
  t.is(patches(), 1);
  t.regex(writer.fault, /422/);
});
