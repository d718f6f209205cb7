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
    const gateway = {
      gatewayClassName: 'bench',
      addresses: [{ type: 'IPAddress', value: address }],
      listeners,
    };
    this.write('gateway', [
      {
        apiVersion: API,
        kind: 'GatewayClass',
        metadata: { name: 'bench' },
        spec: { controllerName: 'headgate.io/gateway-controller' },
      },
      object('Gateway', 'edge', gateway),
      ...services.flatMap((spec) => [clusterService(spec), sliceObject(spec)]),
    ]);
  }

  /** Replaces a file of routes by renaming, as editors do. */
  write(file: string, objects: readonly Json[]): void {
    const draft = join(this.path, `.${file}.new`);
    writeFileSync(draft, objects.map((each) => JSON.stringify(each)).join('\n---\n'));
    renameSync(draft, join(this.path, `${file}.yaml`));
  }
}

/** To the root of these hosts; of all hosts if there are none. */
export function route(name: string, hostnames: readonly string[], service: ServiceSpec): Json {
  const backendRefs = [{ name: nameOf(service), port: service.port }];
  return object('HTTPRoute', name, {
    parentRefs: [{ name: 'edge' }],
    ...(hostnames.length > 0 && { hostnames }),
    rules: [{ backendRefs }],
  });
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
