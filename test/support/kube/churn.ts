// Changes endpoints of many Services on a real API server all the time, and compares HAProxy's servers with the slices at
// the end, by rules of its own instead of the agent's.

import { setTimeout as delay } from 'node:timers/promises';
import type { TestHost } from '../host/agent.ts';
import { VIP_PORT } from '../values/service-objects.ts';
import type { Kube } from './kube.ts';
import { each, servicePath, slicePath } from './kube-objects.ts';

const SERVICES = 20;
/** Per Service. */
const SLICES = 2;

export interface ChurnOptions {
  /** Writes per second. */
  readonly rate?: number;
  /** The VIP of each Service, from 0 on. */
  readonly vip?: (index: number) => string;
}

export class Churn {
  readonly #kube: Kube;
  readonly #host: TestHost;
  readonly #rate: number;
  readonly #vip: (index: number) => string;
  /** Successful writes so far. */
  writes = 0;
  #seed = 1;
  #next = 0;

  constructor(kube: Kube, host: TestHost, options: ChurnOptions = {}) {
    const { rate = 200, vip = (index) => host.address(index + 1) } = options;
    this.#kube = kube;
    this.#host = host;
    this.#rate = rate;
    this.#vip = vip;
  }

  async prepare(): Promise<void> {
    await each(SERVICES, (index) =>
      this.#kube.must('POST', servicePath('default'), {
        metadata: {
          name: `churn-${index}`,
          annotations: { 'headgate.io/load-balancer-ips': this.#vip(index) },
        },
        spec: { type: 'LoadBalancer', ports: [{ name: 'http', port: VIP_PORT, protocol: 'TCP' }] },
      }),
    );
    await each(SERVICES * SLICES, (index) =>
      this.#kube.must('POST', slicePath('default'), this.#slice(index)),
    );
  }

  /** A slice in fifty is deleted and created again. */
  async run(seconds: number): Promise<void> {
    const begin = performance.now();
    await each(seconds * this.#rate, async (write) => {
      // A slow API server gets fewer writes instead of more time.
      if (performance.now() - begin > seconds * 1_000) return;
      await delay(Math.max(0, begin + (write / this.#rate) * 1000 - performance.now()));
      const index = this.#next++ % (SERVICES * SLICES);
      const slice = this.#slice(index);
      const path = slicePath('default', slice.metadata.name);
      if (write % 50 === 49) {
        await this.#kube.api('DELETE', path);
        this.#count(await this.#kube.api('POST', slicePath('default'), slice));
      } else this.#count(await this.#kube.api('PUT', path, slice));
    });
  }

  /** `backend server state` that only one side has; a server that waits for its deletion counts until it is gone. */
  async differences(host = this.#host): Promise<readonly string[]> {
    const own = (await host.servers()).filter(({ backend }) => backend.startsWith('default:churn-'));
    const has = new Set(
      own.map(({ backend, server, state, weight }) => {
        // The file shows draining by this state only.
        const shown = state === 'ready' && weight === 0 ? 'drain' : state;
        return `${backend} ${server} ${shown}`;
      }),
    );
    const { items } = await this.#kube.must('GET', slicePath('default'));
    const wanted = wantedServers(items);
    return [
      ...[...wanted].filter((line) => !has.has(line)).map((line) => `missing: ${line}`),
      ...[...has].filter((line) => !wanted.has(line)).map((line) => `too many: ${line}`),
    ];
  }

  async clean(): Promise<void> {
    await this.#kube.must('DELETE', slicePath('default'));
    await each(SERVICES, (index) => this.#kube.api('DELETE', servicePath('default', `churn-${index}`)));
  }

  #count({ status }: { readonly status: number }): void {
    if (status < 300) this.writes++;
  }

  /** One to five pods, the first one ready, of 4,096 addresses: addresses come back, as they do in a cluster. */
  #slice(index: number) {
    const service = `churn-${Math.floor(index / SLICES)}`;
    const pods = new Set(
      Array.from(
        { length: 1 + this.#random(5) },
        () => `10.${64 + (index % SLICES)}.${this.#random(16)}.${1 + this.#random(254)}`,
      ),
    );
    return {
      metadata: { name: `churn-${index}`, labels: { 'kubernetes.io/service-name': service } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
      endpoints: [...pods].map((address, at) => ({
        addresses: [address],
        conditions:
          at > 0 && this.#random(5) === 0
            ? { ready: false, serving: true, terminating: true }
            : { ready: true },
      })),
    };
  }

  /** 0 to `below` - 1, the same in every run. */
  #random(below: number): number {
    this.#seed = (Math.imul(this.#seed, 1_103_515_245) + 12_345) >>> 0;
    return (this.#seed >>> 8) % below;
  }
}

interface SliceItem {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly endpoints?: readonly {
    readonly addresses: readonly [string];
    readonly conditions: { readonly ready: boolean };
  }[];
}

function wantedServers(slices: readonly SliceItem[]): ReadonlySet<string> {
  const lines = new Set<string>();
  for (const { metadata, endpoints = [] } of slices) {
    const service = metadata.labels['kubernetes.io/service-name'];
    if (!service?.startsWith('churn-')) continue;
    const backend = `default:${service}:tcp:${VIP_PORT}:v4`;
    for (const { addresses, conditions } of endpoints)
      lines.add(`${backend} ${addresses[0]}:8080 ${conditions.ready ? 'ready' : 'drain'}`);
  }
  return lines;
}
