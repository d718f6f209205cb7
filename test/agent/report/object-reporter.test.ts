import test from 'ava';
import type { CurrentObject } from '../../../agent/kubernetes/current-object.ts';
import type { Service } from '../../../agent/kubernetes/objects.ts';
import { emptyDesiredState } from '../../../agent/model/desired-state.ts';
import type { Problem } from '../../../agent/model/load-balancer.ts';
import type {
  GatewayStatus,
  IngressStatus,
  ObjectStatus,
  RouteStatus,
} from '../../../agent/model/object-status.ts';
import { ObjectReporter } from '../../../agent/report/object-reporter.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';
import { loadBalancer } from '../../support/values/load-balancers.ts';

const LISTENER = 'gateway:default:edge:tcp:80:v4';
const subject = { namespace: 'default', name: 'edge', uid: 'u-edge', generation: 1 };

const gateway: GatewayStatus = {
  kind: 'Gateway',
  ...subject,
  conditions: [{ type: 'Accepted', status: 'True', reason: 'Accepted', message: '' }],
  programmedBy: [LISTENER],
  addresses: ['192.0.2.1'],
  listeners: [
    { name: 'http', supportedKinds: [], attachedRoutes: 0, conditions: [], programmedBy: [LISTENER] },
  ],
  attachedListenerSets: 0,
};
const route = (parent: string, generation = 1): RouteStatus => ({
  kind: 'HTTPRoute',
  ...subject,
  name: 'api',
  uid: 'u-api',
  generation,
  parents: [{ ref: { name: parent }, conditions: [] }],
});

function start() {
  const desired = emptyDesiredState();
  const clock = new FakeClock();
  const written = new Map<string, ObjectStatus | undefined>();
  const delays = new Map<string, number>();
  const events: string[] = [];
  const served = new Set<string>();
  const problems: Problem[] = [];
  const place = { isKept: true, isOfManifest: false, old: [] as readonly string[] };
  let lead: (leads: boolean) => void = () => undefined;
  const current = ({ name }: { readonly name: string }): CurrentObject => ({
    namespace: 'default',
    name,
    uid: `u-${name}`,
    resourceVersion: '1',
    generation: 1,
    status: '{}',
  });
  const leadsOf: ((leads: boolean) => void)[] = [];
  const reporter = new ObjectReporter({
    clock,
    writers: {
      objects: {
        set: (name: string, status: ObjectStatus | undefined, delayMs = 0) => {
          written.set(name, status);
          delays.set(name, delayMs);
        },
      } as never,
      events: {
        waiting: 0,
        record: ({ kind, name }: { kind: string; name: string }, { note }: { note: string }) =>
          events.push(`${kind} ${name}: ${note}`),
      } as never,
      onLeader: (callback) => leadsOf.push(callback),
    },
    cluster: {
      isOfManifest: () => place.isOfManifest,
      service: (key) => (key === 'default/web' ? ({ uid: 'u-web' } as Service) : undefined),
      ingressClass: () => undefined,
    },
    desired,
    dataplane: {
      served: () => undefined,
      serves: (listener) => served.has(listener),
      servesElsewhere: () => false,
      members: () => new Map(),
      problemsOf: () => problems,
    },
    announcer: undefined,
    operating: { problemsOf: () => [] },
    isKept: () => place.isKept,
    currentObject: (name) => current({ name: name.split('/')[1] ?? '' }),
    withOwnEntries: () => place.old,
  });
  lead = (leads) => {
    for (const callback of leadsOf) callback(leads);
  };
  const give = (owner: string, ...statuses: readonly ObjectStatus[]) => {
    desired.statuses.update(owner, statuses);
    reporter.changed([owner]);
  };
  const programmed = () => {
    const status = written.get('Gateway default/edge') as GatewayStatus | undefined;
    return [status, ...(status?.listeners ?? [])].map((each) =>
      each?.conditions.find(({ type }) => type === 'Programmed'),
    );
  };
  return {
    desired,
    clock,
    written,
    delays,
    events,
    served,
    problems,
    place,
    lead,
    reporter,
    give,
    programmed,
  };
}

test('A Gateway is programmed once the dataplane serves its listeners, and its status waits for that', (t) => {
  const { reporter, give, programmed, delays, served } = start();
  give('gateway:default/edge', gateway);
  t.deepEqual(
    programmed().map((each) => [each?.status, each?.reason]),
    [
      ['False', 'Pending'],
      ['False', 'Pending'],
    ],
  );
  const pending = delays.get('Gateway default/edge') ?? 0;
  served.add(LISTENER);
  reporter.changed(['gateway:default/edge']);
  t.deepEqual(
    programmed().map((each) => [each?.status, each?.reason]),
    [
      ['True', 'Programmed'],
      ['True', 'Programmed'],
    ],
  );
  t.true((delays.get('Gateway default/edge') ?? 0) < pending);
});

test('A Gateway that the dataplane refuses says why', (t) => {
  const { desired, give, programmed, problems } = start();
  desired.loadBalancers.set('gateway:default/edge', loadBalancer([], 'gateway:default/edge'));
  problems.push({ object: 'Gateway default/edge', reason: 'AddressUnavailable', message: 'Cannot bind' });
  give('gateway:default/edge', gateway);
  t.like(programmed()[0], { status: 'False', reason: 'AddressUnavailable', message: 'Cannot bind' });
});

test('An address is not published before its claim is stored', (t) => {
  const { give, reporter, written, served, place } = start();
  served.add(LISTENER);
  place.isKept = false;
  const ingress: IngressStatus = {
    kind: 'Ingress',
    ...subject,
    addresses: ['192.0.2.2'],
    ports: [80],
    programmedBy: [LISTENER],
  };
  give('gateway:default/edge', gateway);
  give('ingress:-/edge', ingress);
  const addresses = () =>
    ['Gateway default/edge', 'Ingress default/edge'].map(
      (name) => (written.get(name) as GatewayStatus | undefined)?.addresses,
    );
  t.deepEqual(addresses(), [[], undefined]);
  place.isKept = true;
  reporter.changed(['gateway:default/edge', 'ingress:-/edge']);
  t.deepEqual(addresses(), [['192.0.2.1'], ['192.0.2.2']]);
});

test('A route has the entries of all its Gateways, and loses them with these', (t) => {
  const { give, written } = start();
  const parents = () =>
    (written.get('HTTPRoute default/api') as RouteStatus).parents.map(({ ref }) => ref.name);
  give('gateway:default/inner', route('inner'));
  give('gateway:default/outer', route('outer', 2));
  t.deepEqual(parents(), ['inner', 'outer']);
  t.is(written.get('HTTPRoute default/api')?.generation, 2);
  give('gateway:default/inner');
  t.deepEqual(parents(), ['outer']);
  give('gateway:default/outer');
  t.deepEqual(parents(), []);
});

test('An object of a manifest gets no status', (t) => {
  const { give, written, place } = start();
  place.isOfManifest = true;
  give('gateway:default/edge', gateway, route('edge'));
  t.is(written.size, 0);
});

test('Entries of an agent that ran before go after the start, those of today stay', async (t) => {
  const { give, written, clock, lead, reporter, place } = start();
  place.old = ['HTTPRoute default/api', 'BackendTLSPolicy default/old', 'TCPRoute default/db'];
  lead(true);
  await clock.advance(60_000);
  t.is(written.size, 0, 'No object is translated yet');
  give('gateway:default/edge', route('edge'));
  reporter.began();
  await clock.advance(5_000);
  t.is((written.get('HTTPRoute default/api') as RouteStatus).parents.length, 1);
  t.like(written.get('TCPRoute default/db'), { uid: 'u-db', parents: [] });
  t.like(written.get('BackendTLSPolicy default/old'), { uid: 'u-old', ancestors: [] });
});

test('A problem of a route becomes an Event on the route, once', async (t) => {
  const { desired, clock, events, lead, reporter } = start();
  lead(true);
  await clock.advance(10_000);
  const key = 'gateway:default/edge';
  const problem: Problem = {
    object: 'HTTPRoute default/api',
    reason: 'RouteShadowed',
    message: 'It is hidden',
  };
  desired.loadBalancers.set(key, { ...loadBalancer([], key), problems: [problem] });
  reporter.changed([key]);
  reporter.changed([key]);
  t.deepEqual(events, ['HTTPRoute api: It is hidden']);
});

test('A problem of a pool becomes an Event on its Service', async (t) => {
  const { desired, clock, events, lead, reporter } = start();
  lead(true);
  await clock.advance(10_000);
  const key = 'pool:default/web.tcp';
  const problem: Problem = {
    object: 'Pool default/web.tcp',
    reason: 'AllMembersDown',
    message: 'All are down',
  };
  desired.loadBalancers.set(key, { ...loadBalancer([], key), problems: [problem] });
  reporter.changed([key]);
  t.deepEqual(events, ['Service web: All are down']);
});

test('An object of the API that cannot be read gets an Event, once', async (t) => {
  const { reporter, events, clock, lead } = start();
  lead(true);
  await clock.advance(10_000);
  const refused = (name: string): Problem => ({
    object: `HTTPRoute default/${name}`,
    reason: 'InvalidObject',
    message: `HTTPRoute default/${name}: spec.rules: 7 is not a list`,
  });
  reporter.refused([refused('api')]);
  reporter.refused([refused('api'), refused('web')]);
  reporter.refused([refused('web'), { ...refused('x'), object: 'EndpointSlice default/x' }]);
  t.deepEqual(events, [
    'HTTPRoute api: HTTPRoute default/api: spec.rules: 7 is not a list',
    'HTTPRoute web: HTTPRoute default/web: spec.rules: 7 is not a list',
  ]);
  reporter.refused([]);
  reporter.refused([refused('api')]);
  t.is(events.length, 3, 'it was good in between');
});
