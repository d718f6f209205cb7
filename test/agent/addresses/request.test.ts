import test from 'ava';
import {
  type AddressAnnotations,
  type AddressRequest,
  addressRequest,
} from '../../../agent/addresses/request.ts';
import { service } from '../../support/values/build.ts';

const NONE: AddressAnnotations = {
  loadBalancerIps: [],
  addressPool: undefined,
  addressSharingKey: undefined,
};

const asks = test.macro(
  (
    t,
    given: Parameters<typeof service>[0],
    annotations: Partial<AddressAnnotations>,
    expected: Partial<AddressRequest>,
  ) => {
    const request = addressRequest(service({ loadBalancerIP: undefined, ...given }), {
      ...NONE,
      ...annotations,
    });
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
