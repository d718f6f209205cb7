// Decides who forwards a port: HAProxy, or the kernel, which forwards UDP and SCTP, and TCP if the Service asks for that and for
// nothing that only HAProxy can do. Pure.

import type { Service, ServicePort } from '../../kubernetes/objects.ts';
import type { Engine, Problem } from '../../model/load-balancer.ts';
import { protection } from '../../protection/judge-names.ts';
import { ANNOTATION_DEFAULTS, type AnnotationValues, isAnnotated } from '../annotations/annotations.ts';
import { ANNOTATIONS, type Field } from '../annotations/table.ts';

/** With another value than this, a port needs HAProxy. */
const OF_HAPROXY = {
  mode: 'tcp',
  tlsCertificate: ANNOTATION_DEFAULTS.tlsCertificate,
  memberTls: 'none',
  acceptProxyProtocol: false,
  proxyProtocol: 'none',
  connectionLimit: 0,
  rateLimit: 0,
  memberConnectionLimit: 0,
} as const satisfies Partial<AnnotationValues>;

const FIELDS = Object.keys(OF_HAPROXY) as readonly (keyof typeof OF_HAPROXY)[];

export function engineOf({ protocol }: Pick<ServicePort, 'protocol'>, values: AnnotationValues): Engine {
  if (protocol !== 'TCP') return 'kernel';
  return values.engine === 'kernel' && needingHaproxy(values).length === 0 ? 'kernel' : 'haproxy';
}

/** Only TCP ports can have what the Service asks for as protection, and it has none. */
export function needsTcpPort(
  { ports, annotations }: Pick<Service, 'ports' | 'annotations'>,
  values: AnnotationValues,
): boolean {
  if (ports.some(({ protocol }) => protocol === 'TCP')) return false;
  return FIELDS.some((field) => {
    const protects = field !== 'mode' && protection(ANNOTATIONS[field].name) !== undefined;
    return protects && isAnnotated(annotations, field) && values[field] !== OF_HAPROXY[field];
  });
}

/** Annotations that the engine of the ports cannot carry out. */
export function engineProblems(
  { key, ports, annotations }: Pick<Service, 'key' | 'ports' | 'annotations'>,
  values: AnnotationValues,
): readonly Problem[] {
  const problem = (field: Field, why: string): Problem => ({
    object: `Service ${key}`,
    reason: 'InvalidAnnotation',
    message: `Cannot use annotation "headgate.io/${ANNOTATIONS[field].name}": ${why}`,
  });
  // One that a TCP port of the same Service uses is no mistake.
  if (!ports.some(({ protocol }) => protocol === 'TCP'))
    return [...FIELDS, 'log' as const]
      .filter((field) => isAnnotated(annotations, field))
      .map((field) => problem(field, 'it is for TCP ports, and the Service has none'));
  const problems: Problem[] = [];
  const [first] = needingHaproxy(values);
  if (first !== undefined && values.engine === 'kernel' && isAnnotated(annotations, 'engine')) {
    const { name, kind } = ANNOTATIONS[first];
    const value = (kind.format as (value: unknown) => string)(values[first]);
    const why = `the kernel cannot do "headgate.io/${name}": "${value}", so that HAProxy forwards its TCP ports`;
    problems.push(problem('engine', why));
  }
  const asksForLog = isAnnotated(annotations, 'log') && values.log !== 'none';
  if (asksForLog && ports.every((port) => engineOf(port, values) === 'kernel')) {
    const remedy = 'remove it, or annotation "headgate.io/engine"';
    problems.push(problem('log', `the kernel forwards its ports, and logs no connections: ${remedy}`));
  }
  const needsKernel = values.sourceAddress === 'client' && isAnnotated(annotations, 'sourceAddress');
  if (needsKernel && ports.some((port) => engineOf(port, values) === 'haproxy')) {
    const remedy = 'use "headgate.io/proxy-protocol", or "headgate.io/engine": "kernel"';
    problems.push(problem('sourceAddress', `HAProxy forwards its TCP ports from its own address: ${remedy}`));
  }
  const isDirect = values.members === 'direct' && isAnnotated(annotations, 'members');
  if (isDirect && ports.some((port) => engineOf(port, values) === 'haproxy')) {
    const why = 'HAProxy forwards its TCP ports, and needs the answers of members';
    problems.push(problem('members', `${why}: use "headgate.io/engine": "kernel"`));
  }
  return problems;
}

function needingHaproxy(values: AnnotationValues): readonly (keyof typeof OF_HAPROXY)[] {
  return FIELDS.filter((field) => values[field] !== OF_HAPROXY[field]);
}
