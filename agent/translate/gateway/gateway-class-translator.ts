// Translates GatewayClasses: they have no load balancer, only a status, which says what the agent can do. Pure.
// Why: docs/design/decisions/0078-no-finalizer-on-classes.md

import type { GatewayClass } from '../../kubernetes/gateway/gateway-objects.ts';
import type { OwnerKey } from '../../model/load-balancer.ts';
import { ownerOf } from '../../model/names.ts';
import { NO_PORTS, type RequestedPorts, type Translation, type Translator } from '../translate.ts';
import { isFalse, isOurs, isTrue } from './conditions.ts';
import { supportedVersion } from './supported-version.ts';

/** Features of the Gateway API 1.6, sorted. */
export const SUPPORTED_FEATURES = [
  'BackendTLSPolicy',
  'GRPCRoute',
  'GRPCRouteNamedRouteRule',
  'Gateway',
  'GatewayAddressEmpty',
  'GatewayBackendClientCertificate',
  'GatewayFrontendClientCertificateValidation',
  'GatewayFrontendClientCertificateValidationInsecureFallback',
  'GatewayHTTPListenerIsolation',
  'GatewayHTTPSListenerDetectMisdirectedRequests',
  'GatewayPort8080',
  'GatewayStaticAddresses',
  'HTTPRoute',
  'HTTPRoute303RedirectStatusCode',
  'HTTPRoute307RedirectStatusCode',
  'HTTPRoute308RedirectStatusCode',
  'HTTPRouteBackendProtocolH2C',
  'HTTPRouteBackendProtocolWebSocket',
  'HTTPRouteBackendRequestHeaderModification',
  'HTTPRouteBackendTimeout',
  'HTTPRouteCORS',
  'HTTPRouteDestinationPortMatching',
  'HTTPRouteHostRewrite',
  'HTTPRouteMethodMatching',
  'HTTPRouteNamedRouteRule',
  'HTTPRouteParentRefPort',
  'HTTPRoutePathRedirect',
  'HTTPRoutePathRewrite',
  'HTTPRoutePortRedirect',
  'HTTPRouteQueryParamMatching',
  'HTTPRouteRequestMirror',
  'HTTPRouteRequestMultipleMirrors',
  'HTTPRouteRequestPercentageMirror',
  'HTTPRouteRequestTimeout',
  'HTTPRouteResponseHeaderModification',
  'HTTPRouteRetry',
  'HTTPRouteRetryBackendTimeout',
  'HTTPRouteRetryConnectionError',
  'HTTPRouteSchemeRedirect',
  'ListenerSet',
  'ReferenceGrant',
  'TCPRoute',
  'TLSRoute',
  'TLSRouteModeMixed',
  'TLSRouteModeTerminate',
  'UDPRoute',
] as const;

export class GatewayClassTranslator implements Translator {
  readonly #find: (name: string) => GatewayClass | undefined;

  readonly #versions: () => Readonly<Record<string, string>> | undefined;

  /** `versions`: of the cluster's definitions; undefined if they are not known. */
  constructor(
    cluster: { gatewayClass(name: string): GatewayClass | undefined },
    versions: () => Readonly<Record<string, string>> | undefined,
  ) {
    this.#find = (name) => cluster.gatewayClass(name);
    this.#versions = versions;
  }

  ports(): RequestedPorts {
    return NO_PORTS;
  }

  translate(key: OwnerKey): Translation {
    const { name } = ownerOf(key);
    const found = this.#find(name);
    if (found === undefined) return { result: undefined, reads: [] };
    const reads = [`gatewayclass ${name}` as const];
    if (!isOurs(found)) return { result: undefined, reads };
    const { uid, generation, hasParameters } = found;
    const accepted = hasParameters
      ? isFalse('Accepted', 'InvalidParameters', 'spec.parametersRef is not supported; remove it')
      : isTrue('Accepted', 'Accepted', 'Headgate serves the Gateways of this class');
    const versions = this.#versions();
    const status = {
      kind: 'GatewayClass' as const,
      namespace: '',
      name,
      uid,
      generation,
      conditions: [accepted, ...(versions === undefined ? [] : [supportedVersion(versions)])],
      supportedFeatures: SUPPORTED_FEATURES,
    };
    return { result: undefined, reads, statuses: [status] };
  }
}
