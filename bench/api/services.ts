// Writes and changes the Services of one namespace on a real API server, each with one EndpointSlice.

import type { Kube } from '../../test/support/kube/kube.ts';
import { servicePath, slicePath } from '../../test/support/kube/kube-objects.ts';
import { nameOf } from '../support/objects.ts';
import { monotonic } from './monotonic.ts';
import { MEMBER_PORT, podAddress } from './networks.ts';

export interface ApiService {
  readonly index: number;
  readonly name: string;
  readonly address: string;
  readonly clusterIP: string;
  /** The addresses of the Service's pods. */
  readonly members: readonly string[];
}

export interface ServicesOptions {
  readonly namespace: string;
  /** The agent and the lower bound serve the Service's load balancer address, kube-proxy the cluster IP. */
  readonly servedBy: readonly ('agent' | 'bound' | 'kube-proxy')[];
  readonly port: number;
  /** The second byte of the Services' load balancer addresses; undefined if the Services name none. */
  readonly network?: number;
  /** An engine that the Services ask for. */
  readonly engine?: 'kernel';
}

/** More writers fill the API server no faster, and it allows far more. */
const WRITERS = 16;
/** kube-proxy ignores slices with this label, and Services without members cost it almost nothing. */
const NOT_KUBE_PROXY = { 'service.kubernetes.io/service-proxy-name': 'headgate' };

let pods = 0;

export class Services {
  readonly namespace: string;
  readonly port: number;
  readonly all: ApiService[] = [];
  readonly #kube: Kube;
  readonly #options: ServicesOptions;

  constructor(kube: Kube, options: ServicesOptions) {
    this.#kube = kube;
    this.#options = options;
    this.namespace = options.namespace;
    this.port = options.port;
  }

  /** Creates the namespace and `count` Services of `size(index)` members each. */
  async fill(count: number, size: (index: number) => number): Promise<void> {
    await this.#kube.must('POST', '/api/v1/namespaces', { metadata: { name: this.namespace } });
    let next = 0;
    const writer = async (): Promise<void> => {
      while (next < count) {
        const index = next++;
        this.all[index] = await this.#write(index, size(index));
      }
    };
    await Promise.all(Array.from({ length: WRITERS }, writer));
  }

  /** Adds a Service with one member. `written` is the time at which both writes had returned, by monotonic(). */
  async add(): Promise<{ readonly service: ApiService; readonly written: number }> {
    const index = this.all.length;
    const reserved: ApiService = { index, name: '', address: '', clusterIP: '', members: [] };
    this.all.push(reserved);
    const service = await this.#write(index, 1);
    const written = monotonic();
    this.all[index] = service;
    return { service, written };
  }

  /** Replaces the first pod; the new pod is the last of `members`. */
  replaced({ index }: ApiService): ApiService {
    const service = this.at(index);
    const changed = { ...service, members: [...service.members.slice(1), podAddress(++pods)] };
    this.all[index] = changed;
    return changed;
  }

  /** Resolves when the write has returned. */
  async write(service: ApiService): Promise<void> {
    await this.#kube.must('PUT', slicePath(this.namespace, service.name), this.#slice(service));
  }

  /** Sets an option that only a reload can change. */
  async setAffinity({ name }: ApiService, sessionAffinity: 'ClientIP' | 'None'): Promise<void> {
    await this.#kube.must('PATCH', servicePath(this.namespace, name), { spec: { sessionAffinity } });
  }

  /** Removes all Services from `index` on. */
  async removeFrom(index: number): Promise<void> {
    for (const { name } of this.all.splice(index)) {
      await this.#kube.must('DELETE', slicePath(this.namespace, name));
      await this.#kube.must('DELETE', servicePath(this.namespace, name));
    }
  }

  at(index: number): ApiService {
    const service = this.all[index];
    if (service === undefined) throw new Error(`There is no Service ${index}`);
    return service;
  }

  async #write(index: number, size: number): Promise<ApiService> {
    const { network } = this.#options;
    const name = nameOf({ index });
    const members = Array.from({ length: size }, () => podAddress(++pods));
    const address = network === undefined ? '' : `127.${network}.${index >> 8}.${index & 255}`;
    const { spec } = await this.#kube.must('POST', servicePath(this.namespace), this.#service(name, address));
    const service = { index, name, address, clusterIP: spec.clusterIP, members };
    await this.#kube.must('POST', slicePath(this.namespace), this.#slice(service));
    return service;
  }

  #service(name: string, loadBalancerIP: string): object {
    const { port, servedBy, engine } = this.#options;
    const annotations = engine === undefined ? {} : { 'headgate.io/engine': engine };
    const ports = [{ name: 'http', port, protocol: 'TCP', targetPort: 'http' }];
    const labels = { app: name, 'app.kubernetes.io/part-of': 'bench' };
    const loadBalancer = {
      ...(loadBalancerIP === '' ? {} : { loadBalancerIP }),
      loadBalancerClass: 'headgate.io/agent',
      allocateLoadBalancerNodePorts: false,
    };
    const type = servedBy.every((name) => name === 'kube-proxy')
      ? { type: 'ClusterIP' }
      : { type: 'LoadBalancer', ...loadBalancer };
    return { metadata: { name, labels, annotations }, spec: { ...type, ports, selector: { app: name } } };
  }

  /** The form that the EndpointSlice controller writes. */
  #slice({ name, members }: ApiService): object {
    return {
      addressType: 'IPv4',
      metadata: {
        name,
        labels: {
          app: name,
          'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
          'kubernetes.io/service-name': name,
          ...(this.#options.servedBy.includes('kube-proxy') ? {} : NOT_KUBE_PROXY),
        },
      },
      endpoints: members.map((address, at) => ({
        addresses: [address],
        conditions: { ready: true, serving: true, terminating: false },
        nodeName: `node-${at % 16}`,
        targetRef: {
          kind: 'Pod',
          name: `${name}-${address.replaceAll('.', '-')}`,
          namespace: this.namespace,
        },
        zone: `zone-${at % 3}`,
      })),
      ports: [{ name: 'http', port: MEMBER_PORT, protocol: 'TCP' }],
    };
  }
}
