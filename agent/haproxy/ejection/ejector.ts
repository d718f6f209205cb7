// Lets members rest that fail clients: counts the errors of each member over all pools of a namespace, gives it no more
// connections after some in a row, and brings it back when it has rested and a probe has passed.
// Why: docs/design/decisions/0093-ejection-by-lines.md

import { type Clock, systemClock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import { listenerOfBackend, ownerOf, ownerOfListener } from '../../model/names.ts';
import type { BootedWorker } from '../booted-worker.ts';
import { readServers } from '../readback.ts';
import type { Command } from '../socket/commands.ts';
import { parseServersState } from '../socket/servers-state.ts';
import type { CheckResults } from '../worker/check-watch.ts';
import {
  answersQuestion,
  endProbeCommands,
  goodAnswers,
  probeCommands,
  probedPlace,
  restCommands,
  returnCommands,
  upCommand,
} from './commands.ts';
import { errorInWords, parseErrorLine, type RequestError } from './error-line.ts';
import { MemberPlaces, memberId, type Place } from './member-places.ts';
import { countOf, type PastRest, restMs, trialMs } from './rest-times.ts';
import { type MemberKnown, mayRest, tooMany } from './share.ts';

export interface EjectorOptions {
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  readonly checkResults: CheckResults;
  /** The folder of certificates. */
  readonly certificates: string;
  /** Members of these load balancers began to rest, or came back. */
  readonly onChanged: (keys: readonly string[]) => void;
  /** `kept`: the share of its pool does not let the member rest. */
  readonly onEjected: (result: 'rested' | 'kept') => void;
  readonly log: Log;
  readonly clock?: Clock;
}

/** The errors of a member since its last good answer. */
interface Errors {
  count: number;
  /** The good answers at the first of them, and at the last but one. */
  baseline: Promise<number>;
  checkpoint: Promise<number>;
  isJudged: boolean;
  /** A good answer between the last two has been overlooked before: until this time it is judged before it rests. */
  carefulUntil: number;
  /** No count before this time: its pool could not let it rest. */
  quietUntil: number;
}

interface Rest {
  readonly count: number;
  readonly cause: string;
  readonly endsAt: number;
  places: readonly Place[];
  probed: Place | undefined;
  passes: boolean;
  readonly cancel: (() => void)[];
}

const QUIET_MS = 250;
const CAREFUL_MS = 10_000;
const DELETE_AGAIN_MS = 1_000;
const MOST_DELETES = 30;
const MOST_PAST_RESTS = 10_000;
/** Members that have gone keep their errors until there are so many. */
const MOST_ERRORS = 10_000;

export class Ejector {
  readonly #options: EjectorOptions;
  readonly #clock: Clock;
  readonly #places = new MemberPlaces();
  /** These maps have the id of the member as key. */
  readonly #errors = new Map<string, Errors>();
  readonly #rests = new Map<string, Rest>();
  readonly #past = new Map<string, PastRest>();
  #worker: BootedWorker | undefined;

  constructor(options: EjectorOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Some pool lets its members rest. */
  get isNeeded(): boolean {
    return !this.#places.listeners()[Symbol.iterator]().next().done;
  }

  /** Why the member of this listener rests; '' if it does not. */
  causeOf(listener: string, member: string): string {
    const rest = this.#rests.get(memberId(namespaceOf(listener), member));
    const isThere = rest?.places.some((place) => place.listener.name === listener) === true;
    return isThere ? `it rests, because ${rest.cause}` : '';
  }

  /** The worker that has the members from now on: those that rest continue to. undefined: there is none. */
  serve(worker: BootedWorker | undefined): void {
    const isFirst = this.#worker === undefined;
    this.#worker = worker;
    this.#errors.clear();
    if (worker === undefined) return;
    for (const rest of this.#rests.values()) {
      rest.passes = false;
      this.#send([...restCommands(rest.places), ...this.#probe(rest)]);
    }
    if (isFirst) void this.#takeBack(worker).catch((error) => this.#failed(error));
  }

  /** These load balancers have changed. */
  changed(keys: Iterable<string>): void {
    const { desired } = this.#options;
    const pools = new Set<string>();
    for (const key of keys) {
      this.#places.put(key, desired.get(key));
      pools.add(key);
    }
    for (const [member, rest] of this.#rests) {
      if (!rest.places.some(({ key }) => pools.has(key))) continue;
      const places = this.#places.of(member);
      if (places.length === 0) this.#end(member, rest, 'it is removed');
      else this.#stand(member, rest, places);
    }
    if (this.#rests.size === 0) return;
    for (const key of pools) {
      const { namespace } = ownerOf(key);
      const resting = [...this.#rests.keys()].flatMap((id) =>
        id.startsWith(`${namespace}:`) ? [id.slice(namespace.length + 1)] : [],
      );
      for (const { pool } of desired.get(key)?.listeners ?? [])
        if (pool.ejection !== undefined)
          for (const name of tooMany(pool, resting, this.#known(namespace)))
            this.#comeBack(memberId(namespace, name), 'its pool has too few others');
    }
  }

  /** A line of the worker's ring. */
  line(text: string): void {
    const found = parseErrorLine(text);
    if (found === undefined) return;
    if (found.kind === 'error') this.#error(found);
    else this.#probeEnded(found.probe, found.passes);
  }

  /** Members come back, because without the agent none would bring them back. */
  async close(): Promise<void> {
    const commands = [...this.#rests.values()].flatMap((rest) => [
      ...returnCommands(rest.places),
      ...(rest.probed === undefined ? [] : endProbeCommands(rest.probed)),
    ]);
    for (const { cancel } of this.#rests.values()) for (const each of cancel) each();
    this.#rests.clear();
    await this.#worker?.runtime.send(commands).catch(() => undefined);
    this.#worker = undefined;
  }

  #error(error: RequestError): void {
    const backend = this.#worker?.runtime.names.inAgent(error.backend) ?? '';
    const member = memberId(namespaceOf(listenerOfBackend(backend)), error.member);
    const now = this.#clock.monotonic();
    if (!this.#places.has(member) || this.#rests.has(member)) return;
    const known = this.#errors.get(member);
    if (known !== undefined && (known.isJudged || now < known.quietUntil)) return;
    const places = this.#places.of(member);
    const cause = causeIn(places, error);
    if (cause === '') return;
    const errors = known ?? newErrors();
    if (this.#errors.size >= MOST_ERRORS) this.#forgetGone();
    this.#errors.set(member, errors);
    errors.count++;
    const after = Math.min(...places.map(({ listener }) => listener.pool.ejection?.after ?? Infinity));
    if (errors.count < after) {
      if (errors.count === 1) errors.baseline = this.#answers(places);
      if (errors.count === after - 1)
        errors.checkpoint = errors.count === 1 ? errors.baseline : this.#answers(places);
      // They are read when they are needed.
      for (const each of [errors.baseline, errors.checkpoint]) each.catch(() => undefined);
      return;
    }
    errors.isJudged = true;
    void this.#judge(member, errors, after, cause)
      .catch((error) => this.#failed(error))
      .finally(() => {
        errors.isJudged = false;
      });
  }

  #forgetGone(): void {
    for (const member of this.#errors.keys()) if (!this.#places.has(member)) this.#errors.delete(member);
  }

  /**
   * Lets it rest if it has answered nothing well in between. HAProxy is asked about the time before the last error but one in
   * advance, and about the time after it when the member gets no more, so that it fails no further request meanwhile.
   */
  async #judge(member: string, errors: Errors, after: number, cause: string): Promise<void> {
    const now = this.#clock.monotonic();
    const isCareful = after > 1 && now < errors.carefulUntil;
    const before = after > 1 ? await errors.baseline : 0;
    const checkpoint = after > 1 ? await errors.checkpoint : 0;
    const seen = isCareful ? await this.#answers(this.#places.of(member)) : checkpoint;
    if (seen > before) return countAgain(errors, seen);
    const places = this.#places.of(member);
    if (places.length === 0 || this.#rests.has(member)) return;
    const may = places.every(({ key, listener: { pool }, member: { name } }) =>
      mayRest(pool, name, this.#known(ownerOf(key).namespace)),
    );
    if (!may) {
      this.#options.onEjected('kept');
      errors.count = 0;
      errors.quietUntil = now + QUIET_MS;
      this.#options.log.debug('A member fails, but its pool does not let it rest', { member, cause });
      return;
    }
    const rest = this.#begin(member, places, cause, after);
    if (after > 1 && !isCareful) {
      const answered = await this.#answers(places);
      if (answered > checkpoint && this.#rests.get(member) === rest) {
        this.#rests.delete(member);
        this.#send(places.map(upCommand));
        errors.carefulUntil = now + CAREFUL_MS;
        return countAgain(errors, answered);
      }
    }
    if (this.#rests.get(member) === rest) this.#confirm(member, rest, cause, after);
  }

  #begin(member: string, places: readonly Place[], cause: string, after: number): Rest {
    const count = countOf(this.#past.get(member), this.#clock.monotonic());
    const rest: Rest = {
      count,
      cause: `${after === 1 ? 'of an error' : `of ${after} errors in a row`}: ${cause}`,
      endsAt: this.#clock.monotonic() + restMs(count),
      places,
      probed: probedPlace(places),
      passes: false,
      cancel: [],
    };
    this.#rests.set(member, rest);
    this.#send(restCommands(places));
    return rest;
  }

  #confirm(member: string, rest: Rest, cause: string, after: number): void {
    const time = restMs(rest.count);
    this.#errors.delete(member);
    this.#send(this.#probe(rest));
    rest.cancel.push(
      this.#clock.after(time, () => {
        if (rest.passes || rest.probed === undefined) this.#comeBack(member, 'it has rested');
      }),
      this.#clock.after(Math.max(time, trialMs(rest.count)), () =>
        this.#comeBack(member, 'it is tried again'),
      ),
    );
    this.#options.onEjected('rested');
    const fields = { cause, errors: after, restMs: time };
    this.#report('A member rests, because it fails clients', member, rest.places, fields);
  }

  #probeEnded(member: string, passes: boolean): void {
    const rest = this.#rests.get(member);
    if (rest === undefined) return;
    rest.passes = passes;
    if (passes && this.#clock.monotonic() >= rest.endsAt) this.#comeBack(member, 'it answers again');
  }

  #comeBack(member: string, why: string): void {
    const rest = this.#rests.get(member);
    if (rest === undefined) return;
    this.#send(returnCommands(rest.places));
    this.#end(member, rest, why);
  }

  #end(member: string, rest: Rest, why: string): void {
    this.#rests.delete(member);
    this.#errors.delete(member);
    for (const cancel of rest.cancel) cancel();
    if (this.#past.size >= MOST_PAST_RESTS) this.#past.clear();
    this.#past.set(member, { count: rest.count, endedAt: this.#clock.monotonic() });
    if (rest.probed !== undefined) this.#endProbe(member, rest.probed, 1);
    this.#report('A member comes back', member, rest.places, { why });
  }

  /** It stands in other pools, or in the same ones with other values. */
  #stand(member: string, rest: Rest, places: readonly Place[]): void {
    const before = new Set(rest.places.map(({ listener }) => listener.name));
    rest.places = places;
    this.#send(restCommands(places.filter(({ listener }) => !before.has(listener.name))));
    if (places.some((place) => place.member.state !== 'ready'))
      this.#comeBack(member, 'it gets no new connections');
  }

  #probe({ probed }: Rest): readonly Command[] {
    return probed === undefined ? [] : probeCommands(probed, this.#options.certificates);
  }

  /** A server whose connection is still open cannot be deleted. */
  #endProbe(member: string, probed: Place, attempt: number): void {
    const worker = this.#worker;
    if (worker === undefined || this.#rests.has(member)) return;
    worker.runtime
      .send(endProbeCommands(probed), { lane: 'bulk' })
      .then(([, deleted]) => {
        if (deleted === undefined || deleted.ok || deleted.kind === 'gone' || attempt >= MOST_DELETES) return;
        this.#clock.after(DELETE_AGAIN_MS, () => {
          if (worker === this.#worker) this.#endProbe(member, probed, attempt + 1);
        });
      })
      .catch((error) => this.#failed(error));
  }

  /** An agent before this one has ended without bringing its members back, and its probes are still there. */
  async #takeBack({ runtime, running }: BootedWorker): Promise<void> {
    const commands: Command[] = [];
    // The one that is not named so stands there for HAProxy.
    for (const backend of ['headgate:probes', 'headgate:connections'])
      for (const { server } of parseServersState(await runtime.ask(`show servers state ${backend}`)))
        if (server.includes(':') && !this.#rests.has(server))
          commands.push(
            { kind: 'SetServerState', backend, server, state: 'maint' },
            { kind: 'DeleteServer', backend, server },
          );
    const names = [...this.#places.listeners()]
      .filter(({ name, pool }) => pool.monitor === undefined && running.has(name))
      .map(({ name }) => name);
    await readServers(runtime, names, (backend, answer) => {
      for (const { server, operational, state } of parseServersState(answer))
        if (operational === 'down' && state === 'ready' && this.causeOf(backend, server) === '')
          commands.push({ kind: 'AssumeHealth', backend, server });
    });
    await runtime.send(commands, { lane: 'bulk' });
  }

  async #answers(places: readonly Place[]): Promise<number> {
    const worker = this.#worker;
    if (worker === undefined) return 0;
    const there = places.filter(({ listener }) => worker.running.has(listener.name));
    const answers = await worker.runtime.askAll(there.map(answersQuestion));
    return answers.reduce((sum, answer) => sum + goodAnswers(answer), 0);
  }

  #known(namespace: string): (name: string) => MemberKnown {
    const { checkResults } = this.#options;
    return (name) => ({
      rests: this.#rests.has(memberId(namespace, name)),
      isDown: this.#places
        .of(memberId(namespace, name))
        .some(({ listener }) => checkResults.get(listener.name)?.get(name)?.isDown === true),
    });
  }

  #send(commands: readonly Command[]): void {
    const worker = this.#worker;
    if (worker === undefined) return;
    const known = commands.filter(
      (command) =>
        !('backend' in command) ||
        command.backend.startsWith('headgate:') ||
        worker.running.has(command.backend),
    );
    if (known.length > 0) worker.runtime.send(known).catch((error) => this.#failed(error));
  }

  #report(
    words: string,
    member: string,
    places: readonly Place[],
    fields: Readonly<Record<string, unknown>>,
  ): void {
    const keys = [...new Set(places.map(({ key }) => key))];
    this.#options.log.info(words, {
      member: places[0]?.member.name ?? member,
      loadBalancers: keys,
      ...fields,
    });
    this.#options.onChanged(keys);
  }

  /** The worker is being replaced, or did not answer: the next one gets all again. */
  #failed(error: unknown): void {
    this.#options.log.debug('Cannot let members rest now', { error: messageOf(error) });
  }
}

function newErrors(): Errors {
  const none = Promise.resolve(0);
  return { count: 0, baseline: none, checkpoint: none, isJudged: false, carefulUntil: 0, quietUntil: 0 };
}

/** The last error is the first of a new row. */
function countAgain(errors: Errors, answered: number): void {
  errors.count = 1;
  errors.baseline = Promise.resolve(answered);
  errors.checkpoint = errors.baseline;
}

function namespaceOf(listener: string): string {
  return ownerOf(ownerOfListener(listener)).namespace;
}

/** By the first of its pools for which it counts; '' for none. */
function causeIn(places: readonly Place[], error: RequestError): string {
  for (const { listener } of places) {
    const { pool, mode } = listener;
    const words = pool.ejection === undefined ? '' : errorInWords(error, pool.ejection, mode);
    if (words !== '') return words;
  }
  return '';
}
