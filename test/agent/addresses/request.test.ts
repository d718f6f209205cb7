import test from 'ava';
import {
  type AddressAnnotations,
  type AddressRequest,
  addressRequest,
} from '../../../agent/addresses/request.ts';
import { gatewayNeeds, ingressClassNeeds, serviceNeeds } from '../../../agent/addresses/requesters.ts';
import { service } from '../../support/values/build.ts';
import { gateway, ingress, ingressClass } from '../../support/values/gateways.ts';

interface Annotations extends AddressAnnotations {
  readonly loadBalancerIps: readonly string[];
}

const NONE: Annotations = {
  loadBalancerIps: [],
  addressPool: undefined,
  addressSharingKey: undefined,
  publicAddress: [],
};

const asks = test.macro(
  (
    t,
    given: Parameters<typeof service>[0],
    annotations: Partial<Annotations>,
    expected: Partial<AddressRequest>,
  ) => {
    const all = { ...NONE, ...annotations };
    const asking = service({ loadBalancerIP: undefined, ...given });
    const request = addressRequest(serviceNeeds(asking, all.loadBalancerIps), all);
    t.like(request, { problems: [], ...expected });
  },
);

const v4 = (address: string) => ({ address, family: 'v4' as const });
const v6 = (address: string) => ({ address, family: 'v6' as const });

test(
  'A manifest that says nothing asks for one address, IPv4 if it can be had',
  asks,
  {},
  {},
  {
    key: 'default/web',
    namespace: 'default',
    families: ['v4', 'v6'],
    need: 'one',
    given: [],
    pool: undefined,
    sharingKey: '',
    ports: [{ protocol: 'TCP', port: 80 }],
  },
);
// Conformance: spec.ipFamilies, spec.ipFamilyPolicy
test(
  'A single-stack Service asks for the family that the API server gave it',
  asks,
  { ipFamilies: ['v6'], ipFamilyPolicy: 'SingleStack' },
  {},
  {
    families: ['v6'],
    need: 'all',
  },
);
// Conformance: spec.ipFamilies, spec.ipFamilyPolicy
test(
  'PreferDualStack asks for as many as can be had, the primary family first',
  asks,
  { ipFamilies: ['v6', 'v4'], ipFamilyPolicy: 'PreferDualStack' },
  {},
  {
    families: ['v6', 'v4'],
    need: 'some',
  },
);
// Conformance: spec.ipFamilies, spec.ipFamilyPolicy
test(
  'PreferDualStack on a cluster of one family asks for that one',
  asks,
  { ipFamilies: ['v4'], ipFamilyPolicy: 'PreferDualStack' },
  {},
  {
    families: ['v4'],
  },
);
test(
  'RequireDualStack in a manifest without families asks for both',
  asks,
  { ipFamilyPolicy: 'RequireDualStack' },
  {},
  {
    families: ['v4', 'v6'],
    need: 'all',
  },
);
test(
  'The annotation goes before spec.loadBalancerIP',
  asks,
  { loadBalancerIP: '192.0.2.9' },
  { loadBalancerIps: ['192.0.2.1', '2001:db8::1'] },
  {
    families: ['v4', 'v6'],
    need: 'all',
    given: [v4('192.0.2.1'), v6('2001:db8::1')],
  },
);
test(
  'spec.loadBalancerIP is asked for',
  asks,
  { loadBalancerIP: ' 2001:DB8::9 ', ipFamilies: ['v6'] },
  {},
  {
    families: ['v6'],
    given: [v6('2001:db8::9')],
  },
);
test(
  'A dual-stack Service may pin one family',
  asks,
  { ipFamilies: ['v4', 'v6'], ipFamilyPolicy: 'PreferDualStack' },
  { loadBalancerIps: ['2001:db8::1'] },
  {
    families: ['v4', 'v6'],
    need: 'some',
    given: [v6('2001:db8::1')],
  },
);
test(
  'Pool, sharing key, ports and status are taken over',
  asks,
  {
    ports: [443, 80, { protocol: 'UDP', port: 53 }],
    statusIPs: ['192.0.2.1', '2001:db8::1'],
  },
  { addressPool: 'a', addressSharingKey: 'k' },
  {
    pool: 'a',
    sharingKey: 'k',
    ports: [
      { protocol: 'TCP', port: 80 },
      { protocol: 'TCP', port: 443 },
      { protocol: 'UDP', port: 53 },
    ],
    statusIPs: [v4('192.0.2.1'), v6('2001:db8::1')],
  },
);
test(
  'Without a port there is nothing to share',
  asks,
  { ports: [] },
  { addressSharingKey: 'k' },
  { sharingKey: '' },
);
test(
  'An address of a family that the Service has not is refused, and nothing else is given in its place',
  asks,
  { ipFamilies: ['v4'] },
  { loadBalancerIps: ['2001:db8::1'] },
  {
    need: 'nothing',
    given: [],
    problems: [
      {
        object: 'Service default/web',
        reason: 'InvalidAddress',
        message:
          'Cannot use annotation "headgate.io/load-balancer-ips": "2001:db8::1" is not of the Service\'s spec.ipFamilies (IPv4)',
      },
    ],
  },
);
test(
  'A text that is no address is refused',
  asks,
  { loadBalancerIP: '192.0.2.256' },
  {},
  {
    need: 'nothing',
    problems: [
      {
        object: 'Service default/web',
        reason: 'InvalidAddress',
        message: 'Cannot use spec.loadBalancerIP: "192.0.2.256" is not an IPv4 or IPv6 address',
      },
    ],
  },
);

const ipAddress = (value?: string) => ({ type: 'IPAddress', ...(value && { value }) });

const gatewayAsks = test.macro((t, addresses: readonly object[], expected: Partial<AddressRequest>) => {
  t.like(addressRequest(gatewayNeeds(gateway('edge', { addresses })), NONE), expected);
});

test('A Gateway that names no address asks for one, IPv4 if it can be had', gatewayAsks, [], {
  key: 'gateway:default/edge',
  namespace: 'default',
  uid: 'uid-edge',
  families: ['v4', 'v6'],
  need: 'one',
  given: [],
  ports: [{ protocol: 'TCP', port: 80 }],
});
// Gateway API, GatewaySpec.addresses: an address without a value asks for any.
test('A Gateway with an empty address asks for one', gatewayAsks, [ipAddress()], {
  families: ['v4', 'v6'],
  need: 'one',
});
test(
  'A Gateway with two empty addresses asks for one of each family',
  gatewayAsks,
  [ipAddress(), ipAddress()],
  {
    families: ['v4', 'v6'],
    need: 'some',
  },
);
test('A Gateway asks for the address that it names', gatewayAsks, [ipAddress('192.0.2.250')], {
  families: ['v4'],
  need: 'all',
  given: [v4('192.0.2.250')],
});
test(
  'A Gateway that names a second address of a family gets the first one and a problem',
  gatewayAsks,
  [ipAddress('192.0.2.250'), ipAddress('192.0.2.251')],
  {
    given: [v4('192.0.2.250')],
    problems: [
      {
        object: 'Gateway default/edge',
        reason: 'InvalidAddress',
        message:
          'Cannot use spec.addresses: "192.0.2.251" is the second address of its family, only one of each is supported',
      },
    ],
  },
);
test(
  'A Gateway with an address of an unsupported type gets nothing new',
  gatewayAsks,
  [{ type: 'Hostname', value: 'edge.example.org' }],
  { need: 'nothing' },
);

test('An IngressClass asks for one address, and keeps that of the statuses of its Ingresses', (t) => {
  const shown = { ...ingress(), statusIPs: ['192.0.2.7'] };
  const request = addressRequest(ingressClassNeeds(ingressClass(), [], [ingress('other'), shown]), NONE);
  t.like(request, {
    key: 'ingress:-/edge',
    namespace: '-',
    need: 'one',
    statusIPs: [v4('192.0.2.7')],
    ports: [
      { protocol: 'TCP', port: 80 },
      { protocol: 'TCP', port: 443 },
    ],
  });
});
