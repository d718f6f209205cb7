// What is known of one frontend, backend or server for its metrics. The numbers change in place at each reading; a
// series is dropped when the worker that takes connections does not have it any more.

import type { Listener, LoadBalancer, Member } from '../../model/load-balancer.ts';
import { allColumns, type Changes, counterCount, newChanges } from './columns.ts';
import type { WorkerCounts } from './counter-file.ts';
import type { Reading } from './totals.ts';

/** What the series of one listener, of its pool and of their members have in common. */
export interface Origin {
  readonly listener: string;
  /** `namespace/name`. */
  readonly key: string;
  /** As they were when they were last looked up. */
  loadBalancer: LoadBalancer | undefined;
  source: Listener | undefined;
  /** The number of the last reading that left out it, its pool or the members: they are as they were. */
  unread: number;
}

export interface Series {
  readonly kind: 'listener' | 'pool' | 'member';
  /** Of its listener. */
  readonly listener: string;
  origin: Origin;
  /** `namespace="default",service="web",...`, escaped. */
  labels: string;
  /** In the order of the columns: counters over all workers so far, and what is now. */
  readonly values: number[];
  isHttp: boolean;
  hasCheck: boolean;
  status: string;
  checkStatus: string;
  /** What the labels were made from. */
  source: Listener | undefined;
  /** The number of the reading that it was last in. */
  seen: number;
  /** Of any of those in its block, which have one in common. */
  changes: Changes;
  /** What a worker had counted when it was last read, and that worker: the one that takes connections. */
  counted: Reading;
  countedBy: WorkerCounts | undefined;
}

const NOTHING: Reading = [];

export function newOrigin(listener = ''): Origin {
  const [namespace, service] = listener.split(':', 2);
  return { listener, key: `${namespace}/${service}`, loadBalancer: undefined, source: undefined, unread: -1 };
}

export function newSeries(kind: Series['kind'], origin: Origin = newOrigin()): Series {
  return {
    kind,
    listener: origin.listener,
    origin,
    labels: '',
    values: allColumns.map((_, at) => (at < counterCount ? 0 : Number.NaN)),
    isHttp: false,
    hasCheck: false,
    status: '',
    checkStatus: '',
    source: undefined,
    seen: 0,
    changes: newChanges(),
    counted: NOTHING,
    countedBy: undefined,
  };
}

/** True for those that this reading had, or left out because they are as they were. */
export function isOf(reading: number, { seen, origin }: Series): boolean {
  return seen === reading || origin.unread === reading;
}

/** Of listeners and members by the names that HAProxy has them under. Looks each pool up once. */
export class Names {
  readonly #loadBalancers: ReadonlyMap<string, LoadBalancer>;
  readonly #members = new WeakMap<Listener, ReadonlyMap<string, Member>>();

  constructor(loadBalancers: ReadonlyMap<string, LoadBalancer>) {
    this.#loadBalancers = loadBalancers;
  }

  /** undefined for what is not of the model. A load balancer that changes is another value. */
  listener(origin: Origin): Listener | undefined {
    const loadBalancer = this.#loadBalancers.get(origin.key);
    if (loadBalancer !== origin.loadBalancer) {
      origin.loadBalancer = loadBalancer;
      origin.source = loadBalancer?.listeners.find(({ name }) => name === origin.listener);
    }
    return origin.source;
  }

  member(listener: Listener | undefined, name: string): Member | undefined {
    if (listener === undefined) return undefined;
    let members = this.#members.get(listener);
    if (members === undefined) {
      members = new Map(listener.pool.members.map((member) => [member.name, member]));
      this.#members.set(listener, members);
    }
    return members.get(name);
  }
}

/** From a listener's name: `namespace:name:protocol:port:family`. Names of Kubernetes need no escaping. */
export function listenerLabels(name: string): string {
  const [namespace = '', service = '', protocol = '', port = '', family = ''] = name.split(':');
  return flat(`${serviceLabels({ namespace, service, port, protocol })},family="${family}"`);
}

export function memberLabels(listenerName: string, address: string, member: Member | undefined): string {
  const [namespace = '', service = '', protocol = '', port = ''] = listenerName.split(':');
  const [kind = '', target = ''] = member?.target.split('/', 2) ?? [];
  const behind = kind === 'Node' ? `,node="${target}"` : target === '' ? '' : `,pod="${target}"`;
  return flat(`${serviceLabels({ namespace, service, port, protocol })}${behind},address="${address}"`);
}

function serviceLabels(
  words: Readonly<Record<'namespace' | 'service' | 'port' | 'protocol', string>>,
): string {
  const { namespace, service, port, protocol } = words;
  return `namespace="${namespace}",service="${service}",port="${port}",protocol="${protocol.toUpperCase()}"`;
}

/** In one piece of memory: a text put together is kept as its parts, to be put together again at each use. */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}
