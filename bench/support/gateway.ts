// A Gateway with routes as manifests, which the agent reads from a folder.

import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nameOf, type ServiceSpec, serviceObject, sliceObject } from './objects.ts';

const API = 'gateway.networking.k8s.io/v1';

type Json = Readonly<Record<string, unknown>>;

export class GatewayFolder {
  readonly path: string;

  /** A Gateway at this address and port, and the Services behind it. */
  constructor(
    path: string,
    address: string,
    port: number,
    services: readonly ServiceSpec[],
    listeners: readonly Json[] = [{ name: 'http', port, protocol: 'HTTP' }],
  ) {
    this.path = path;
    mkdirSync(path, { recursive: true });
    this.write('gateway', [
      GATEWAY_CLASS,
      gatewayObject('edge', address, listeners),
      ...services.flatMap((spec) => [clusterService(spec), sliceObject(spec)]),
    ]);
  }

  /** Replaces a file of routes. */
  write(file: string, objects: readonly Json[]): void {
    writeObjects(this.path, file, objects);
  }
}

/** Replaces a file of this folder by renaming, as editors do. */
export function writeObjects(folder: string, file: string, objects: readonly Json[]): void {
  const draft = join(folder, `.${file}.new`);
  writeFileSync(draft, objects.map((each) => JSON.stringify(each)).join('\n---\n'));
  renameSync(draft, join(folder, `${file}.yaml`));
}

export const GATEWAY_CLASS: Json = {
  apiVersion: API,
  kind: 'GatewayClass',
  metadata: { name: 'bench' },
  spec: { controllerName: 'headgate.io/gateway-controller' },
};

/** A Gateway of its own at the Service's address, with a route to the Service. */
export function gatewayOf(spec: ServiceSpec): readonly Json[] {
  const name = nameOf(spec);
  const listeners = [{ name: 'http', port: spec.port, protocol: 'HTTP' }];
  return [
    gatewayObject(name, spec.vip, listeners),
    route(name, [], spec, name),
    clusterService(spec),
    sliceObject(spec),
  ];
}

/** To the root of these hosts; of all hosts if there are none. */
export function route(
  name: string,
  hostnames: readonly string[],
  service: ServiceSpec,
  gateway = 'edge',
  filters: readonly Json[] = [],
): Json {
  const backendRefs = [{ name: nameOf(service), port: service.port }];
  return object('HTTPRoute', name, {
    parentRefs: [{ name: gateway }],
    ...(hostnames.length > 0 && { hostnames }),
    rules: [{ backendRefs, ...(filters.length > 0 && { filters }) }],
  });
}

function gatewayObject(name: string, address: string, listeners: readonly Json[]): Json {
  const addresses = [{ type: 'IPAddress', value: address }];
  return object('Gateway', name, { gatewayClassName: 'bench', addresses, listeners });
}

function object(kind: string, name: string, spec: Json): Json {
  return { apiVersion: API, kind, metadata: { namespace: 'bench', name, generation: 1 }, spec };
}

/** Not of type LoadBalancer: only routes lead to it. */
function clusterService(spec: ServiceSpec): Json {
  const service = serviceObject(spec);
  const { loadBalancerClass: _, loadBalancerIP: __, type: ___, ...rest } = service.spec as Json;
  return { ...service, spec: { ...rest, type: 'ClusterIP' } };
}
