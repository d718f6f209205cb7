// The parts of an amphora in memory: what the REST API asks of them is noted, and they refuse what a test tells them to.

import { createHash } from 'node:crypto';
import { HeadgateError } from '../../../agent/base/errors.ts';
import type {
  AmphoraDatagrams,
  AmphoraNetwork,
  AmphoraVrrp,
  DatagramListener,
} from '../../../agent/octavia/parts.ts';
import type { PushedHaproxy, PushResult, StatRow } from '../../../agent/pushed/pushed.ts';

/** `Cannot` in a text makes HAProxy refuse it, `fails` makes its reload fail. */
export class FakeHaproxy implements PushedHaproxy {
  readonly runs: string[] = [];
  rows: readonly StatRow[] = [];
  /** Resolves when a run may end. */
  gate: Promise<void> = Promise.resolve();
  isClosed = false;
  /** Gets the rows of a worker before another one runs. */
  onReplace: (rows: readonly StatRow[]) => void = () => undefined;
  #text: string | undefined;
  #cause = '';

  async adopt(): Promise<void> {}

  /** A worker that an agent before this one has started. */
  serve(text: string): void {
    this.#text = text;
  }

  async check(text: string): Promise<void> {
    if (text.includes('Cannot'))
      throw new HeadgateError('HAPROXY_REJECTED', '[ALERT] line 1: unknown keyword');
  }

  async run(text: string): Promise<PushResult> {
    await this.gate;
    if (text.includes('fails')) throw new HeadgateError('HAPROXY_RELOAD', 'cannot bind socket');
    this.runs.push(text);
    if (text === this.#text) return 'none';
    if (this.#text !== undefined) this.onReplace(this.rows);
    this.#cause = this.#text === undefined ? 'HAProxy was down' : 'the text differs';
    this.#text = text;
    return 'reload';
  }

  async stop(): Promise<void> {
    this.#text = undefined;
  }

  close(): void {
    this.isClosed = true;
  }

  async stats(): Promise<readonly StatRow[] | undefined> {
    return this.#text === undefined ? undefined : this.rows;
  }

  status() {
    const text = this.#text === undefined ? '' : createHash('md5').update(this.#text).digest('hex');
    return { isRunning: this.#text !== undefined, text, since: undefined, cause: this.#cause, fault: '' };
  }
}

/** Calls as texts, in their order. */
export function fakeNetwork(calls: string[]): AmphoraNetwork {
  const known = new Set<string>();
  return {
    restore: async () => void calls.push('restore'),
    plugVip: async (plug) => {
      if (plug.mac === 'fa:16:3e:00:00:00')
        throw new HeadgateError('OCTAVIA_NO_INTERFACE', 'No suitable network interface found');
      if (known.has(plug.mac)) throw new HeadgateError('OCTAVIA_EXISTS', 'Interface already exists');
      known.add(plug.mac);
      calls.push(`plug ${JSON.stringify(plug)}`);
      return 'eth1';
    },
    plugNetwork: async (plug) => {
      calls.push(`plug ${JSON.stringify(plug)}`);
      const isKnown = known.has(plug.mac);
      known.add(plug.mac);
      return { name: 'eth2', isKnown };
    },
    interfaceOf: async (address) => (address === '10.0.0.5' ? 'eth1' : undefined),
    setRules: async (address, rules) => void calls.push(`rules ${address} ${JSON.stringify(rules)}`),
    announce: async () => void calls.push('announce'),
    traffic: async () => new Map([['eth1', { tx: 1, rx: 2 }]]),
  };
}

export function fakeVrrp(calls: string[]): AmphoraVrrp & { well: boolean } {
  const note = (what: string) => async () => void calls.push(`vrrp ${what}`);
  return {
    well: true,
    upload: async (text) => void calls.push(`vrrp upload ${text}`),
    start: note('start'),
    stop: note('stop'),
    reload: note('reload'),
    restore: note('restore'),
    check: async ({ sockets, hasDatagrams }) =>
      void calls.push(`vrrp check ${[...sockets, hasDatagrams].join(' ')}`),
    async isWell() {
      return this.well;
    },
    close: note('close'),
  };
}

/** A text with `Cannot` is refused. */
export function fakeDatagrams(): AmphoraDatagrams {
  const texts = new Map<string, string>();
  return {
    put: async (id, text) => {
      if (text.includes('Cannot')) throw new HeadgateError('OCTAVIA_INVALID', `Cannot read line 1: ${text}`);
      texts.set(id, text);
    },
    get: async (id) => texts.get(id),
    remove: async (id) => void texts.delete(id),
    ids: () => [...texts.keys()],
    report: async () =>
      [...texts.keys()].map(
        (id): DatagramListener => ({
          id,
          stats: { tx: 0, rx: 0, conns: 0, totconns: 0 },
          pool: undefined,
        }),
      ),
  };
}
