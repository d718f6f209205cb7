import test from 'ava';
import type { DataplaneFacts, MemberFact } from '../../../../agent/dataplane/dataplane.ts';
import { desiredStatus, PROGRAMMED } from '../../../../agent/kubernetes/writers/service-status.ts';
import type { Listener } from '../../../../agent/model/load-balancer.ts';
import { viewOf } from '../../../../agent/report/operating/load-balancer-view.ts';
import type { Verdict } from '../../../../health/page-model.ts';
import { service, slice } from '../../../support/values/build.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

const annotations = { 'headgate.io/health-monitor': 'tcp' };

/** What one port is in, and what the dataplane reports of it. */
const PORTS = {
  served: { isServed: true, member: { state: 'ready', weight: 16, isDown: false, cause: '' } },
  empty: { isServed: true, member: undefined },
  draining: { isServed: true, member: { state: 'drain', weight: 0, isDown: false, cause: '' } },
  down: { isServed: true, member: { state: 'ready', weight: 16, isDown: true, cause: 'refused' } },
  missing: { isServed: false, member: undefined },
} as const satisfies Readonly<Record<string, { isServed: boolean; member: MemberFact | undefined }>>;

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
      problemsOf: () => [],
    } as unknown as DataplaneFacts;
    const loadBalancer = { ...own, listeners };
    t.is(viewOf(loadBalancer, { dataplane, announcer: undefined }).verdict, verdict);

    // What the condition calls programmed is never "not served".
    const { serves } = dataplane;
    const { conditions } = desiredStatus(loadBalancer, { serves, problems: [] });
    const isProgrammed = conditions.find(({ type }) => type === PROGRAMMED)?.status === 'True';
    t.is(isProgrammed, !ports.includes('missing'));
    if (isProgrammed) t.not(verdict, 'not served');
  });
