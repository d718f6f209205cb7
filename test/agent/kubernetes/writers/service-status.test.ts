import test from 'ava';
import fc from 'fast-check';
import { sameValue } from '../../../../agent/base/same-value.ts';
import { IP_ALLOCATED } from '../../../../agent/kubernetes/class-names.ts';
import type { CurrentService } from '../../../../agent/kubernetes/current-service.ts';
import {
  clearedStatus,
  type DesiredService,
  FINALIZER,
  mergeStatus,
  servicePatch,
} from '../../../../agent/kubernetes/writers/service-patch.ts';
import {
  type DesiredStatus,
  desiredStatus,
  HEALTHY,
  PORTS_ERROR,
  PROGRAMMED,
} from '../../../../agent/kubernetes/writers/service-status.ts';
import type {
  Family,
  LoadBalancer,
  Problem,
  ProblemReason,
  Protocol,
} from '../../../../agent/model/load-balancer.ts';
import { anyLoadBalancer } from '../../../support/values/load-balancers.ts';

const NOW = '2026-11-20T19:00:00Z';
const LATER = '2026-11-20T20:00:00Z';
const allServed = { serves: () => true, problems: [] };
const noneServed = { serves: () => false, problems: [] };

// Conformance: status.loadBalancer.ingress[].ipMode
test('desiredStatus() of a served Service has its address with every port, and both conditions true', (t) => {
  const wanted = desiredStatus(balancer({ ports: [[80], [443]] }), allServed);
  t.deepEqual(wanted.ingress, [
    {
      ip: '192.0.2.10',
      ipMode: 'Proxy',
      ports: [
        { port: 80, protocol: 'TCP' },
        { port: 443, protocol: 'TCP' },
      ],
      onlyIfPublished: false,
    },
  ]);
  t.deepEqual(conditionsOf(wanted), { [IP_ALLOCATED]: 'True Allocated', [PROGRAMMED]: 'True Programmed' });
  t.is(wanted.conditions[0]?.message, '192.0.2.10');
  t.true(wanted.isSettled);
});

// Conformance: status.loadBalancer.ingress[].ipMode
test("desiredStatus() has ipMode VIP for an address whose ports all keep the client's address", (t) => {
  const modesOf = (...sources: readonly ('client' | 'load-balancer')[]) => {
    const addresses = ['192.0.2.10', '2001:db8::10'];
    const { listeners, ...rest } = balancer({ addresses, ports: [[80], [443]] });
    const given = listeners.map((each, at) => ({ ...each, sourceAddress: sources[at] ?? 'client' }));
    return desiredStatus({ ...rest, listeners: given }, allServed).ingress.map(({ ipMode }) => ipMode);
  };
  t.deepEqual(modesOf(), ['VIP', 'VIP']);
  // The listeners are: port 80 of IPv4 and IPv6, port 443 of both.
  t.deepEqual(modesOf('client', 'client', 'client', 'load-balancer'), ['VIP', 'Proxy']);
  t.deepEqual(modesOf('load-balancer', 'client', 'load-balancer'), ['Proxy', 'VIP']);
});

test('desiredStatus() has the condition Healthy only with a health monitor', (t) => {
  const message = '1 of 2 ready members fail their health checks';
  const checked = (status: string) =>
    desiredStatus(balancer(), { ...allServed, health: { status, message } });
  t.is(conditionsOf(checked('ONLINE'))[HEALTHY], 'True Online');
  t.is(conditionsOf(checked('DEGRADED'))[HEALTHY], 'False Degraded');
  t.is(conditionsOf(checked('ERROR'))[HEALTHY], 'False Error');
  const { conditions } = mergeStatus(current(), checked('DEGRADED'), NOW);
  const later = mergeStatus(current({ conditions }), desiredStatus(balancer(), allServed), LATER);
  t.false(later.conditions.some(({ type }) => type === HEALTHY));
});

// Conformance: status.loadBalancer.ingress[].ip
test('desiredStatus() does not publish an address before the dataplane has confirmed one of its ports', (t) => {
  const wanted = desiredStatus(balancer(), noneServed);
  t.false(wanted.isSettled);
  t.deepEqual(conditionsOf(wanted), { [IP_ALLOCATED]: 'True Allocated', [PROGRAMMED]: 'False Pending' });
  t.deepEqual(mergeStatus(current(), wanted, NOW).ingress, []);
  const eager = desiredStatus(balancer(), { ...noneServed, publishUnready: true });
  t.is(mergeStatus(current(), eager, NOW).ingress.length, 1, 'unless the settings ask for it');
});

// Conformance: status.loadBalancer.ingress[].ip
test('mergeStatus() keeps a published address while its ports are pending', (t) => {
  const before = current({ ingress: [{ ip: '192.0.2.10', ipMode: 'Proxy' }] });
  t.deepEqual(mergeStatus(before, desiredStatus(balancer(), noneServed), NOW).ingress, [
    {
      ip: '192.0.2.10',
      ipMode: 'Proxy',
      ports: [{ error: 'headgate.io/Pending', port: 80, protocol: 'TCP' }],
    },
  ]);
});

test('desiredStatus() of a Service whose address is being chosen is pending, and may change in a moment', (t) => {
  const wanted = desiredStatus(balancer({ addresses: [] }), allServed);
  t.deepEqual(conditionsOf(wanted), {
    [IP_ALLOCATED]: 'False Pending',
    [PROGRAMMED]: 'False Pending',
  });
  t.false(wanted.isSettled);
});

// Conformance: status.conditions
test('desiredStatus() of a Service without an address has the reason for that', (t) => {
  const pending = problem('AddressPending', 'It has no address yet');
  const plain = desiredStatus(balancer({ addresses: [], problems: [pending] }), allServed);
  t.deepEqual(conditionsOf(plain), {
    [IP_ALLOCATED]: 'False AddressPending',
    [PROGRAMMED]: 'False AddressPending',
  });
  const cause = problem('AddressNotInPool', 'No pool has "203.0.113.9"');
  const caused = desiredStatus(balancer({ addresses: [], problems: [pending, cause] }), allServed);
  t.deepEqual(caused.conditions[0], {
    type: IP_ALLOCATED,
    status: 'False',
    reason: 'AddressNotInPool',
    message: 'No pool has "203.0.113.9"',
  });
  t.deepEqual(caused.ingress, []);
  t.true(plain.isSettled && caused.isSettled);
});

test('desiredStatus() reports an address that differs from the requested one, with reason and message', (t) => {
  const refused = problem('AddressNotInPool', 'Cannot give 203.0.113.9: it belongs to no address pool');
  const wanted = desiredStatus(balancer({ problems: [refused] }), allServed);
  t.deepEqual(conditionsOf(wanted), {
    [IP_ALLOCATED]: 'True AddressNotInPool',
    [PROGRAMMED]: 'True Programmed',
  });
  t.is(wanted.conditions[0]?.message, '192.0.2.10; Cannot give 203.0.113.9: it belongs to no address pool');
  // It is still known which addresses are ours.
  const { ingress, conditions } = mergeStatus(current(), wanted, NOW);
  t.deepEqual(clearedStatus(current({ ingress, conditions })), { ingress: [], conditions: [] });
});

test('The public address of a Service that leaves the agent is removed from its status, one that is not known is not shown', (t) => {
  const { vips, ...rest } = balancer();
  const withPublic = (publicAddress: string) => ({
    ...rest,
    vips: vips.map((vip) => ({ ...vip, publicAddress })),
  });
  const { ingress, conditions } = mergeStatus(
    current(),
    desiredStatus(withPublic('203.0.113.9'), allServed),
    NOW,
  );
  t.deepEqual(
    ingress.map(({ ip, ipMode }) => [ip, ipMode]),
    [['203.0.113.9', 'Proxy']],
  );
  t.deepEqual(clearedStatus(current({ ingress, conditions })), { ingress: [], conditions: [] });
  const unknown = desiredStatus(withPublic(''), allServed);
  t.deepEqual(unknown.ingress, []);
  t.regex(unknown.conditions[0]?.message ?? '', /\(public not known yet\)$/);
});

test('desiredStatus() leaves out an address that another Service has on every port', (t) => {
  const taken = problem(
    'AddressInUse',
    'Cannot listen on 192.0.2.10 TCP port 80: the Service "a/b" holds it',
    'TCP',
    80,
  );
  const wanted = desiredStatus(balancer({ problems: [taken] }), noneServed);
  t.deepEqual(wanted.ingress, []);
  t.like(wanted.conditions[0], {
    type: IP_ALLOCATED,
    status: 'False',
    reason: 'AddressInUse',
    message: taken.message,
  });
});

test('desiredStatus() counts a listener only at the address where the dataplane serves it', (t) => {
  const elsewhere = desiredStatus(balancer(), {
    serves: (_, address) => address === '192.0.2.11',
    problems: [],
  });
  t.deepEqual(elsewhere, desiredStatus(balancer(), noneServed));
  const here = desiredStatus(balancer(), { serves: (_, address) => address === '192.0.2.10', problems: [] });
  t.deepEqual(here, desiredStatus(balancer(), allServed));
});

// Conformance: spec.ports[].protocol
test('desiredStatus() of an unserved UDP port beside TCP has a port error and the reason of KEP-1435', (t) => {
  const udp = problem('ProtocolNotServed', 'Cannot serve UDP port 53 yet', 'UDP', 53);
  const wanted = desiredStatus(balancer({ ports: [[53], [53, 'UDP']], problems: [udp] }), {
    serves: (name) => name.includes(':tcp:'),
    problems: [],
  });
  t.deepEqual(wanted.ingress[0]?.ports, [
    { port: 53, protocol: 'TCP' },
    { error: 'headgate.io/ProtocolNotServed', port: 53, protocol: 'UDP' },
  ]);
  t.deepEqual(conditionsOf(wanted), {
    [IP_ALLOCATED]: 'True Allocated',
    [PROGRAMMED]: 'False ProtocolNotServed',
    [PORTS_ERROR]: 'True LoadBalancerMixedProtocolNotSupported',
  });
  t.true(wanted.isSettled);
  t.false(wanted.ingress[0]?.onlyIfPublished);
});

// Conformance: spec.ports[].protocol
test('desiredStatus() does not publish the address of a Service with unserved UDP only', (t) => {
  const udp = problem('ProtocolNotServed', 'Cannot serve UDP port 53 yet', 'UDP', 53);
  const wanted = desiredStatus(balancer({ ports: [[53, 'UDP']], problems: [udp] }), noneServed);
  t.true(wanted.ingress[0]?.onlyIfPublished);
  t.deepEqual(conditionsOf(wanted)[PORTS_ERROR], 'True ProtocolNotServed');
  t.true(wanted.isSettled);
});

// Conformance: status.loadBalancer.ingress[].ports
test('desiredStatus() has a port error only at the address where another Service has the port', (t) => {
  const message = 'Cannot listen on 192.0.2.10 TCP port 80: the Service "default/old" holds it';
  const wanted = desiredStatus(
    balancer({
      addresses: ['192.0.2.10', '192.0.2.1'],
      held: ['192.0.2.1'],
      problems: [problem('AddressInUse', message, 'TCP', 80)],
    }),
    allServed,
  );
  t.deepEqual(
    wanted.ingress.map(({ ip, ports }) => [ip, ports[0]?.error]),
    [['192.0.2.1', undefined]],
  );
  t.is(conditionsOf(wanted)[PROGRAMMED], 'False AddressInUse');
});

// Conformance: status.loadBalancer.ingress[].ports
test('desiredStatus() has a port error at an address that HAProxy cannot listen on', (t) => {
  const message = 'Cannot listen on 192.0.2.1 port 80: the address is not on this host';
  const wanted = desiredStatus(balancer({ addresses: ['192.0.2.10', '192.0.2.1'] }), {
    serves: () => true,
    problems: [problem('AddressUnavailable', message, 'TCP', 80)],
  });
  t.deepEqual(
    wanted.ingress.map(({ ip, ports, onlyIfPublished }) => [ip, ports[0]?.error, onlyIfPublished]),
    [
      ['192.0.2.10', undefined, false],
      ['192.0.2.1', 'headgate.io/AddressUnavailable', true],
    ],
  );
});

test('desiredStatus() of an address that no router has keeps it, with an error of its ports and Programmed false', (t) => {
  const message = 'No router has a route to 192.0.2.10 by this host: "headgate status" says why';
  const wanted = desiredStatus(balancer(), {
    serves: () => true,
    problems: [problem('AddressNotAnnounced', message, 'TCP', 80)],
  });
  t.is(wanted.ingress[0]?.ports[0]?.error, 'headgate.io/AddressNotAnnounced');
  t.true(wanted.ingress[0]?.onlyIfPublished);
  t.is(conditionsOf(wanted)[PROGRAMMED], 'False AddressNotAnnounced');
});

test('desiredStatus() of a rejected configuration keeps the address, with Programmed false', (t) => {
  const rejected = problem('ConfigurationRejected', 'HAProxy refuses it: line 7');
  const still = desiredStatus(balancer(), { serves: () => true, problems: [rejected] });
  t.deepEqual(still.ingress[0]?.ports, [{ port: 80, protocol: 'TCP' }]);
  t.is(conditionsOf(still)[PROGRAMMED], 'False ConfigurationRejected');
  const never = desiredStatus(balancer(), { serves: () => false, problems: [rejected] });
  t.is(never.ingress[0]?.ports[0]?.error, 'headgate.io/ConfigurationRejected');
  t.true(never.isSettled);
});

test('desiredStatus() gives the share as the reason of a port that exceeds it, and waits for no confirmation', (t) => {
  const exceeded = problem('ShareExceeded', 'Cannot serve all of its ports and members');
  const two = balancer({ ports: [[80], [443]], problems: [exceeded] });
  const [first, last] = two.listeners;
  if (first === undefined || last === undefined) throw new Error('The load balancer has two listeners');
  const limited = desiredStatus({ ...two, listeners: [first, { ...last, addresses: [] }] }, allServed);
  t.deepEqual(limited.ingress[0]?.ports, [
    { port: 80, protocol: 'TCP' },
    { error: 'headgate.io/ShareExceeded', port: 443, protocol: 'TCP' },
  ]);
  t.is(limited.conditions[1]?.message, 'Not served: TCP 443: Cannot serve all of its ports and members');
  t.true(limited.isSettled);
  t.is(desiredStatus(two, noneServed).ingress[0]?.ports[0]?.error, 'headgate.io/Pending');
});

test('desiredStatus() cuts long messages', (t) => {
  const rejected = problem('ConfigurationRejected', 'x'.repeat(100_000));
  const { conditions } = desiredStatus(balancer(), { serves: () => true, problems: [rejected] });
  t.is(conditions[1]?.message.length, 1024);
});

// Conformance: status.conditions
test('desiredStatus() of a Service without ready members is programmed, and lists the ports that refuse connections', (t) => {
  for (const states of [[], ['drain']] as const) {
    const wanted = desiredStatus(balancer({ ports: [[80], [443]], states }), allServed);
    t.is(conditionsOf(wanted)[PROGRAMMED], 'True NoMembers');
    t.regex(wanted.conditions[1]?.message ?? '', /no member is ready: TCP 80, TCP 443$/);
    t.is(wanted.ingress[0]?.ports[0]?.error, undefined);
  }
  const one = desiredStatus(balancer({ states: ['drain', 'ready'] }), allServed);
  t.is(conditionsOf(one)[PROGRAMMED], 'True Programmed');
});

// Conformance: spec.allocateLoadBalancerNodePorts
test('desiredStatus() has a port error for a missing nodePort', (t) => {
  const missing = problem('NodePortMissing', 'Port 80 has no nodePort', 'TCP', 80);
  const wanted = desiredStatus(balancer({ problems: [missing], states: [] }), allServed);
  t.is(wanted.ingress[0]?.ports[0]?.error, 'headgate.io/NodePortMissing');
  t.is(conditionsOf(wanted)[PROGRAMMED], 'False NodePortMissing');
});

// Conformance: spec.externalIPs
test('desiredStatus() lists addresses of both families, without external and cluster IPs', (t) => {
  const wanted = desiredStatus(
    balancer({ addresses: ['192.0.2.10', '2001:db8::1'], others: ['198.51.100.7'] }),
    allServed,
  );
  t.deepEqual(
    wanted.ingress.map(({ ip }) => ip),
    ['192.0.2.10', '2001:db8::1'],
  );
  t.is(wanted.conditions[0]?.message, '192.0.2.10, 2001:db8::1');
});

// Conformance: status.conditions
test('mergeStatus() changes the time of a condition only with its status', (t) => {
  const first = mergeStatus(current(), desiredStatus(balancer(), noneServed), NOW);
  const second = mergeStatus(current(first), desiredStatus(balancer(), allServed), LATER);
  t.deepEqual(
    second.conditions.map(({ type, lastTransitionTime }) => [type, lastTransitionTime]),
    [
      [IP_ALLOCATED, NOW],
      [PROGRAMMED, LATER],
    ],
  );
});

// Conformance: status.conditions
test('mergeStatus() keeps the conditions of other writers, and removes an outdated ports condition', (t) => {
  const theirs = { ...condition('example.org/Probed', 'True'), extra: 'kept' };
  const before = current({
    conditions: [condition(PORTS_ERROR, 'True'), theirs, condition(PROGRAMMED, 'True')],
  });
  const { conditions } = mergeStatus(before, desiredStatus(balancer(), allServed), NOW);
  t.deepEqual(
    conditions.map(({ type }) => type),
    ['example.org/Probed', PROGRAMMED, IP_ALLOCATED],
  );
  t.deepEqual(conditions[0], theirs);
});

test('mergeStatus() sets observedGeneration if the API counts generations', (t) => {
  const wanted = desiredStatus(balancer(), allServed);
  t.is(mergeStatus(current({ generation: 7 }), wanted, NOW).conditions[0]?.observedGeneration, 7);
  t.false('observedGeneration' in (mergeStatus(current(), wanted, NOW).conditions[0] ?? {}));
});

// Conformance: status.loadBalancer.ingress[].ip
test('mergeStatus() gives a Service of another type no address', (t) => {
  const wanted = desiredStatus(balancer(), allServed);
  t.deepEqual(mergeStatus(current({ type: 'ClusterIP' }), wanted, NOW).ingress, []);
});

// Conformance: spec.type
test("clearedStatus() removes only the agent's part, not an address that another load balancer has written", (t) => {
  const ours = mergeStatus(current(), desiredStatus(balancer(), allServed), NOW);
  const theirs = { ip: '203.0.113.5', ipMode: 'VIP' };
  const before = current({
    ingress: [...ours.ingress, theirs],
    conditions: [condition('example.org/Probed', 'True'), ...ours.conditions],
  });
  t.deepEqual(clearedStatus(before), {
    ingress: [theirs],
    conditions: [condition('example.org/Probed', 'True')],
  });
  const foreign = current({ ingress: [theirs] });
  t.is(clearedStatus(foreign), foreign);
});

test('mergeStatus() changes nothing the second time, for any load balancer', (t) => {
  fc.assert(
    fc.property(anyLoadBalancer, fc.boolean(), (loadBalancer, isServed) => {
      const wanted = desiredStatus(loadBalancer, { serves: () => isServed, problems: [] });
      const once = current(mergeStatus(current(), wanted, NOW));
      return sameValue({ ...once, ...mergeStatus(once, wanted, LATER) }, once);
    }),
  );
  t.pass();
});

// Conformance: status.loadBalancer.ingress[].ports
test('desiredStatus() gives errors and reasons in the form of the API', (t) => {
  fc.assert(
    fc.property(anyLoadBalancer, fc.boolean(), (loadBalancer, isServed) => {
      const wanted = desiredStatus(loadBalancer, { serves: () => isServed, problems: [] });
      const published = current({ ingress: [{ ip: '192.0.2.10' }] });
      const { ingress, conditions } = mergeStatus(published, wanted, NOW);
      const errors = ingress.flatMap(({ ports = [] }) => ports).flatMap(({ error = [] }) => error);
      return (
        errors.every((error) => /^[a-z0-9.-]+\/[A-Za-z]+$/.test(error)) &&
        conditions.every(({ reason }) => /^[A-Za-z]+$/.test(reason))
      );
    }),
  );
  t.pass();
});

// Conformance: finalizer service.kubernetes.io/load-balancer-cleanup
test('servicePatch() adds finalizer and status in one patch, guarded by UID and version', (t) => {
  const patch = servicePatch(current({ finalizers: ['example.org/x'] }), serve(), options);
  t.deepEqual(patch?.metadata, {
    uid: 'uid-1',
    resourceVersion: '7',
    finalizers: ['example.org/x', FINALIZER],
  });
  t.deepEqual(Object.keys(patch?.status ?? {}), ['loadBalancer', 'conditions']);
});

test('servicePatch() is undefined for a Service that is as desired', (t) => {
  const merged = mergeStatus(current(), desiredStatus(balancer(), allServed), NOW);
  t.is(servicePatch(current({ ...merged, finalizers: [FINALIZER] }), serve(), options), undefined);
});

test('servicePatch() adds finalizer and condition without changing addresses', (t) => {
  const patch = servicePatch(current(), { kind: 'choosing', uid: 'uid-1' }, options);
  t.deepEqual(patch?.metadata.finalizers, [FINALIZER]);
  const conditions = patch?.status?.conditions ?? [];
  t.deepEqual(
    conditions.map(({ type, reason }) => [type, reason]),
    [[IP_ALLOCATED, 'Pending']],
  );
});

// Conformance: finalizer service.kubernetes.io/load-balancer-cleanup
test('servicePatch() adds no finalizer during a deletion, nor with addFinalizer false', (t) => {
  for (const patch of [
    servicePatch(current({ isDeleting: true }), serve(), options),
    servicePatch(current(), serve(), { ...options, addFinalizer: false }),
  ]) {
    t.is(patch?.metadata.finalizers, undefined);
    t.truthy(patch?.status);
  }
});

// Conformance: spec.loadBalancerClass
test("servicePatch() releases the agent's Service, and keeps another load balancer's finalizer", (t) => {
  const release: DesiredService = { kind: 'release', uid: 'uid-1', isTornDown: true };
  const merged = mergeStatus(current(), desiredStatus(balancer(), allServed), NOW);
  const ours = current({
    ...merged,
    type: 'ClusterIP',
    ingress: [],
    finalizers: [FINALIZER, 'example.org/x'],
  });
  t.deepEqual(servicePatch(ours, release, { ...options, addFinalizer: false }), {
    metadata: { uid: 'uid-1', resourceVersion: '7', finalizers: ['example.org/x'] },
    status: { loadBalancer: { ingress: [] }, conditions: [] },
  });
  t.is(servicePatch(current({ finalizers: [FINALIZER] }), release, options), undefined);
});

const options = { now: NOW, addFinalizer: true };

function serve(): DesiredService {
  return { kind: 'serve', uid: 'uid-1', status: desiredStatus(balancer(), allServed) };
}

interface Given {
  readonly addresses?: readonly string[];
  /** External IPs. */
  readonly others?: readonly string[];
  /** Addresses that listeners may bind, all by default. */
  readonly held?: readonly string[];
  readonly ports?: readonly (readonly [number, Protocol?])[];
  readonly problems?: readonly Problem[];
  /** States of the members of each port; one that is ready by default. */
  readonly states?: readonly ('ready' | 'drain')[];
}

function balancer({
  addresses = ['192.0.2.10'],
  others = [],
  held,
  ports = [[80]],
  problems = [],
  states = ['ready'],
}: Given = {}): LoadBalancer {
  const familyOf = (address: string): Family => (address.includes(':') ? 'v6' : 'v4');
  const vip = (source: 'annotation' | 'spec.externalIPs') => (address: string) => ({
    address,
    family: familyOf(address),
    source,
  });
  const families = new Set(addresses.map(familyOf));
  const members = states.map((state, at) => {
    const address = `10.0.0.${at}`;
    return { name: `${address}:80`, id: at + 1, address, port: 80, weight: 1, state, target: '' };
  });
  const listeners = ports.flatMap(([port, protocol = 'TCP']) =>
    [...families].map((family) => ({
      ...template.listeners[0],
      name: `default:web:${protocol.toLowerCase()}:${port}:${family}`,
      port,
      protocol,
      family,
      pool: { ...template.listeners[0]?.pool, members },
      addresses: (held ?? [...addresses, ...others]).filter((address) => familyOf(address) === family),
    })),
  );
  const vips = [...addresses.map(vip('annotation')), ...others.map(vip('spec.externalIPs'))];
  return { ...template, vips, listeners, problems } as LoadBalancer;
}

const template = fc.sample(
  anyLoadBalancer.filter(({ listeners }) => listeners.length > 0),
  { numRuns: 1, seed: 1 },
)[0] as LoadBalancer;

function problem(reason: ProblemReason, message: string, protocol?: Protocol, port = 0): Problem {
  return {
    object: 'Service default/web',
    reason,
    message,
    ...(protocol ? { port: { protocol, port } } : {}),
  };
}

function current(more: Partial<CurrentService> = {}): CurrentService {
  return {
    namespace: 'default',
    name: 'web',
    uid: 'uid-1',
    resourceVersion: '7',
    generation: 0,
    type: 'LoadBalancer',
    isDeleting: false,
    finalizers: [],
    ingress: [],
    conditions: [],
    ...more,
  };
}

function condition(type: string, status: string) {
  return { type, status, reason: 'Any', message: '', lastTransitionTime: NOW };
}

function conditionsOf({ conditions }: DesiredStatus): Record<string, string> {
  return Object.fromEntries(conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]));
}
