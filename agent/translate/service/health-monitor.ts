// The health monitor of a port, from the annotations of its Service. Pure.
// Sources for kube-proxy's health checks: pkg/proxy/healthcheck of Kubernetes, KEP-3836.

import type { Service, ServicePort } from '../../kubernetes/objects.ts';
import { type HealthMonitor, PLAIN_MONITOR, type Problem } from '../../model/load-balancer.ts';
import { type AnnotationValues, isAnnotated } from '../annotations/annotations.ts';
import { ANNOTATIONS, NO_SCTP, PREFIX } from '../annotations/table.ts';

/** The default of kube-proxy's `--healthz-bind-address`. */
const KUBE_PROXY_PORT = 10_256;

/** The monitor of the members of one port; undefined if there is none, or if its type does not fit the port or the members. */
export function healthMonitor(
  service: Service,
  port: ServicePort,
  values: AnnotationValues,
  isOnNodes: boolean,
): HealthMonitor | undefined {
  const type = typeOf(service, port, values);
  if (type === 'none') return undefined;
  if (type === 'kube-proxy') return isOnNodes ? ofKubeProxy(service, values) : undefined;
  if (type === 'udp') return port.protocol === 'UDP' ? ofMembers(type, values) : undefined;
  return port.protocol === 'TCP' || answersTcp(service, port, values) ? ofMembers(type, values) : undefined;
}

/** Why the annotation has no effect. A default of the settings applies only to the Services that it fits. */
export function monitorProblems(
  service: Service,
  values: AnnotationValues,
  isOnNodes: boolean,
): readonly Problem[] {
  const { key, ports, annotations } = service;
  const type = values.healthMonitor;
  if (type === 'none' || !isAnnotated(annotations, 'healthMonitor')) return [];
  if (ports.some((port) => healthMonitor(service, port, values, isOnNodes) !== undefined)) return [];
  const message = `Cannot use annotation "headgate.io/health-monitor": ${WHY_NOT[type] ?? NO_SCTP}`;
  return [{ object: `Service ${key}`, reason: 'MonitorNotUsed', message }];
}

const WHY_NOT: Partial<Record<AnnotationValues['healthMonitor'], string>> = {
  'kube-proxy': '"kube-proxy" is for members that are nodes, and its members are pods',
  udp: '"udp" is for UDP ports, and the Service has none',
};

/** With Octavia's own annotation, UDP ports have a probe by UDP. */
function typeOf(
  { annotations }: Service,
  { protocol }: ServicePort,
  { healthMonitor: type }: AnnotationValues,
): AnnotationValues['healthMonitor'] {
  const isOfOctavia = isAnnotated(annotations, 'healthMonitor') && !isNamed(annotations);
  return isOfOctavia && type === 'tcp' && protocol === 'UDP' ? 'udp' : type;
}

/** The Service has Headgate's own annotation. */
function isNamed(annotations: Service['annotations']): boolean {
  return Object.hasOwn(annotations, `${PREFIX}${ANNOTATIONS.healthMonitor.name}`);
}

/**
 * Whether members of a UDP or SCTP port can be expected to answer TCP: on a port for probes, or on their own port if the
 * Service itself names a type and its TCP ports, if there are any, include this number.
 */
function answersTcp(
  { ports, annotations }: Service,
  { port }: ServicePort,
  values: AnnotationValues,
): boolean {
  if (values.healthMonitorPort > 0) return true;
  const tcp = ports.filter(({ protocol }) => protocol === 'TCP');
  return isNamed(annotations) && (tcp.length === 0 || tcp.some((each) => each.port === port));
}

/** 0 if there is none. A default of the settings applies only if the monitor is a default, too. */
function portOfKubeProxy(service: Service, { healthMonitorPort }: AnnotationValues): number {
  const { annotations, externalTrafficPolicy, healthCheckNodePort } = service;
  if (isAnnotated(annotations, 'healthMonitorPort')) return healthMonitorPort;
  if (externalTrafficPolicy === 'Local' && healthCheckNodePort > 0) return healthCheckNodePort;
  return isAnnotated(annotations, 'healthMonitor') ? 0 : healthMonitorPort;
}

function ofKubeProxy(service: Service, values: AnnotationValues): HealthMonitor {
  return {
    ...PLAIN_MONITOR,
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
    ...PLAIN_MONITOR,
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
