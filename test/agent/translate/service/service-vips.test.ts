import test from 'ava';
import type { Service } from '../../../../agent/kubernetes/objects.ts';
import {
  getsAddresses,
  reasonToIgnore,
  serviceVips,
  unusedPublicAddress,
} from '../../../../agent/translate/service/service-vips.ts';
import type { OwnershipSettings } from '../../../../agent/translate/translate-settings.ts';
import { service } from '../../../support/values/build.ts';
import { SETTINGS } from '../../../support/values/translated.ts';

const ownership = test.macro(
  (
    t,
    given: Parameters<typeof service>[0],
    settings: Partial<OwnershipSettings>,
    reason: string | undefined,
  ) => {
    t.is(reasonToIgnore(service(given), { ...SETTINGS, ...settings }, false), reason);
  },
);

// Conformance: spec.loadBalancerClass
test("A Service of this agent's class is served", ownership, {}, {}, undefined);
// Conformance: spec.loadBalancerClass
test(
  'A Service of another class is not served, even with handleUnclassed',
  ownership,
  { loadBalancerClass: 'example.org/other' },
  { handleUnclassed: true },
  'Its spec.loadBalancerClass is "example.org/other", not "headgate.io/agent"',
);
// Conformance: spec.loadBalancerClass
test(
  'A Service without a class is served with handleUnclassed',
  ownership,
  { loadBalancerClass: undefined },
  { handleUnclassed: true },
  undefined,
);
// Conformance: spec.loadBalancerClass
test(
  'A Service without a class is not served without handleUnclassed',
  ownership,
  { loadBalancerClass: undefined },
  {},
  'It has no spec.loadBalancerClass, and the setting handleUnclassed is off; this agent\'s class is "headgate.io/agent"',
);
// Conformance: spec.loadBalancerClass
test(
  'The setting loadBalancerClass names the class that is served',
  ownership,
  { loadBalancerClass: 'example.org/edge' },
  { loadBalancerClass: 'example.org/edge' },
  undefined,
);
for (const type of ['ClusterIP', 'NodePort'] as const) {
  // Conformance: spec.type
  test(
    `A Service of type ${type} is not served with any class`,
    ownership,
    { type },
    { handleUnclassed: true },
    `It is of type ${type}, not LoadBalancer`,
  );
}
// Conformance: clusterIP: None, type: ExternalName
test(
  'An ExternalName Service is not served, even with external IPs',
  ownership,
  { type: 'ExternalName', externalIPs: ['192.0.2.1'] },
  { externalIPs: true },
  'It is of type ExternalName: it has no members to send traffic to',
);
// Conformance: clusterIP: None, type: ExternalName
test(
  'A headless Service is not served',
  ownership,
  { headless: true },
  {},
  'It is headless (spec.clusterIP: None): clients reach its pods directly',
);
// Conformance: labels service.kubernetes.io/service-proxy-name, service.kubernetes.io/headless
test(
  'A Service with the label service-proxy-name is not served',
  ownership,
  { labels: { 'service.kubernetes.io/service-proxy-name': 'cilium' } },
  {},
  'It has the label "service.kubernetes.io/service-proxy-name": another proxy serves it',
);
// Conformance: labels service.kubernetes.io/service-proxy-name, service.kubernetes.io/headless
test(
  'A Service with the label headless is not served, even if the value is empty',
  ownership,
  { labels: { 'service.kubernetes.io/headless': '' } },
  {},
  'It has the label "service.kubernetes.io/headless": another proxy serves it',
);
// Conformance: metadata.deletionTimestamp
test(
  'A Service that is being deleted is not served',
  ownership,
  { deleting: true },
  {},
  'It is being deleted',
);
// Conformance: spec.externalIPs
test(
  'External IPs do not make the agent serve a Service without the setting externalIPs',
  ownership,
  { type: 'ClusterIP', externalIPs: ['192.0.2.1'] },
  {},
  'It is of type ClusterIP, not LoadBalancer',
);
// Conformance: spec.externalIPs
test(
  'External IPs make the agent serve a Service of any type with the setting externalIPs',
  ownership,
  { type: 'ClusterIP', externalIPs: ['192.0.2.1'] },
  { externalIPs: true },
  undefined,
);
test(
  'Cluster IPs make the agent serve a Service of any type with the setting clusterIPs',
  ownership,
  { type: 'NodePort', clusterIPs: ['10.96.0.1'] },
  { clusterIPs: true },
  undefined,
);

function vipsOf(
  given: Partial<Service>,
  annotation: readonly string[] = [],
  settings: Partial<OwnershipSettings> = {},
) {
  const { vips, problems } = serviceVips(service(given), annotation, { ...SETTINGS, ...settings });
  return {
    vips: vips.map(({ address, source }) => `${address} ${source}`),
    problems: problems.map(({ message }) => message),
  };
}

// Conformance: spec.loadBalancerIP
test('The annotation has precedence over spec.loadBalancerIP and the status', (t) => {
  const given = { loadBalancerIP: '192.0.2.2', statusIPs: ['192.0.2.3'] };
  t.deepEqual(vipsOf(given, ['192.0.2.1', '2001:db8::1']), {
    vips: ['192.0.2.1 annotation', '2001:db8::1 annotation'],
    problems: [],
  });
});

// Conformance: spec.loadBalancerIP
test('spec.loadBalancerIP has precedence over the status', (t) => {
  const given = { loadBalancerIP: '192.0.2.2', statusIPs: ['192.0.2.3'] };
  t.deepEqual(vipsOf(given), { vips: ['192.0.2.2 spec.loadBalancerIP'], problems: [] });
});

test('The status gives the addresses if nothing else does', (t) => {
  const given = { loadBalancerIP: undefined, statusIPs: ['192.0.2.3', '2001:db8::3'] };
  t.deepEqual(vipsOf(given), { vips: ['192.0.2.3 status', '2001:db8::3 status'], problems: [] });
});

// Conformance: spec.loadBalancerIP
test('Blanks around spec.loadBalancerIP are ignored', (t) => {
  t.deepEqual(vipsOf({ loadBalancerIP: ' 192.0.2.2\n' }).vips, ['192.0.2.2 spec.loadBalancerIP']);
});

test('Addresses are canonical for any spelling in the Service', (t) => {
  t.deepEqual(vipsOf({ loadBalancerIP: '2001:DB8:0:0::00:5' }).vips, ['2001:db8::5 spec.loadBalancerIP']);
});

// Conformance: spec.loadBalancerIP
test('A hostname instead of an address is a problem', (t) => {
  t.deepEqual(vipsOf({ loadBalancerIP: 'lb.example.org' }), {
    vips: [],
    problems: ['Cannot use spec.loadBalancerIP: "lb.example.org" is not an IPv4 or IPv6 address'],
  });
});

const refused = test.macro({
  title: (given, address: string) => given ?? `The VIP ${address} is refused`,
  exec: (t, address: string, why: string) => {
    const { vips, problems } = vipsOf({ loadBalancerIP: address });
    t.deepEqual(vips, []);
    t.deepEqual(problems, [`Cannot use spec.loadBalancerIP: "${address}" ${why}`]);
  },
});
test(refused, '0.0.0.0', 'is the unspecified address, which stands for every address of the host');
test(refused, '::', 'is the unspecified address, which stands for every address of the host');
test(refused, '224.0.0.5', 'is a multicast address');
test(refused, '255.255.255.255', 'is a multicast address');
test(refused, 'ff02::1', 'is a multicast address');
test(refused, 'fe80::1', 'is a link-local address, which has no meaning without an interface');
test(refused, '192.0.2.1/24', 'is not an IPv4 or IPv6 address');
test(refused, '::ffff:192.0.2.1', 'is not an IPv4 or IPv6 address');

test('An address of a family that the Service does not have is a problem', (t) => {
  t.deepEqual(vipsOf({ ipFamilies: ['v4'] }, ['192.0.2.1', '2001:db8::1']), {
    vips: ['192.0.2.1 annotation'],
    problems: [
      'Cannot use annotation "headgate.io/load-balancer-ips": "2001:db8::1" is not of the Service\'s spec.ipFamilies (IPv4)',
    ],
  });
});

test('An address that is none costs only itself', (t) => {
  t.deepEqual(vipsOf({}, ['192.0.2.1', '2001:db8::g']), {
    vips: ['192.0.2.1 annotation'],
    problems: [
      'Cannot use annotation "headgate.io/load-balancer-ips": "2001:db8::g" is not an IPv4 or IPv6 address',
    ],
  });
});

test('Addresses of both families are allowed if the Service names no families', (t) => {
  t.is(vipsOf({ ipFamilies: [] }, ['192.0.2.1', '2001:db8::1']).vips.length, 2);
});

// Conformance: spec.externalIPs
test('External IPs are VIPs only with the setting externalIPs', (t) => {
  t.deepEqual(vipsOf({ externalIPs: ['192.0.2.9'] }).vips, ['192.0.2.10 spec.loadBalancerIP']);
});

test('External and cluster IPs follow the address of the load balancer, without duplicates', (t) => {
  const given = {
    externalIPs: ['192.0.2.9', '192.0.2.10', 'fe80::1'],
    clusterIPs: ['10.96.0.1', '192.0.2.9'],
  };
  t.deepEqual(vipsOf(given, [], { externalIPs: true, clusterIPs: true }), {
    vips: ['192.0.2.10 spec.loadBalancerIP', '192.0.2.9 spec.externalIPs', '10.96.0.1 spec.clusterIPs'],
    problems: [
      'Cannot use spec.externalIPs: "fe80::1" is a link-local address, which has no meaning without an interface',
    ],
  });
});

// Conformance: spec.externalIPs
test('A Service of another class that is served for its external IPs keeps its load-balancer address to itself', (t) => {
  const given = { loadBalancerClass: 'example.org/other', externalIPs: ['192.0.2.9'] };
  t.deepEqual(vipsOf(given, ['192.0.2.1'], { externalIPs: true }).vips, ['192.0.2.9 spec.externalIPs']);
});

const ofAnother = { loadBalancerClass: undefined, statusIPs: ['192.0.2.77'], hasForeignStatus: true };
const left =
  'Another controller has given it an address: its status shows 192.0.2.77, which no AddressPool has; to have it served here, give an AddressPool its address, or set annotation "headgate.io/load-balancer-ips"';
test(
  'A Service to which another controller gave its address is left alone',
  ownership,
  ofAnother,
  { handleUnclassed: true },
  left,
);
test(
  'So is one whose status shows a name of a cloud',
  ownership,
  { ...ofAnother, statusIPs: [] },
  { handleUnclassed: true },
  left.replace('192.0.2.77', 'a name'),
);
for (const annotations of [
  { 'metallb.io/loadBalancerIPs': '192.0.2.77' },
  { 'example.org/headgate.io/x': '' },
])
  test(
    `The annotation ${Object.keys(annotations)} of another controller changes nothing`,
    ownership,
    { ...ofAnother, annotations },
    { handleUnclassed: true },
    left,
  );
test(
  'An annotation of Headgate asks for the Service',
  ownership,
  { ...ofAnother, annotations: { 'headgate.io/load-balancer-ips': '192.0.2.77' } },
  { handleUnclassed: true },
  undefined,
);
test('So does its class', ownership, { ...ofAnother, loadBalancerClass: 'headgate.io/agent' }, {}, undefined);
test('A Service of another controller that a pool has is served', (t) => {
  const settings = { ...SETTINGS, handleUnclassed: true };
  t.is(reasonToIgnore(service(ofAnother), settings, true), undefined);
  t.true(getsAddresses(service(ofAnother), settings, true));
  t.false(getsAddresses(service(ofAnother), settings, false));
  t.deepEqual(serviceVips(service({ ...ofAnother, loadBalancerIP: '192.0.2.5' }), [], settings).vips, []);
});
test('Its external IPs are served, but not the address of the other controller', (t) => {
  const settings = { ...SETTINGS, handleUnclassed: true, externalIPs: true };
  const given = service({ ...ofAnother, externalIPs: ['192.0.2.9'] });
  t.is(reasonToIgnore(given, settings, false), undefined);
  t.false(getsAddresses(given, settings, false));
  t.deepEqual(
    serviceVips(given, [], settings).vips.map(({ address }) => address),
    ['192.0.2.9'],
  );
});

test('A Service without an address of a pool is told that its public address is not used', (t) => {
  const vip = { address: '192.0.2.1', family: 'v4', source: 'annotation' } as const;
  t.regex(
    unusedPublicAddress('default/web', ['203.0.113.9'], [vip])[0]?.message ?? '',
    /no address of a pool/,
  );
  t.deepEqual(unusedPublicAddress('default/web', ['203.0.113.9'], [{ ...vip, source: 'pool' }]), []);
  t.deepEqual(unusedPublicAddress('default/web', [], [vip]), []);
});
