import test from 'ava';
import type { DataplaneFacts, MemberFact } from '../../../../agent/dataplane/forwarder.ts';
import type { RecentFailures } from '../../../../agent/dataplane/recent-failures.ts';
import type { Service } from '../../../../agent/kubernetes/objects.ts';
import { desiredStatus, PROGRAMMED } from '../../../../agent/kubernetes/writers/service-status.ts';
import { emptyDesiredState } from '../../../../agent/model/desired-state.ts';
import type { Listener } from '../../../../agent/model/load-balancer.ts';
import { viewOf } from '../../../../agent/report/operating/load-balancer-view.ts';
import { StatusBook } from '../../../../agent/report/operating/status-book.ts';
import type { Verdict } from '../../../../health/page-model.ts';
import { endpoint, service, slice } from '../../../support/values/build.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

const NO_ROUTES = { desired: emptyDesiredState(), operating: new StatusBook() };
const annotations = { 'headgate.io/health-monitor': 'tcp' };

/** What one port is in, and what the dataplane reports of it. */
const PORTS = {
  served: { isServed: true, member: { state: 'ready', weight: 16, isDown: false, cause: '' } },
  empty: { isServed: true, member: undefined },
  draining: { isServed: true, member: { state: 'drain', weight: 0, isDown: false, cause: '' } },
  down: { isServed: true, member: { state: 'ready', weight: 16, isDown: true, cause: 'refused' } },
  missing: { isServed: false, member: undefined },
  failing: {
    isServed: true,
    member: { state: 'ready', weight: 16, isDown: undefined, cause: '' },
    share: 'all',
  },
  halfFailing: {
    isServed: true,
    member: { state: 'ready', weight: 16, isDown: undefined, cause: '' },
    share: 'some',
  },
} as const satisfies Readonly<
  Record<string, { isServed: boolean; member: MemberFact | undefined; share?: RecentFailures['share'] }>
>;

for (const [ports, verdict] of [
  [['served', 'served'], 'served'],
  [['served', 'empty'], 'served in part'],
  [['served', 'down'], 'served in part'],
  [['served', 'missing'], 'served in part'],
  [['empty', 'empty'], 'no ready member'],
  [['empty', 'draining'], 'no ready member'],
  [['down', 'down'], 'members down'],
  [['down', 'empty'], 'members down'],
  [['down', 'missing'], 'not served'],
  [['empty', 'missing'], 'not served'],
  [['missing', 'missing'], 'not served'],
  [['failing', 'failing'], 'members fail'],
  [['failing', 'empty'], 'members fail'],
  [['failing', 'served'], 'served in part'],
  [['halfFailing', 'served'], 'served in part'],
  [['halfFailing', 'failing'], 'served in part'],
] as readonly (readonly [readonly (keyof typeof PORTS)[], Verdict])[])
  test(`The verdict of ports that are ${ports.join(' and ')}: ${verdict}`, (t) => {
    const named = [
      { name: 'a', port: 80 },
      { name: 'b', port: 81 },
    ];
    const own = loadBalancerOf(translated([service({ annotations, ports: named }), slice({ ports: named })]));
    const portOf = (name: string) => PORTS[ports[name.includes(':81:') ? 1 : 0] ?? 'missing'];
    // A port without a ready member has none in the model either.
    const listeners: readonly Listener[] = own.listeners.map((listener) => ({
      ...listener,
      pool: {
        ...listener.pool,
        members: portOf(listener.name).member === undefined ? [] : listener.pool.members,
      },
    }));
    const dataplane = {
      serves: (name: string) => portOf(name).isServed,
      members: (name: string) => {
        const { member } = portOf(name);
        const [only] = listeners.find((each) => each.name === name)?.pool.members ?? [];
        return new Map(member && only ? [[only.name, member]] : []);
      },
      failures: (name: string) => {
        const { share } = { share: undefined, ...portOf(name) };
        return share && { unit: 'connections', tried: 9, failed: 9, share, members: new Map() };
      },
      problemsOf: () => [],
    } as unknown as DataplaneFacts;
    const loadBalancer = { ...own, listeners };
    t.is(viewOf(loadBalancer, { ...NO_ROUTES, dataplane, reach: undefined }).verdict, verdict);

    // What the condition calls programmed is never "not served".
    const { serves } = dataplane;
    const { conditions } = desiredStatus(loadBalancer, { serves, problems: [] });
    const isProgrammed = conditions.find(({ type }) => type === PROGRAMMED)?.status === 'True';
    t.is(isProgrammed, !ports.includes('missing'));
    if (isProgrammed) t.not(verdict, 'not served');
  });

test('A port whose addresses this host cannot have is not served, whatever the dataplane says', (t) => {
  const spec: Partial<Service> = { ipFamilies: ['v4', 'v6'], ipFamilyPolicy: 'RequireDualStack' };
  const addresses = { 'headgate.io/load-balancer-ips': '192.0.2.10,2001:db8::10' };
  const own = loadBalancerOf(
    translated([
      service({ annotations: { ...annotations, ...addresses }, ...spec }),
      slice(),
      slice({ name: 'six', family: 'v6', endpoints: [endpoint('2001:db8:1::1')] }),
    ]),
  );
  t.deepEqual(
    own.listeners.map(({ family }) => family),
    ['v4', 'v6'],
  );
  const dataplane = {
    serves: () => true,
    members: (name: string) => {
      const members = own.listeners.find((each) => each.name === name)?.pool.members ?? [];
      return new Map(members.map((each) => [each.name, PORTS.served.member]));
    },
    failures: () => undefined,
    problemsOf: () => [],
  } as unknown as DataplaneFacts;
  const verdictWith = (reason: 'AddressUnavailable' | 'AddressNotMovable', only: string) =>
    viewOf(own, {
      ...NO_ROUTES,
      dataplane,
      reach: {
        problemsOf: ({ vips }) =>
          vips
            .filter(({ address }) => address.includes(only))
            .map(({ address }) => ({ object: 'Service default/web', reason, message: address })),
      },
    }).verdict;
  t.is(verdictWith('AddressUnavailable', ''), 'not served');
  t.is(verdictWith('AddressUnavailable', ':'), 'served in part');
  t.is(verdictWith('AddressUnavailable', 'none'), 'served');
  t.is(verdictWith('AddressNotMovable', ''), 'served');
});
