// The health monitor that a Service asks for: the annotations', or kube-proxy's own answers where members are nodes.
// Pure. Sources: pkg/proxy/healthcheck of Kubernetes, KEP-3836 (kube-proxy's /healthz and nodes that go away).

import type { Service } from '../../kubernetes/objects.ts';
import type { HealthMonitor, Problem } from '../../model/load-balancer.ts';
import { type AnnotationValues, isAnnotated } from '../annotations/annotations.ts';

/** `--healthz-bind-address` of kube-proxy, as nearly every cluster leaves it. */
const KUBE_PROXY_PORT = 10_256;

/** undefined where nobody asks for one, or where what is asked for is not for these members. */
export function healthMonitor(
  service: Service,
  values: AnnotationValues,
  onNodes: boolean,
  problems: Problem[],
): HealthMonitor | undefined {
  const { healthMonitor: type } = values;
  if (type === 'none') return undefined;
  if (type !== 'kube-proxy') return ofMembers(type, values);
  if (onNodes) return ofKubeProxy(service, values);
  // As a default for all Services it is for those that it fits.
  if (isAnnotated(service.annotations, 'healthMonitor')) problems.push(notForPods(service));
  return undefined;
}

/** What a type that does not ask for it has. */
const nothing = {
  path: '',
  method: '',
  expectedCodes: '',
  expectedBody: '',
  expectedBodyPattern: '',
  host: '',
  sni: '',
  grpcService: '',
} as const;

/** 0 where nobody names one. A default for all Services is kube-proxy's only where the default monitor is. */
function portOfKubeProxy(service: Service, { healthMonitorPort }: AnnotationValues): number {
  const { annotations, externalTrafficPolicy, healthCheckNodePort } = service;
  if (isAnnotated(annotations, 'healthMonitorPort')) return healthMonitorPort;
  if (externalTrafficPolicy === 'Local' && healthCheckNodePort > 0) return healthCheckNodePort;
  return isAnnotated(annotations, 'healthMonitor') ? 0 : healthMonitorPort;
}

function ofKubeProxy(service: Service, values: AnnotationValues): HealthMonitor {
  return {
    ...nothing,
    type: 'http',
    path: '/healthz',
    method: 'GET',
    expectedCodes: '200',
    port: portOfKubeProxy(service, values) || KUBE_PROXY_PORT,
    ...patience(values),
  };
}

function ofMembers(type: HealthMonitor['type'], values: AnnotationValues): HealthMonitor {
  const speaksHttp = type === 'http' || type === 'https';
  const speaksGrpc = type === 'grpc' || type === 'grpcs';
  const speaksTls = type === 'https' || type === 'tls' || type === 'grpcs';
  const host = speaksHttp || speaksGrpc ? values.healthMonitorHost : '';
  // An answer to HEAD has no body that a default could ask for.
  const hasBody = speaksHttp && values.healthMonitorMethod !== 'HEAD';
  return {
    ...nothing,
    type,
    ...(speaksHttp && {
      path: values.healthMonitorPath,
      method: values.healthMonitorMethod,
      expectedCodes: values.healthMonitorExpectedCodes,
    }),
    ...(hasBody && {
      expectedBody: values.healthMonitorExpectedBody,
      expectedBodyPattern: values.healthMonitorExpectedBodyPattern,
    }),
    host,
    sni: speaksTls ? values.healthMonitorSni || host.replace(/:\d+$/, '') : '',
    grpcService: speaksGrpc ? values.healthMonitorGrpcService : '',
    port: values.healthMonitorPort,
    ...patience(values),
  };
}

function patience(values: AnnotationValues): Pick<HealthMonitor, 'interval' | 'timeout' | 'rise' | 'fall'> {
  return {
    interval: values.healthMonitorInterval,
    timeout: values.healthMonitorTimeout,
    rise: values.healthMonitorRise,
    fall: values.healthMonitorFall,
  };
}

function notForPods(service: Service): Problem {
  return {
    object: `Service ${service.key}`,
    reason: 'MonitorNotUsed',
    message:
      'Cannot use annotation "headgate.io/health-monitor": "kube-proxy" is for members that are nodes, and its members are pods',
  };
}
