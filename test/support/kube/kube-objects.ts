// Objects for a real API server, and the reports of an API source, to be compared with the objects in the server.

import {
  type ApiReceivers,
  type ApiScope,
  ApiSource,
  type ApiSourceOptions,
} from '../../../agent/kubernetes/api/api-source.ts';
import { ApiClient } from '../../../agent/kubernetes/api/client.ts';
import type { ApiRequest, ApiStreams } from '../../../agent/kubernetes/api/kubernetes-api.ts';
import { kindsOf } from '../../../agent/kubernetes/api/reflected-kinds.ts';
import type { ObjectsChange } from '../../../agent/kubernetes/cluster.ts';
import type { KubernetesObject } from '../../../agent/kubernetes/objects.ts';
import { parseObject } from '../../../agent/kubernetes/parse-object.ts';
import type { FaultProxy } from '../traffic/fault-proxy.ts';
import type { Kube } from './kube.ts';

export const servicePath = (namespace: string, name = '') =>
  `/api/v1/namespaces/${namespace}/services${name === '' ? '' : `/${name}`}`;
export const slicePath = (namespace: string, name = '') =>
  `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices${name === '' ? '' : `/${name}`}`;

export function serviceJson(name: string, annotations: Readonly<Record<string, string>> = {}): object {
  return {
    metadata: { name, annotations },
    spec: { type: 'LoadBalancer', ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
  };
}

/** Slice `NAME-1` of Service NAME; `trigger`: when its pods changed, milliseconds since the epoch. */
export function sliceJson(name: string, addresses: readonly string[], trigger?: number): object {
  const annotations =
    trigger === undefined
      ? {}
      : { 'endpoints.kubernetes.io/last-change-trigger-time': new Date(trigger).toISOString() };
  return {
    metadata: { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name }, annotations },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
  };
}

/** Calls `work` for 0 to `count` - 1, several at once. */
export async function each(count: number, work: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: 8 }, worker));
}

/** The reflected objects in the API server: `Kind key` → object. */
export async function objectsOf(kube: Kube): Promise<Map<string, KubernetesObject>> {
  const paths = ['/api/v1/services', '/apis/discovery.k8s.io/v1/endpointslices', '/api/v1/nodes'];
  const lists = await Promise.all(paths.map((path) => kube.must('GET', path)));
  const objects = lists.flatMap((list) => parseObject(list, '').objects);
  return new Map(objects.map((object) => [`${object.kind} ${object.key}`, object]));
}

type ReportedOptions = Partial<Omit<ApiSourceOptions, 'scope' | 'receivers'>> & {
  readonly scope?: Partial<ApiScope>;
  readonly receivers?: Partial<ApiReceivers>;
};

/** An API source, and all of its reports. */
export class Reported {
  readonly source: ApiSource;
  readonly client: ApiClient;
  /** `Kind key` → object. */
  readonly objects = new Map<string, KubernetesObject>();
  readonly changes: ObjectsChange[] = [];
  /** `list Service expired`, `end Service silence`, `doubt Service 8`, `failure Service CODE message`. */
  readonly log: string[] = [];

  /** `through`: a proxy in front of the API server. `wrap`: gets each request. */
  static async create(
    kube: Kube,
    {
      through,
      kubeconfig = `${kube.directory}/kubeconfig-${Math.random().toString(36).slice(2)}`,
      user = { token: kube.adminToken },
      servers = [],
      wrap = (client) => client,
      ...options
    }: ReportedOptions & {
      readonly through?: FaultProxy;
      readonly kubeconfig?: string;
      readonly user?: { token?: string; tokenFile?: string };
      readonly servers?: readonly string[];
      readonly wrap?: (client: ApiClient) => ApiStreams;
    } = {},
  ): Promise<Reported> {
    const server = through === undefined ? kube.url : `https://127.0.0.1:${through.port}`;
    await kube.writeKubeconfig(kubeconfig, { server, ...user });
    const client = new ApiClient({
      credentials: { kind: 'Kubeconfig', path: kubeconfig },
      servers,
      version: '0.0.0',
    });
    return new Reported(client, wrap(client), options);
  }

  private constructor(client: ApiClient, api: ApiStreams, options: ReportedOptions) {
    const { scope, receivers, ...rest } = options;
    this.client = client;
    this.source = new ApiSource({
      api,
      // Loading the client library takes its time on a busy machine.
      snapshot: { path: undefined, afterMs: 20_000 },
      ...rest,
      scope: {
        kinds: kindsOf({ gatewayApi: true, ingress: true }),
        namespaces: [],
        serviceSelector: '',
        ...scope,
      },
      receivers: {
        onFailure: (error) => this.log.push(`failure ${error.code} ${error.message}`),
        ...receivers,
        onChange: (change) => this.#take(change, receivers?.onChange),
      },
      observer: {
        onList: (kind, reason) => this.log.push(`list ${kind} ${reason}`),
        onWatchEnd: (kind, end) => this.log.push(`end ${kind} ${end}`),
        onDoubt: (kind, missing) => this.log.push(`doubt ${kind} ${missing}`),
        onFailure: (kind, error) => this.log.push(`failure ${kind} ${error.code} ${error.message}`),
      },
    });
    this.source.start();
  }

  /** A watch is open for each kind that the API server knows. */
  get isConnected(): boolean {
    return this.source.status().every(({ lack, connected }) => lack === 'unknown' || connected);
  }

  has(line: string): boolean {
    return this.log.some((said) => said.startsWith(line));
  }

  /** True if the reported objects equal those of the API server. */
  async equals(kube: Kube): Promise<boolean> {
    const wanted = await objectsOf(kube);
    if (wanted.size !== this.objects.size) return false;
    return [...wanted].every(
      ([key, object]) => JSON.stringify(object) === JSON.stringify(this.objects.get(key)),
    );
  }

  async close(): Promise<void> {
    await this.source.close();
    this.client.close();
  }

  #take(change: ObjectsChange, onChange: ApiReceivers['onChange'] | undefined): void {
    this.changes.push(change);
    for (const { kind, key } of change.removed) this.objects.delete(`${kind} ${key}`);
    for (const object of change.upserted) this.objects.set(`${object.kind} ${object.key}`, object);
    onChange?.(change);
  }
}

/** Calls `see` with each request before it is sent. */
export function seeing(client: ApiStreams, see: (request: ApiRequest) => Promise<void>): ApiStreams {
  return {
    open: async (request) => {
      await see(request);
      return client.open(request);
    },
  };
}
