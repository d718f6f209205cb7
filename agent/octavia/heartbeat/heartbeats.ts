// Sends a heartbeat to the next controller at each interval. Without one for a minute the controller replaces the amphora, so that
// what cannot be read is left out, and no fault ends the rounds. Owns its timer and its sockets.

import { createSocket, type Socket } from 'node:dgram';
import { promises as dns, type LookupAddress } from 'node:dns';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import { parseJson } from '../../base/parse-json.ts';
import { Rounds } from '../../base/rounds.ts';
import { socketAddress } from '../../base/socket-address.ts';
import { isMapping, number, object } from '../../base/validate.ts';
import { writeAtomically } from '../../host/atomic-file.ts';
import type { Log } from '../../host/log.ts';
import type { StatRow } from '../../pushed/pushed.ts';
import type { DatagramListener } from '../parts.ts';
import type { Controller, HeartbeatSettings } from '../settings/amphora-settings.ts';
import { envelope, excessOf, fitsDatagram } from './envelope.ts';
import { type KeptCounters, ListenerCounters } from './listener-counters.ts';
import { composeMessage, countersOf, type RunningText, withoutMembers } from './message.ts';

export interface HeartbeatsOptions {
  readonly amphoraId: string;
  readonly settings: () => HeartbeatSettings;
  /** The folder of the counters. */
  readonly folder: string;
  readonly sources: HeartbeatSources;
  readonly send?: (bytes: Buffer, to: Controller) => Promise<void>;
  readonly log: Log;
  readonly clock?: Clock;
}

export interface HeartbeatSources {
  /** False: keepalived is configured and dead; the controller must not believe that all is well. */
  isWell(): Promise<boolean>;
  /** Load balancers whose HAProxy answers. */
  running(): Promise<readonly RunningText[]>;
  datagrams(): Promise<readonly DatagramListener[]>;
}

export interface HeartbeatStatus {
  readonly sent: number;
  readonly last: { readonly at: Date; readonly to: string; readonly bytes: number } | undefined;
  /** Why the last one was not sent; '' if it was. */
  readonly fault: string;
}

const counters = object({ bin: number(), bout: number(), stot: number(), ereq: number() });

export class Heartbeats {
  readonly #options: HeartbeatsOptions;
  readonly #rounds: Rounds;
  readonly #sockets = new DatagramSockets();
  readonly #fault = new Fault();
  readonly #excess = new Fault();
  readonly #unstored = new Fault();
  #counters = new ListenerCounters();
  #seq = 0;
  #sent = 0;
  #last: HeartbeatStatus['last'];

  constructor(options: HeartbeatsOptions) {
    this.#options = options;
    this.#rounds = new Rounds({
      intervalMs: () => options.settings().intervalMs,
      work: () => this.#beat(),
      onFailed: (error) => this.#failed(messageOf(error)),
      ...(options.clock && { clock: options.clock }),
    });
  }

  /** The first heartbeat goes at once, because the controller waits for it. */
  async start(): Promise<void> {
    this.#counters = new ListenerCounters(readKept(await readFile(this.#file, 'utf8').catch(() => '{}')));
    this.#rounds.start();
    void this.now();
  }

  /** Sends one unless one is under way. Never rejects. */
  now(): Promise<void> {
    return this.#rounds.now();
  }

  /** The settings have changed. */
  configure(): void {
    this.#rounds.retime();
  }

  /** What a worker has counted that is about to be replaced. */
  observe(rows: readonly StatRow[]): void {
    this.#counters.observe(countersOf(rows));
  }

  /** These listeners are gone. */
  forget(listeners: Iterable<string>): void {
    this.#counters.forget(listeners);
  }

  /** Another worker serves these listeners. */
  restarted(listeners: Iterable<string>): void {
    this.#counters.restarted(listeners);
  }

  status(): HeartbeatStatus {
    return { sent: this.#sent, last: this.#last, fault: this.#fault.text };
  }

  close(): void {
    this.#rounds.close();
    this.#sockets.close();
  }

  get #file(): string {
    return join(this.#options.folder, 'stats_counters.json');
  }

  async #beat(): Promise<void> {
    const { sources, settings, log, clock } = this.#options;
    const { controllers, key } = settings();
    const to = controllers[this.#seq % Math.max(1, controllers.length)];
    if (to === undefined)
      return this.#failed('the settings have no controller: [health_manager] controller_ip_port_list');
    if (!(await sources.isWell())) return this.#failed('keepalived is configured, but does not run');
    const bytes = await this.#compose(key.reveal());
    const place = socketAddress(to.host, to.port);
    await (this.#options.send ?? this.#sockets.send)(bytes, to).catch((error: unknown) => {
      throw new Error(`cannot send to ${place}`, { cause: error });
    });
    this.#sent++;
    this.#last = { at: new Date(clock?.wall() ?? Date.now()), to: place, bytes: bytes.length };
    this.#counters.sent();
    if (this.#fault.clear()) log.info('Heartbeats are sent again', { to: place });
    await this.#store();
  }

  async #compose(key: string): Promise<Buffer> {
    const { sources, amphoraId, log } = this.#options;
    const [running, datagrams] = await Promise.all([sources.running(), sources.datagrams()]);
    for (const { rows } of running) this.#counters.observe(countersOf(rows));
    this.#counters.observe(
      new Map(datagrams.map(({ id, stats: { tx, rx, totconns } }) => [id, { tx, rx, totconns, ereq: 0 }])),
    );
    const head = { id: amphoraId, seq: this.#seq++ };
    const whole = composeMessage(head, running, datagrams, this.#counters.pending());
    let bytes = envelope(JSON.stringify(whole), key);
    if (fitsDatagram(bytes)) {
      if (this.#excess.clear()) log.info('Heartbeats have all members again');
      return bytes;
    }
    let part = 0;
    let left = 0;
    while (!fitsDatagram(bytes) && part < 1) {
      part = Math.min(1, part + (1 - part) * excessOf(bytes));
      const short = withoutMembers(whole, part);
      left = short.left;
      bytes = envelope(JSON.stringify(short.message), key);
    }
    if (this.#excess.set('too large'))
      log.warn('A heartbeat with all members would not fit into a datagram: members are left out', {
        members: left,
      });
    return bytes;
  }

  /** What is not stored is counted twice by the next agent. */
  async #store(): Promise<void> {
    const { log } = this.#options;
    try {
      await writeAtomically(this.#file, [JSON.stringify(this.#counters.kept())]);
      if (this.#unstored.clear()) log.info('Counters of listeners are stored again');
    } catch (error) {
      if (this.#unstored.set(messageOf(error)))
        log.warn('Cannot store the counters of listeners', { error: this.#unstored.text });
    }
  }

  #failed(fault: string): void {
    if (this.#fault.set(fault)) this.#options.log.error('Sends no heartbeat', { error: fault });
  }
}

/** What cannot be read counts from 0. */
function readKept(text: string): KeptCounters {
  const kept = parseJson(text);
  const entries = isMapping(kept) ? Object.entries(kept) : [];
  return Object.fromEntries(
    entries.flatMap(([id, value]) => {
      const judged = counters.judge(value);
      return judged.success ? [[id, judged.data]] : [];
    }),
  );
}

/** One socket for each family, opened at its first use. */
class DatagramSockets {
  readonly #sockets = new Map<4 | 6, Socket>();

  readonly send = async (bytes: Buffer, { host, port }: Controller): Promise<void> => {
    const { address, family } = await addressOf(host);
    const socket = this.#socket(family === 6 ? 6 : 4);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.send(bytes, port, address, (error) => (error === null ? resolve() : reject(error)));
    await promise;
  };

  close(): void {
    for (const socket of this.#sockets.values()) socket.close();
    this.#sockets.clear();
  }

  #socket(family: 4 | 6): Socket {
    let socket = this.#sockets.get(family);
    if (socket === undefined) {
      socket = createSocket(family === 6 ? 'udp6' : 'udp4');
      // A controller that is away answers by ICMP; the next heartbeat goes to the next controller.
      socket.on('error', () => undefined);
      socket.unref();
      this.#sockets.set(family, socket);
    }
    return socket;
  }
}

async function addressOf(host: string): Promise<LookupAddress> {
  const family = isIP(host);
  return family > 0 ? { address: host, family } : await dns.lookup(host);
}
