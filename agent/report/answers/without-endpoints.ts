// Why no EndpointSlice gives a listener an endpoint, in words: a hand-written one often has another port name or label
// than its Service. Pure.

import { quote } from '../../base/quote.ts';
import type { EndpointPort, EndpointSlice } from '../../kubernetes/objects.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';

/** More are counted only. */
const MAX_SHOWN = 3;

/** `slices`: all of the Service. */
export function withoutEndpoints(
  { namespace, name }: Pick<LoadBalancer, 'namespace' | 'name'>,
  { protocol, portName, family }: Pick<Listener, 'protocol' | 'portName' | 'family'>,
  slices: readonly EndpointSlice[],
): string {
  if (slices.length === 0)
    return `no EndpointSlice in namespace ${quote(namespace)} has the label "kubernetes.io/service-name" with the value ${quote(name)}`;
  const ofFamily = slices.filter((slice) => slice.family === family);
  if (ofFamily.length === 0)
    return `its EndpointSlices have ${family === 'v4' ? 'IPv6' : 'IPv4'} addresses only: ${firstOf(slices.map(nameOf))}`;
  const asked = portInWords({ name: portName, protocol });
  const matching = ofFamily.filter(({ ports }) =>
    ports.some((port) => port.name === portName && port.protocol === protocol),
  );
  if (matching.length > 0)
    return `the EndpointSlices with ${asked} have no endpoint: ${firstOf(matching.map(nameOf))}`;
  // Kubernetes writes such an EndpointSlice as long as the selector matches no pod.
  if (ofFamily.every(({ ports, endpoints }) => ports.length === 0 && endpoints.length === 0))
    return `the EndpointSlices of the Service have no endpoint: ${firstOf(ofFamily.map(nameOf))}`;
  return `the Service has ${asked}, but ${firstOf(ofFamily.map((slice) => `${nameOf(slice)} has ${portsInWords(slice)}`))}`;
}

/** An old Endpoints object, which is read as a slice, has the name of its Service. */
function nameOf({ key, name, serviceName }: EndpointSlice): string {
  return `${name === serviceName ? 'EndpointSlice or Endpoints' : 'EndpointSlice'} ${key}`;
}

function portsInWords({ ports }: EndpointSlice): string {
  return ports.length === 0 ? 'no port with a number' : firstOf(ports.map(portInWords));
}

function portInWords({ name, protocol }: Pick<EndpointPort, 'name' | 'protocol'>): string {
  return name === '' ? `a ${protocol} port without a name` : `the ${protocol} port ${quote(name)}`;
}

function firstOf(words: readonly string[]): string {
  const more = words.length - MAX_SHOWN;
  return `${words.slice(0, MAX_SHOWN).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
