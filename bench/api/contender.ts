// One of those who are compared on a real API server: its process, the Services of its own namespace, and a prober in
// its network. Times each change from the return of its write to the first answer of the new pod.

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
  /** How many of the Services, from the first on, have one member only, so that an answer tells of the change. */
  readonly probed: number;
  /** The bound knows of nothing but endpoints. */
  readonly endpointsOnly?: boolean;
}

/** Milliseconds from the write's return to the answer. */
export interface Churned {
  readonly endpoints: number[];
  readonly newServices: number[];
}

/** Milliseconds between two changes of the churn. */
const BETWEEN = 80;
/** Of so many changes one is a new Service and one a changed option. */
const CYCLE = 20;
const [NEW_SERVICE, OPTION] = [5, 15];
/**
 * Milliseconds between two requests for a new Service of the churn, which waits for seconds: once a millisecond they
 * would take from the endpoints that are measured a third of a processor, before everybody else.
 */
const SELDOM = 25;
/** Milliseconds for what follows from the last change. */
const TAIL = 3_500;

export class Contender {
  readonly services: Services;
  readonly running: Running;
  readonly #options: ContenderOptions;
  /** Of each Service that is probed, the change before. */
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

  /** The only endpoint of a Service becomes another one, once the one before has answered. */
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

  /** A change every 80 ms, whatever becomes of those before. */
  async churn(changes: number): Promise<Churned> {
    const began = performance.now();
    const own = this.services.all.length;
    const endpoints: Promise<number>[] = [];
    const newServices: Promise<number>[] = [];
    const others: Promise<void>[] = [];
    for (let n = 0; n < changes; n++) {
      await pause(Math.max(0, began + n * BETWEEN - performance.now()));
      if (n % CYCLE === NEW_SERVICE && !this.#options.endpointsOnly)
        newServices.push(this.addService(SELDOM));
      else if (n % CYCLE === OPTION && !this.#options.endpointsOnly) others.push(this.#changeOption(n));
      else endpoints.push(this.replaceEndpoint());
    }
    const churned = {
      endpoints: await Promise.all(endpoints),
      newServices: await Promise.all(newServices),
    };
    await Promise.all(others);
    await this.services.removeFrom(own);
    await pause(TAIL);
    return churned;
  }

  /** One of ten endpoints becomes another one. Resolves when it is written. */
  readonly change = async (): Promise<void> => {
    const { length } = this.services.all;
    const { probed } = this.#options;
    // A prime stride: neighbours do not follow one another.
    const index = probed + ((this.#changes++ * 7919) % Math.max(1, length - probed));
    await this.services.write(this.services.replaced(this.services.at(Math.min(index, length - 1))));
  };

  /** Milliseconds of processor time for each of so many changes, with all that is done meanwhile. */
  async cost(changes: number, between = BETWEEN): Promise<number> {
    const before = processorTime(this.running.pid);
    for (let n = 0; n < changes; n++) await Promise.all([this.change(), pause(between)]);
    await pause(TAIL);
    return (processorTime(this.running.pid) - before) / changes;
  }

  get pid(): number {
    return this.running.pid;
  }

  async #timed(service: ApiService): Promise<number> {
    const answered = this.#answer(service);
    await this.services.write(service);
    const written = monotonic();
    // The watch may well be faster than the answer to the write.
    return Math.max(0, (await answered) - written);
  }

  #answer(service: ApiService, every = 1): Promise<number> {
    const { prober, servedAt = 'address' } = this.#options;
    return prober.answered(service[servedAt], this.services.port, service.members.at(-1) ?? '', { every });
  }

  async #changeOption(n: number): Promise<void> {
    const index = (n * 7919) % this.services.all.length;
    // The next round meets the same Services: what is set already would be no change.
    const isSet = this.#affine.delete(index);
    if (!isSet) this.#affine.add(index);
    await this.services.setAffinity(this.services.at(index), isSet ? 'None' : 'ClientIP');
  }
}
