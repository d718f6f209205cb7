// The events of the ack rows, and the protocol between the benchmark and a process that it measures with them.

import { setTimeout as delay } from 'node:timers/promises';
import { Addresses, type ServiceSpec, services, sliceObject } from './objects.ts';
import { answer, over } from './parent.ts';

export interface AckOrder {
  readonly directory: string;
  readonly haproxy: string;
  readonly count: number;
  readonly size: number;
  /** The port of every Service. */
  readonly port: number;
  /** Default: HAProxy. */
  readonly engine?: 'kernel' | 'haproxy';
}

export type AckQuestion = AckOrder | { readonly samples: number };
export interface AckAnswer {
  /** Milliseconds from the event to the acknowledgement. */
  readonly samples: readonly number[];
}

export interface Timed {
  /** Makes one change; resolves with its milliseconds. */
  readonly sample: () => Promise<number>;
  readonly stop: () => Promise<void>;
}

/** Each event replaces one endpoint of the next Service, as a rolling update does. */
export class AckFeed {
  readonly specs: readonly ServiceSpec[];
  readonly #addresses = new Addresses();
  readonly #current: ServiceSpec[];
  #events = 0;

  constructor({ count, size, port }: AckOrder) {
    this.specs = services(this.#addresses, count, size, { port });
    this.#current = [...this.specs];
  }

  /** The text of the EndpointSlice. */
  next(): string {
    const { length } = this.#current;
    // A prime stride, so that consecutive events change Services that are far apart in the file.
    const at = (this.#events++ * 7919) % length;
    const spec = this.#current[at];
    if (spec === undefined) throw new Error('No Services');
    const fresh = { address: this.#addresses.pod(150_000 + this.#events), port: 9000 };
    const changed = { ...spec, members: [...spec.members.slice(1), fresh] };
    this.#current[at] = changed;
    return JSON.stringify(sliceObject(changed));
  }
}

/** Prepares at the first message, takes samples at each later message, and stops on SIGTERM. */
export async function serveAck(prepare: (order: AckOrder) => Promise<Timed>): Promise<void> {
  const questions: AckQuestion[] = [];
  let wake: (() => void) | undefined;
  let isOver = false;
  process.on('message', (question: AckQuestion) => {
    questions.push(question);
    wake?.();
  });
  void over.then(() => {
    isOver = true;
    wake?.();
  });
  let timed: Timed | undefined;
  while (!isOver) {
    const question = questions.shift();
    if (question === undefined) await new Promise<void>((resolve) => (wake = resolve));
    else if ('directory' in question) {
      timed = await prepare(question);
      answer({ samples: [] });
    } else if (timed !== undefined) answer({ samples: await take(timed, question.samples) });
  }
  await timed?.stop();
  process.exit();
}

async function take(timed: Timed, count: number): Promise<number[]> {
  const samples: number[] = [];
  while (samples.length < count) {
    samples.push(await timed.sample());
    await delay(5 + Math.random() * 20);
  }
  return samples;
}
