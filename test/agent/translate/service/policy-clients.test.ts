// Which clients a Service lets in by the NetworkPolicies of its members: the documentation of Kubernetes as a table, and what
// stands around a policy.

import test from 'ava';
import type { KubernetesObject } from '../../../../agent/kubernetes/objects.ts';
import type { TranslateSettings } from '../../../../agent/translate/translate-settings.ts';
import { clusterOf, endpoint, node, service, slice } from '../../../support/values/build.ts';
import { networkPolicy, pod } from '../../../support/values/policies.ts';
import {
  FollowedState,
  listenerOf,
  loadBalancerOf,
  membersOf,
  translated,
} from '../../../support/values/translated.ts';

const ON: Partial<TranslateSettings> = { enforceNetworkPolicy: 'ingress' };
const ALL = ['0.0.0.0/0'];
const BLOCK = '{ ipBlock: { cidr: 203.0.113.0/24 } }';

interface Case {
  readonly title: string;
  /** The specs of policies in the namespace, as YAML. */
  readonly policies: readonly string[];
  readonly allowed: readonly string[];
  /** A part of each message. */
  readonly told?: readonly string[];
}

/** Pod `app: web` at 10.0.0.1 with the port 8080, which is named `http`. */
const CASES: readonly Case[] = [
  { title: 'no policy lets all in', policies: [], allowed: ALL },
  // https://kubernetes.io/docs/concepts/services-networking/network-policies/#default-policies
  {
    title: 'a policy for all pods without a rule lets no client in',
    policies: ['{ podSelector: {}, policyTypes: [Ingress] }'],
    allowed: [],
    told: ['they let in no address of IPv4'],
  },
  {
    title: 'a policy with an empty list of rules lets no client in',
    policies: ['{ podSelector: {}, ingress: [] }'],
    allowed: [],
    told: ['they let in no address of IPv4'],
  },
  {
    title: 'an empty rule lets all in',
    policies: ['{ podSelector: {}, ingress: [{}], policyTypes: [Ingress] }'],
    allowed: ALL,
  },
  {
    title: 'an empty list of sources lets all in',
    policies: ['{ podSelector: {}, ingress: [{ from: [] }] }'],
    allowed: ALL,
  },
  {
    title: 'an empty list of ports means all ports',
    policies: [`{ podSelector: {}, ingress: [{ ports: [], from: [${BLOCK}] }] }`],
    allowed: ['203.0.113.0/24'],
  },
  {
    title: 'a policy for egress only restricts no client',
    policies: ['{ podSelector: {}, policyTypes: [Egress] }'],
    allowed: ALL,
  },
  {
    title: 'a policy for both directions without a rule lets no client in',
    policies: ['{ podSelector: {}, policyTypes: [Ingress, Egress], egress: [{}] }'],
    allowed: [],
    told: ['they let in no address of IPv4'],
  },
  {
    title: 'without policyTypes a policy is about ingress',
    policies: ['{ podSelector: {}, egress: [{}] }'],
    allowed: [],
    told: ['they let in no address of IPv4'],
  },
  {
    title: 'a policy for other pods restricts no client',
    policies: ['{ podSelector: { matchLabels: { app: db } } }'],
    allowed: ALL,
  },
  {
    title: 'a policy selects pods by expressions',
    policies: [
      `{ podSelector: { matchExpressions: [{ key: app, operator: In, values: [web, api] }] }, ingress: [{ from: [${BLOCK}] }] }`,
    ],
    allowed: ['203.0.113.0/24'],
  },
  // https://kubernetes.io/docs/concepts/services-networking/network-policies/#networkpolicy-resource
  {
    title: 'the example of the documentation lets in its block without the exception',
    policies: [
      `{ podSelector: { matchLabels: { app: web } }, policyTypes: [Ingress, Egress], ingress: [{
           from: [
             { ipBlock: { cidr: 172.17.0.0/16, except: [172.17.1.0/24] } },
             { namespaceSelector: { matchLabels: { project: myproject } } },
             { podSelector: { matchLabels: { role: frontend } } } ],
           ports: [{ protocol: TCP, port: 8080 }] }] }`,
    ],
    allowed: [
      '172.17.0.0/24',
      '172.17.128.0/17',
      '172.17.16.0/20',
      '172.17.2.0/23',
      '172.17.32.0/19',
      '172.17.4.0/22',
      '172.17.64.0/18',
      '172.17.8.0/21',
    ],
    told: ['NetworkPolicy "default/policy-0" also lets in what is no "ipBlock"'],
  },
  {
    title: 'policies add up',
    policies: [
      '{ podSelector: {} }',
      `{ podSelector: {}, ingress: [{ from: [${BLOCK}] }] }`,
      '{ podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: 198.51.100.0/25 } }, { ipBlock: { cidr: 198.51.100.128/25 } }] }] }',
    ],
    allowed: ['198.51.100.0/24', '203.0.113.0/24'],
  },
  {
    title: 'a rule for all beside a narrow one lets all in',
    policies: [`{ podSelector: {}, ingress: [{ from: [${BLOCK}] }] }`, '{ podSelector: {}, ingress: [{}] }'],
    allowed: ALL,
  },
  {
    title: 'a block within the exception of another one is let in',
    policies: [
      '{ podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: 10.0.0.0/8, except: [10.0.0.0/9] } }, { ipBlock: { cidr: 10.1.2.0/24 } }] }] }',
    ],
    allowed: ['10.1.2.0/24', '10.128.0.0/9'],
  },
  {
    title: 'pods and namespaces alone let no client in',
    policies: ['{ podSelector: {}, ingress: [{ from: [{ podSelector: {} }, { namespaceSelector: {} }] }] }'],
    allowed: [],
    told: ['also lets in what is no "ipBlock"', 'they let in no address of IPv4'],
  },
  {
    title: 'a block of the other family lets no client in',
    policies: ['{ podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: "2001:db8::/32" } }] }] }'],
    allowed: [],
    told: ['they let in no address of IPv4'],
  },
  {
    title: 'a block with host bits means its network',
    policies: ['{ podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: 203.0.113.77/24 } }] }] }'],
    allowed: ['203.0.113.0/24'],
  },
  {
    title: 'the number is the port of the pod, not of the Service',
    policies: [`{ podSelector: {}, ingress: [{ from: [${BLOCK}], ports: [{ port: 80 }] }] }`],
    allowed: [],
    told: ['they let in no address of IPv4'],
  },
  {
    title: 'a port has its name in the pod',
    policies: [`{ podSelector: {}, ingress: [{ from: [${BLOCK}], ports: [{ port: http }] }] }`],
    allowed: ['203.0.113.0/24'],
  },
  {
    title: 'a name that the pod does not have is no port',
    policies: [`{ podSelector: {}, ingress: [{ from: [${BLOCK}], ports: [{ port: metrics }] }] }`],
    allowed: [],
    told: ['they let in no address of IPv4'],
  },
  {
    title: 'a port without a number is each port of its protocol',
    policies: [`{ podSelector: {}, ingress: [{ from: [${BLOCK}], ports: [{ protocol: TCP }] }] }`],
    allowed: ['203.0.113.0/24'],
  },
  {
    title: 'a port of another protocol is another one',
    policies: [
      `{ podSelector: {}, ingress: [{ from: [${BLOCK}], ports: [{ protocol: UDP, port: 8080 }] }] }`,
    ],
    allowed: [],
    told: ['they let in no address of IPv4'],
  },
  {
    title: 'a range of ports has both its ends',
    policies: [
      `{ podSelector: {}, ingress: [{ from: [${BLOCK}], ports: [{ port: 8000, endPort: 8080 }] }, { from: [{ ipBlock: { cidr: 192.0.2.0/24 } }], ports: [{ port: 8081, endPort: 9000 }] }] }`,
    ],
    allowed: ['203.0.113.0/24'],
  },
  // What cannot be read lets no client in, and takes nothing back of what can be.
  {
    title: 'an exception that cannot be read takes the whole block away',
    policies: [
      `{ podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: 10.0.0.0/8, except: [nonsense] } }, ${BLOCK}] }] }`,
    ],
    allowed: ['203.0.113.0/24'],
    told: ['also lets in what is no "ipBlock"'],
  },
  {
    title: 'a source of a kind that is not known lets no client in',
    policies: ['{ podSelector: {}, ingress: [{ from: [{ fqdn: { name: example.org } }] }] }'],
    allowed: [],
    told: ['also lets in what is no "ipBlock"', 'they let in no address of IPv4'],
  },
  {
    title: 'a list of ports that cannot be read opens none',
    policies: [`{ podSelector: {}, ingress: [{ from: [${BLOCK}], ports: 8080 }] }`],
    allowed: [],
    told: ['they let in no address of IPv4'],
  },
  {
    title: 'ports that cannot be read are none, not all',
    policies: [
      `{ podSelector: {}, ingress: [{ from: [${BLOCK}], ports: [{ port: 1.5 }, { protocol: QUIC, port: 8080 }, { endPort: 9000 }] }] }`,
    ],
    allowed: [],
    told: ['they let in no address of IPv4'],
  },
  {
    title: 'a rule that is no rule lets no client in',
    policies: ['{ podSelector: {}, ingress: [all, null, 1] }'],
    allowed: [],
    told: ['they let in no address of IPv4'],
  },
  {
    title: 'rules that are no list let no client in',
    policies: ['{ podSelector: {}, ingress: { from: [] } }'],
    allowed: [],
    told: ['they let in no address of IPv4'],
  },
  {
    title: 'fields that are not known let no client in, because they may restrict the others',
    policies: [
      `{ podSelector: {}, ingress: [{ from: [${BLOCK}], when: night }, { from: [${BLOCK}], ports: [{ port: 8080, appProtocol: http }] }, { from: [{ ipBlock: { cidr: 203.0.113.0/24, excpt: [203.0.113.7/32] } }] }] }`,
    ],
    allowed: [],
    told: ['also lets in what is no "ipBlock"', 'they let in no address of IPv4'],
  },
  {
    title: 'a selector that cannot be read selects all pods',
    policies: ['{ podSelector: { matchExpressions: [{ key: app, operator: Like, values: [d*] }] } }'],
    allowed: [],
    told: ['they let in no address of IPv4'],
  },
  {
    title: 'types that cannot be read are about ingress',
    policies: ['{ podSelector: {}, policyTypes: Egress }'],
    allowed: [],
    told: ['they let in no address of IPv4'],
  },
  {
    title: 'a policy without a spec lets no client in',
    policies: ['null'],
    allowed: [],
    told: ['they let in no address of IPv4'],
  },
];

const PORTS = { containers: [{ ports: [{ name: 'http', containerPort: 8080 }] }] };
const MEMBER = endpoint('10.0.0.1', { target: 'Pod/web-1' });

function ofPolicies(policies: readonly string[]): readonly KubernetesObject[] {
  return policies.map((spec, at) => networkPolicy(spec, `policy-${at}`));
}

for (const { title, policies, allowed, told = [] } of CASES)
  test(`NetworkPolicies: ${title}`, (t) => {
    const objects = [
      service(),
      slice({ endpoints: [MEMBER] }),
      pod({ spec: PORTS }),
      ...ofPolicies(policies),
    ];
    const desired = translated(objects, ON);
    t.deepEqual(listenerOf(desired).allowedCidrs, allowed);
    t.deepEqual(membersOf(desired), ['10.0.0.1:8080 ready']);
    const { problems } = loadBalancerOf(desired);
    t.is(problems.length, told.length, JSON.stringify(problems));
    for (const [at, part] of told.entries()) {
      t.is(problems[at]?.reason, 'ClosedByPolicy');
      t.true(problems[at]?.message.startsWith('NetworkPolicies restrict TCP port 80: '));
      t.true(problems[at]?.message.includes(part), problems[at]?.message);
    }
    t.deepEqual(listenerOf(translated(objects)).allowedCidrs, ALL, 'off by default');
  });

const DENY = '{ podSelector: { matchLabels: { app: web } } }';
const allow = (cidr: string, app = 'web') =>
  `{ podSelector: { matchLabels: { app: ${app} } }, ingress: [{ from: [{ ipBlock: { cidr: "${cidr}" } }] }] }`;

function clientsWith(...objects: readonly KubernetesObject[]): readonly string[] {
  return listenerOf(translated([service(), slice({ endpoints: [MEMBER] }), ...objects], ON)).allowedCidrs;
}

test('Source ranges and NetworkPolicies both hold', (t) => {
  const ranged = service({ loadBalancerSourceRanges: ['203.0.113.0/25', '192.0.2.0/24'] });
  const objects = [ranged, slice({ endpoints: [MEMBER] }), pod()];
  const clients = (cidr: string) =>
    listenerOf(translated([...objects, networkPolicy(allow(cidr))], ON)).allowedCidrs;
  t.deepEqual(clients('203.0.113.64/26'), ['203.0.113.64/26']);
  t.deepEqual(clients('203.0.0.0/16'), ['203.0.113.0/25']);
  t.deepEqual(clients('198.51.100.0/24'), []);
});

test('Members with different policies: the clients that all of them let in', (t) => {
  const other = endpoint('10.0.0.2', { target: 'Pod/web-2' });
  const canary = pod({ name: 'web-2', labels: { app: 'canary' }, addresses: ['10.0.0.2'] });
  const objects = [
    service(),
    slice({ endpoints: [MEMBER, other] }),
    pod(),
    canary,
    networkPolicy(allow('203.0.113.0/24')),
  ];
  const both = translated([...objects, networkPolicy(allow('203.0.113.0/25', 'canary'), 'canary')], ON);
  t.deepEqual(listenerOf(both).allowedCidrs, ['203.0.113.0/25']);
  t.regex(loadBalancerOf(both).problems[0]?.message ?? '', /members have different NetworkPolicies/);
  // A member without a policy is open, so that the other one decides.
  t.deepEqual(listenerOf(translated(objects, ON)).allowedCidrs, ['203.0.113.0/24']);
});

test('A pod is found by its address, whatever an EndpointSlice calls it', (t) => {
  const secret = pod({ name: 'vault', namespace: 'bank', labels: { app: 'vault' }, addresses: ['10.0.0.1'] });
  const guarded = networkPolicy('{ podSelector: {} }', 'deny', 'bank');
  const own = pod({ name: 'web-1', addresses: ['10.0.0.9'] });
  for (const target of ['Pod/web-1', 'Pod/none', '', 'Node/n1']) {
    const desired = translated(
      [service(), slice({ endpoints: [endpoint('10.0.0.1', { target })] }), secret, guarded, own],
      ON,
    );
    t.deepEqual(listenerOf(desired).allowedCidrs, [], target);
  }
});

test('An EndpointSlice with the name of an open pod and another address has no member', (t) => {
  const own = pod({ name: 'web-1', labels: {}, addresses: ['10.0.0.9'] });
  for (const mine of [own, pod({ spec: { hostNetwork: true }, addresses: ['198.51.100.1'] })]) {
    const desired = translated([service(), slice({ endpoints: [MEMBER] }), mine], ON);
    t.deepEqual(membersOf(desired), []);
    t.regex(loadBalancerOf(desired).problems[0]?.message ?? '', /is not known yet: it is no member/);
  }
});

test('An endpoint that is no pod is open, and a pod with the address of its node is found by its name', (t) => {
  const outside = endpoint('192.0.2.77');
  const desired = translated(
    [service(), slice({ endpoints: [outside] }), networkPolicy('{ podSelector: {} }')],
    ON,
  );
  t.deepEqual(listenerOf(desired).allowedCidrs, ALL);
  t.deepEqual(clientsWith(pod({ spec: { hostNetwork: true } }), networkPolicy(allow('203.0.113.0/24'))), [
    '203.0.113.0/24',
  ]);
});

test('A pod that is not known yet is no member, and one once it is known', (t) => {
  const other = endpoint('10.0.0.2', { target: 'Pod/web-2' });
  const state = new FollowedState(
    clusterOf([
      service(),
      slice({ endpoints: [MEMBER, other] }),
      pod(),
      networkPolicy(allow('203.0.113.0/24')),
    ]),
    ON,
  );
  state.translate(['default/web']);
  t.deepEqual(membersOf(state.desired), ['10.0.0.1:8080 ready']);
  t.deepEqual(listenerOf(state.desired).allowedCidrs, ['203.0.113.0/24']);
  t.regex(
    loadBalancerOf(state.desired).problems[0]?.message ?? '',
    /Pod\/web-2 with the address 10\.0\.0\.2 is not known yet: it is no member/,
  );
  state.apply({ upserted: [pod({ name: 'web-2', addresses: ['10.0.0.2'] })], removed: [] });
  t.deepEqual(membersOf(state.desired), ['10.0.0.1:8080 ready', '10.0.0.2:8080 ready']);
  t.deepEqual(loadBalancerOf(state.desired).problems, []);
});

test('A change of a policy, or of the labels of a pod, counts at once, and those of others do nothing', (t) => {
  const state = new FollowedState(clusterOf([service(), slice({ endpoints: [MEMBER] }), pod()]), ON);
  state.translate(['default/web']);
  const clients = () => listenerOf(state.desired).allowedCidrs;
  const apply = (...upserted: KubernetesObject[]) => state.apply({ upserted, removed: [] });
  t.deepEqual([...apply(networkPolicy(DENY))], ['default/web']);
  t.deepEqual(clients(), []);
  apply(networkPolicy(allow('203.0.113.0/24'), 'more'));
  t.deepEqual(clients(), ['203.0.113.0/24']);
  apply(pod({ labels: { app: 'other' } }));
  t.deepEqual(clients(), ALL);
  t.deepEqual([...apply(networkPolicy(DENY, 'deny', 'bank'))], []);
  t.deepEqual([...apply(pod({ name: 'db-1', addresses: ['10.0.0.50'] }))], []);
  apply(pod());
  state.apply({ upserted: [], removed: [{ kind: 'NetworkPolicy', key: 'default/policy' }] });
  t.deepEqual(clients(), ['203.0.113.0/24']);
  state.apply({ upserted: [], removed: [{ kind: 'NetworkPolicy', key: 'default/more' }] });
  t.deepEqual(clients(), ALL);
});

test('Members that are nodes: the policies of the pods behind them, and no client while one of these is not known', (t) => {
  const nodes = service({
    annotations: { 'headgate.io/members': 'nodes' },
    ports: [{ port: 80, nodePort: 30080 }],
  });
  const other = endpoint('10.0.0.2', { target: 'Pod/web-2' });
  const objects = [
    nodes,
    node(),
    slice({ endpoints: [MEMBER, other] }),
    pod(),
    networkPolicy(allow('203.0.113.0/24')),
  ];
  const before = translated(objects, ON);
  t.deepEqual(membersOf(before), ['198.51.100.1:30080 ready']);
  t.deepEqual(listenerOf(before).allowedCidrs, []);
  t.regex(
    loadBalancerOf(before).problems[0]?.message ?? '',
    /nodes may send to it, so that no client is let in/,
  );
  const after = translated([...objects, pod({ name: 'web-2', addresses: ['10.0.0.2'] })], ON);
  t.deepEqual(listenerOf(after).allowedCidrs, ['203.0.113.0/24']);
});

test('Each family has the clients of its own blocks', (t) => {
  const both = service({
    loadBalancerIP: undefined,
    annotations: { 'headgate.io/load-balancer-ips': '192.0.2.10,2001:db8::10' },
  });
  const desired = translated(
    [
      both,
      slice({ endpoints: [MEMBER] }),
      slice({ name: 'web-6', endpoints: [endpoint('fd00::1', { target: 'Pod/web-1' })] }),
      pod({ addresses: ['10.0.0.1', 'fd00::1'] }),
      networkPolicy(
        '{ podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: "2001:db8::/32", except: ["2001:db8::/33"] } }] }] }',
      ),
    ],
    ON,
  );
  t.deepEqual(listenerOf(desired, 'default:web:tcp:80:v4').allowedCidrs, []);
  t.deepEqual(listenerOf(desired, 'default:web:tcp:80:v6').allowedCidrs, ['2001:db8:8000::/33']);
});

test('More ranges or policies than the load balancer takes let no client in, quickly', (t) => {
  const peers = Array.from(
    { length: 5_000 },
    (_, at) => `{ ipBlock: { cidr: 10.${at >> 8}.${at & 255}.0/24 } }`,
  );
  const many = networkPolicy(`{ podSelector: {}, ingress: [{ from: [${peers.join(', ')}] }] }`);
  const began = performance.now();
  const desired = translated([service(), slice({ endpoints: [MEMBER] }), pod(), many], ON);
  t.deepEqual(listenerOf(desired).allowedCidrs, []);
  t.regex(loadBalancerOf(desired).problems[0]?.message ?? '', /5000 ranges for port 8080, more than 1000/);
  // 990 exceptions of one address each leave some 20,000 CIDRs.
  const holes = Array.from({ length: 990 }, (_, at) => `10.${at >> 6}.${(at & 63) * 4}.1/32`);
  const pierced = networkPolicy(
    `{ podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: 10.0.0.0/8, except: [${holes.join(', ')}] } }] }] }`,
  );
  const left = translated([service(), slice({ endpoints: [MEMBER] }), pod(), pierced], ON);
  t.deepEqual(listenerOf(left).allowedCidrs, []);
  t.regex(loadBalancerOf(left).problems[0]?.message ?? '', /leave more than 1000 ranges of clients/);
  const policies = Array.from({ length: 1_001 }, (_, at) => networkPolicy(DENY, `policy-${at}`));
  const crowd = translated([service(), slice({ endpoints: [MEMBER] }), pod(), ...policies], ON);
  t.deepEqual(listenerOf(crowd).allowedCidrs, []);
  t.regex(loadBalancerOf(crowd).problems[0]?.message ?? '', /has more than 1000 NetworkPolicies/);
  t.true(performance.now() - began < 2_000);
});

test('A pod that has ended does not lend its policies to the next one with its address', (t) => {
  const ended = pod({ name: 'job-1', labels: { app: 'job' }, phase: 'Succeeded' });
  t.deepEqual(
    clientsWith(ended, pod(), networkPolicy('{ podSelector: { matchLabels: { app: job } } }')),
    ALL,
  );
});
