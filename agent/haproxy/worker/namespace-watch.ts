// Finds the namespaces whose Services have all the connections that a namespace may have together: HAProxy closes further
// ones, which is a problem of their owners.

import { messageOf } from '../../base/errors.ts';
import { Rounds } from '../../base/rounds.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer, Problem } from '../../model/load-balancer.ts';
import { objectOf } from '../../model/names.ts';
import type { BootedWorker } from '../booted-worker.ts';

export interface NamespaceWatchOptions {
  readonly worker: () => BootedWorker | undefined;
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  /** The connections that a namespace may have. */
  readonly limit: () => number;
  /** Milliseconds from the end of one round to the next. */
  readonly interval: () => number;
  /** The problems of these load balancers have changed. */
  readonly onChanged: (keys: readonly string[]) => void;
  readonly log: Log;
}

const TABLE = 'headgate:namespaces';
/** A namespace that was at its limit is so until it is well below, so that a problem does not come and go. */
const END = 0.9;
const ROW = /key=(\S+) .*conn_cur=(\d+)/g;

export class NamespaceWatch {
  readonly #options: NamespaceWatchOptions;
  readonly #rounds: Rounds;
  #full: ReadonlySet<string> = new Set();

  constructor(options: NamespaceWatchOptions) {
    this.#options = options;
    this.#rounds = new Rounds({
      intervalMs: options.interval,
      work: () => this.#round(),
      // A lost connection is reported by the active worker.
      onFailed: (error) =>
        options.log.debug('Cannot read the connections of namespaces now', { error: messageOf(error) }),
    });
  }

  start(): void {
    this.#rounds.start();
  }

  close(): void {
    this.#rounds.close();
  }

  /** The interval has changed. */
  retime(): void {
    this.#rounds.retime();
  }

  problemsOf({ key, namespace }: LoadBalancer): readonly Problem[] {
    if (!this.#full.has(namespace)) return [];
    const message = `Refuses new connections: the Services of namespace "${namespace}" have the ${this.#options.limit()} connections that a namespace may have together; find what keeps them open, or raise the setting maxConnectionsPerNamespace`;
    return [{ object: objectOf(key), reason: 'ShareExceeded', message }];
  }

  async #round(): Promise<void> {
    const { worker, desired, limit, onChanged } = this.#options;
    const most = limit();
    const runtime = worker()?.runtime;
    // HAProxy answers with the few namespaces that are near the limit.
    const answer = await runtime?.ask(`show table ${TABLE} data.conn_cur gt ${Math.floor(most * END)}`);
    const full = new Set<string>();
    for (const [, namespace = '', connections] of answer?.matchAll(ROW) ?? [])
      if (Number(connections) >= most || this.#full.has(namespace)) full.add(namespace);
    const changed = new Set(
      [...full, ...this.#full].filter((each) => full.has(each) !== this.#full.has(each)),
    );
    this.#full = full;
    if (changed.size === 0) return;
    onChanged([...desired.values()].flatMap(({ key, namespace }) => (changed.has(namespace) ? [key] : [])));
  }
}
