// The health monitor of a Service, from its annotations. Pure.
// Sources for kube-proxy's health checks: pkg/proxy/healthcheck of Kubernetes, KEP-3836.

import type { Service } from '../../kubernetes/objects.ts';
import type { HealthMonitor, Problem } from '../../model/load-balancer.ts';
import { type AnnotationValues, isAnnotated } from '../annotations/annotations.ts';

/** The default of kube-proxy's `--healthz-bind-address`. */
const KUBE_PROXY_PORT = 10_256;

/** undefined if the Service has no monitor, or if the type does not fit its members. */
export function healthMonitor(
  service: Service,
  values: AnnotationValues,
  isOnNodes: boolean,
  problems: Problem[],
): HealthMonitor | undefined {
  const { healthMonitor: type } = values;
  if (type === 'none') return undefined;
  if (type !== 'kube-proxy') return ofMembers(type, values);
  if (isOnNodes) return ofKubeProxy(service, values);
  // A default of the settings applies only to the Services that it fits.
  if (isAnnotated(service.annotations, 'healthMonitor')) problems.push(notForPods(service));
  return undefined;
}

/** The fields that a type does not use. */
const UNUSED = {
  path: '',
  method: '',
  expectedCodes: '',
  expectedBody: '',
  expectedBodyPattern: '',
  host: '',
  sni: '',
  grpcService: '',
} as const;

/** 0 if there is none. A default of the settings applies only if the monitor is a default, too. */
function portOfKubeProxy(service: Service, { healthMonitorPort }: AnnotationValues): number {
  const { annotations, externalTrafficPolicy, healthCheckNodePort } = service;
  if (isAnnotated(annotations, 'healthMonitorPort')) return healthMonitorPort;
  if (externalTrafficPolicy === 'Local' && healthCheckNodePort > 0) return healthCheckNodePort;
  return isAnnotated(annotations, 'healthMonitor') ? 0 : healthMonitorPort;
}

function ofKubeProxy(service: Service, values: AnnotationValues): HealthMonitor {
  return {
    ...UNUSED,
    type: 'http',
    path: '/healthz',
    method: 'GET',
    expectedCodes: '200',
    port: portOfKubeProxy(service, values) || KUBE_PROXY_PORT,
    ...timing(values),
  };
}

function ofMembers(type: HealthMonitor['type'], values: AnnotationValues): HealthMonitor {
  const speaksHttp = type === 'http' || type === 'https';
  const speaksGrpc = type === 'grpc' || type === 'grpcs';
  const speaksTls = type === 'https' || type === 'tls' || type === 'grpcs';
  const host = speaksHttp || speaksGrpc ? values.healthMonitorHost : '';
  // The answer to HEAD has no body, which a default might require.
  const hasBody = speaksHttp && values.healthMonitorMethod !== 'HEAD';
  return {
    ...UNUSED,
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
    ...timing(values),
  };
}

function timing(values: AnnotationValues): Pick<HealthMonitor, 'interval' | 'timeout' | 'rise' | 'fall'> {
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
