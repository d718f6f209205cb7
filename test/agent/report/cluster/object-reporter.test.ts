import test from 'ava';
import type { CurrentObject } from '../../../../agent/kubernetes/current-object.ts';
import type { Service } from '../../../../agent/kubernetes/objects.ts';
import { emptyDesiredState } from '../../../../agent/model/desired-state.ts';
import type { Problem } from '../../../../agent/model/load-balancer.ts';
import type {
  GatewayStatus,
  IngressStatus,
  ObjectStatus,
  RouteStatus,
} from '../../../../agent/model/object-status.ts';
import { ObjectReporter } from '../../../../agent/report/cluster/object-reporter.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { service, slice } from '../../../support/values/build.ts';
import { loadBalancer } from '../../../support/values/load-balancers.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

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
  const place = {
    isKept: true,
    unready: false,
    isOfManifest: false,
    old: [] as readonly string[],
    /** What the API shows of each object. */
    shown: {} as Partial<CurrentObject>,
  };
  let lead: (leads: boolean) => void = () => undefined;
  const current = ({ name }: { readonly name: string }): CurrentObject => ({
    namespace: 'default',
    name,
    uid: `u-${name}`,
    resourceVersion: '1',
    generation: 1,
    status: '{}',
    ...place.shown,
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
      isLeftOut: () => false,
      service: (key) => (key === 'default/web' ? ({ uid: 'u-web' } as Service) : undefined),
      ingressClass: () => undefined,
    },
    desired,
    dataplane: {
      served: () => undefined,
      serves: (listener) => served.has(listener),
      servesElsewhere: () => false,
      members: () => new Map(),
      failures: () => undefined,
      problemsOf: () => problems,
    },
    reach: undefined,
    operating: { problemsOf: () => [] },
    publishing: { isKept: () => place.isKept, unready: () => place.unready },
    currentObject: (name) => current({ name: name.split('/')[1] ?? '' }),
    withOwnEntries: () => place.old,
  });
  // What publishes addresses: the listener at both of them.
  for (const [key, address] of [
    ['gateway:default/edge', '192.0.2.1'],
    ['ingress:-/edge', '192.0.2.2'],
  ] as const) {
    const [listener] = loadBalancerOf(translated([service(), slice({ endpoints: ['10.0.0.1'] })])).listeners;
    const vips = [{ address, family: 'v4', source: 'pool' }] as const;
    const listeners = listener === undefined ? [] : [{ ...listener, name: LISTENER, addresses: [address] }];
    desired.loadBalancers.set(key, { ...loadBalancer([], key), vips, listeners });
  }
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

test('A Gateway shows an address once it is served, keeps it during a fault, and shows it at once with publishUnready', (t) => {
  const { give, reporter, written, served, place } = start();
  const shown = () => (written.get('Gateway default/edge') as GatewayStatus | undefined)?.addresses;
  give('gateway:default/edge', gateway);
  t.deepEqual(shown(), []);
  served.add(LISTENER);
  reporter.changed(['gateway:default/edge']);
  t.deepEqual(shown(), ['192.0.2.1']);
  served.delete(LISTENER);
  const addresses = JSON.stringify({ addresses: [{ type: 'IPAddress', value: '192.0.2.1' }] });
  place.shown = { status: addresses, hasOwnAddresses: true };
  for (const isKept of [true, false]) {
    place.isKept = isKept;
    reporter.changed(['gateway:default/edge']);
    t.deepEqual(shown(), ['192.0.2.1'], 'clients know it');
  }
  place.isKept = true;
  place.shown = { status: addresses };
  reporter.changed(['gateway:default/edge']);
  t.deepEqual(shown(), [], 'another controller has written it');
  place.unready = true;
  reporter.changed(['gateway:default/edge']);
  t.deepEqual(shown(), ['192.0.2.1']);
});

test('An Ingress shows its former address until the next one is served, but not for long', (t) => {
  const { give, written, delays, place } = start();
  const name = 'Ingress default/edge';
  const ingress: IngressStatus = {
    kind: 'Ingress',
    ...subject,
    addresses: ['192.0.2.2'],
    ports: [80],
    programmedBy: [LISTENER],
  };
  give('ingress:-/edge', ingress);
  t.is(written.get(name), undefined);
  const status = JSON.stringify({ loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } });
  place.shown = { status, hasOwnAddresses: true };
  give('ingress:-/edge', { ...ingress });
  t.deepEqual((written.get(name) as IngressStatus | undefined)?.addresses, []);
  t.is(delays.get(name), 5_000);
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

const unreadable = (object: string): Problem => ({
  object,
  reason: 'InvalidObject',
  message: `${object}: spec.rules: 7 is not a list`,
});
const accepted = (status: ObjectStatus | undefined) => {
  const conditions =
    status !== undefined && 'parents' in status
      ? status.parents.flatMap((each) => each.conditions)
      : status !== undefined && 'conditions' in status
        ? status.conditions
        : [];
  return conditions.filter(({ type }) => type === 'Accepted');
};

test('A route that cannot be read any more is not accepted, and is again once it can be', (t) => {
  const { give, written, reporter, place } = start();
  const api = () => written.get('HTTPRoute default/api') as RouteStatus;
  give('gateway:default/inner', route('inner'));
  give('gateway:default/outer', route('outer'));
  place.shown = { generation: 2, unreadableParents: [{ name: 'elsewhere' }] };
  reporter.refused([unreadable('HTTPRoute default/api')]);
  t.is(api().generation, 2);
  t.deepEqual(
    api().parents.map(({ ref }) => ref.name),
    ['inner', 'outer'],
    'what is served is of these',
  );
  const message =
    'Cannot read generation 2, the last one that could be read is served: spec.rules: 7 is not a list';
  const refusal = { type: 'Accepted', status: 'False', reason: 'UnsupportedValue', message } as const;
  t.deepEqual(accepted(api()), [refusal, refusal]);
  place.shown = { generation: 3 };
  reporter.shown('HTTPRoute default/api');
  t.is(api().generation, 3, 'with the same fault');
  reporter.refused([]);
  give('gateway:default/inner', route('inner', 4));
  give('gateway:default/outer', route('outer', 4));
  t.deepEqual(accepted(api()), []);
  t.is(api().generation, 4);
});

test('A Gateway that cannot be read any more keeps its addresses and the proof that it is served', (t) => {
  const { give, written, served, reporter, place } = start();
  served.add(LISTENER);
  give('gateway:default/edge', gateway);
  place.shown = { generation: 2 };
  reporter.refused([unreadable('Gateway default/edge')]);
  const status = written.get('Gateway default/edge') as GatewayStatus;
  t.like(status, { generation: 2, addresses: ['192.0.2.1'] });
  t.deepEqual(
    status.conditions.map(({ type, status: is, reason }) => [type, is, reason]),
    [
      ['Accepted', 'False', 'Invalid'],
      ['Programmed', 'True', 'Programmed'],
    ],
  );
});

test('A route that could never be read is not accepted by the Gateways of this agent, while there are any', (t) => {
  const { give, written, reporter, place } = start();
  const group = 'gateway.networking.k8s.io';
  const parents = ['edge', 'theirs'].map((name) => ({ group, kind: 'Gateway', name }));
  place.shown = { unreadableParents: [...parents, { group: 'example.org', kind: 'Gateway', name: 'edge' }] };
  const name = 'HTTPRoute default/api';
  reporter.refused([unreadable(name)]);
  t.false(written.has(name), 'no Gateway is translated yet');
  give('gateway:default/edge', gateway);
  t.like(written.get(name), { uid: 'u-api', generation: 1 });
  t.deepEqual((written.get(name) as RouteStatus).parents, [
    {
      ref: parents[0] as { readonly name: string },
      conditions: [
        {
          type: 'Accepted',
          status: 'False',
          reason: 'UnsupportedValue',
          message: 'Cannot read it: spec.rules: 7 is not a list',
        },
      ],
    },
  ]);
  give('gateway:default/edge');
  t.deepEqual((written.get(name) as RouteStatus).parents, []);
  give('gateway:default/edge', gateway);
  t.is((written.get(name) as RouteStatus).parents.length, 1);
  place.shown = {};
  reporter.refused([]);
  t.deepEqual((written.get(name) as RouteStatus).parents, [], 'it can be read, and has another parent');
});

test('A Gateway that could never be read keeps the addresses of its status', (t) => {
  const { give, written, reporter, place } = start();
  const classRef = { group: 'gateway.networking.k8s.io', kind: 'GatewayClass', name: 'edge' };
  const addresses = [{ type: 'IPAddress', value: '192.0.2.9' }, { value: 'lb.example.org' }];
  place.shown = { unreadableParents: [classRef], status: JSON.stringify({ addresses }) };
  give('gatewayclass:-/edge', {
    kind: 'GatewayClass',
    ...subject,
    namespace: '',
    conditions: [],
    supportedFeatures: [],
  });
  reporter.refused([unreadable('Gateway default/web'), unreadable('Ingress default/web')]);
  const status = written.get('Gateway default/web') as GatewayStatus;
  t.deepEqual(status.addresses, ['192.0.2.9']);
  t.deepEqual(
    status.conditions.map(({ type, status: is, reason }) => [type, is, reason]),
    [
      ['Accepted', 'False', 'Invalid'],
      ['Programmed', 'False', 'Invalid'],
    ],
  );
  t.false(written.has('Ingress default/web'));
});

test('An unreadable object of a manifest, or of the class of another controller, gets no status', (t) => {
  const { give, written, reporter, place } = start();
  const parent = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'edge' };
  place.shown = { unreadableParents: [{ ...parent, namespace: 'other' }] };
  give('gateway:default/edge', gateway);
  reporter.refused([unreadable('HTTPRoute default/api')]);
  t.false(written.has('HTTPRoute default/api'), 'the Gateway is of another namespace');
  place.isOfManifest = true;
  place.shown = { unreadableParents: [parent] };
  reporter.refused([unreadable('HTTPRoute default/api')]);
  t.false(written.has('HTTPRoute default/api'));
});
