// What Headgate claims of Gateway API, and which of its conformance tests fail for a reason: any other result fails a run of
// the suite.

import { SUPPORTED_FEATURES } from '../../agent/translate/gateway/gateway-class-translator.ts';
import { CLUSTER_PROGRAMS } from '../support/kube/whole-cluster.ts';

/** Programs of kube-assets.sh. */
export const PROGRAMS = [
  ...CLUSTER_PROGRAMS,
  'gateway.test',
  'gateway-crds.yaml',
  'echo-basic',
  'coredns',
] as const;

export const GATEWAY_CLASS = 'headgate';
export const CONTROLLER_NAME = 'headgate.io/gateway-controller';
/** The one that a test asks for by name, outside automatic choice. */
export const STATIC_ADDRESS = '10.245.0.250';
/** Outside all pools, so that a Gateway must not get it. */
export const UNUSABLE_ADDRESS = '192.0.2.1';

/** Settings of Headgate. */
export const SETTINGS = {
  pools: [
    { name: 'gateways', blocks: ['10.245.0.1-10.245.0.200'] },
    { name: 'static', blocks: [STATIC_ADDRESS], auto: false },
  ],
};

/** Each brings its core features. */
export const PROFILES: readonly string[] = [
  'GATEWAY-HTTP',
  'GATEWAY-TLS',
  'GATEWAY-GRPC',
  'GATEWAY-TCP',
  'GATEWAY-UDP',
];

/** Features that Headgate claims in the status of its GatewayClasses. */
export const FEATURES: readonly string[] = SUPPORTED_FEATURES;

/** Every other extended feature of the profiles. */
export const NOT_CLAIMED: readonly { readonly why: string; readonly features: readonly string[] }[] = [
  {
    why: 'HAProxy verifies the certificate of a member by one hostname.',
    features: ['BackendTLSPolicySANValidation'],
  },
  {
    why: 'Headgate makes no objects of the cluster for a Gateway that could carry its labels.',
    features: ['GatewayInfrastructure'],
  },
];

/** A test that fails, or skips itself → why. */
export const DIFFERENCES: Readonly<Record<string, string>> = {};

/** Tests of all profiles that `make test` runs. */
export const FAST_TESTS: readonly string[] = [
  'GatewayModifyListeners',
  'GatewayStaticAddresses',
  'GRPCExactMethodMatching',
  'GRPCRouteWeight',
  'HTTPRouteHTTPSListener',
  'HTTPRouteHeaderMatching',
  'HTTPRouteMatching',
  'HTTPRouteRedirectHostAndStatus',
  'HTTPRouteReferenceGrant',
  'HTTPRouteRequestHeaderModifier',
  'HTTPRouteSimpleSameNamespace',
  'HTTPRouteWeight',
  'TCPRouteWeightedRouting',
  'TLSRouteSimpleSameNamespace',
  'TLSRouteTerminateSimpleSameNamespace',
  'UDPRoute',
];
