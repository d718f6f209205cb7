// A contender on a real API server: its process, the Services of its namespace, and a prober in its network. Measures the
// time from the end of a write to the first answer of the new pod.

import type { Running } from '../support/processes.ts';
import { pause } from '../support/until.ts';
import { processorTime } from '../support/usage.ts';
import { monotonic } from './monotonic.ts';
import type { Prober } from './prober.ts';
import type { ApiService, Services } from './services.ts';

export interface ContenderOptions {
  readonly services: Services;
  readonly running: Running;
  readonly prober: Prober;
  readonly servedAt?: 'address' | 'clusterIP';
  /** The number of Services, from the first on, that have one member, so that an answer shows the change. */
  readonly probed: number;
  /** The lower bound reads nothing but endpoints. */
  readonly endpointsOnly?: boolean;
}

/** Milliseconds from the end of the write to the answer. */
export interface Churned {
  readonly endpoints: number[];
  readonly newServices: number[];
}

/** Between two changes of the churn. */
const BETWEEN_MS = 80;
/** One of 20 changes is a new Service and one is a changed option. */
const CYCLE = 20;
const [NEW_SERVICE, OPTION] = [5, 15];
/** Between two requests to a new Service, which waits for seconds: more requests would slow the measured endpoints. */
const NEW_SERVICE_INTERVAL_MS = 25;
/** For the work that follows the last change. */
const TAIL_MS = 3_500;

export class Contender {
  readonly services: Services;
  readonly running: Running;
  readonly #options: ContenderOptions;
  /** The last change of each probed Service, by index. */
  readonly #before = new Map<number, Promise<number>>();
  /** Services with session affinity. */
  readonly #affine = new Set<number>();
  #changes = 0;

  constructor(options: ContenderOptions) {
    this.#options = options;
    this.services = options.services;
    this.running = options.running;
  }

  /** Resolves when the first and the last Service are served. */
  async served(): Promise<void> {
    await this.#answer(this.services.at(0));
    await this.#answer(this.services.at(this.#options.probed - 1));
  }

  /** Replaces the only endpoint of the next probed Service, after its last change has been answered. */
  replaceEndpoint(): Promise<number> {
    const index = this.#changes++ % this.#options.probed;
    const replace = (): Promise<number> => this.#timed(this.services.replaced(this.services.at(index)));
    const before = this.#before.get(index);
    const took = before === undefined ? replace() : before.then(replace);
    this.#before.set(index, took);
    return took;
  }

  /** `every`: milliseconds between two requests. */
  async addService(every = 1): Promise<number> {
    const { service, written } = await this.services.add();
    return (await this.#answer(service, every)) - written;
  }

  /** Starts a change every 80 ms without waiting for earlier changes. */
  async churn(changes: number): Promise<Churned> {
    const began = performance.now();
    const own = this.services.all.length;
    const endpoints: Promise<number>[] = [];
    const newServices: Promise<number>[] = [];
    const others: Promise<void>[] = [];
    for (let n = 0; n < changes; n++) {
      await pause(Math.max(0, began + n * BETWEEN_MS - performance.now()));
      if (n % CYCLE === NEW_SERVICE && !this.#options.endpointsOnly)
        newServices.push(this.addService(NEW_SERVICE_INTERVAL_MS));
      else if (n % CYCLE === OPTION && !this.#options.endpointsOnly) others.push(this.#changeOption(n));
      else endpoints.push(this.replaceEndpoint());
    }
    const churned = {
      endpoints: await Promise.all(endpoints),
      newServices: await Promise.all(newServices),
    };
    await Promise.all(others);
    await this.services.removeFrom(own);
    await pause(TAIL_MS);
    return churned;
  }

  /** Replaces one of ten endpoints. Resolves when the write has returned. */
  readonly change = async (): Promise<void> => {
    const { length } = this.services.all;
    const { probed } = this.#options;
    // A prime stride, so that consecutive changes concern distant Services.
    const index = probed + ((this.#changes++ * 7919) % Math.max(1, length - probed));
    await this.services.write(this.services.replaced(this.services.at(Math.min(index, length - 1))));
  };

  /** Milliseconds of processor time for each change, with all other work of the process. */
  async cost(changes: number, between = BETWEEN_MS): Promise<number> {
    const before = processorTime(this.running.pid);
    for (let n = 0; n < changes; n++) await Promise.all([this.change(), pause(between)]);
    await pause(TAIL_MS);
    return (processorTime(this.running.pid) - before) / changes;
  }

  get pid(): number {
    return this.running.pid;
  }

  async #timed(service: ApiService): Promise<number> {
    const answered = this.#answer(service);
    await this.services.write(service);
    const written = monotonic();
    // The watch can be faster than the answer to the write.
    return Math.max(0, (await answered) - written);
  }

  #answer(service: ApiService, every = 1): Promise<number> {
    const { prober, servedAt = 'address' } = this.#options;
    return prober.answered(service[servedAt], this.services.port, service.members.at(-1) ?? '', { every });
  }

  async #changeOption(n: number): Promise<void> {
    const index = (n * 7919) % this.services.all.length;
    // The next round has the same Services, so the option must change back.
    const isSet = this.#affine.delete(index);
    if (!isSet) this.#affine.add(index);
    await this.services.setAffinity(this.services.at(index), isSet ? 'None' : 'ClientIP');
  }
}
