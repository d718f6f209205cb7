// Gets hold of a HAProxy worker, however long it takes: adopts the one that runs, or starts HAProxy where that is the
// agent's task. Says of each what it booted from, as far as that can be known.

import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { Slice } from '../../base/slice.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import type { Candidate, CandidateMaker } from '../config/candidate.ts';
import type { ConfigFile } from '../config/config-file.ts';
import { inFileOrder } from '../config/config-text.ts';
import { bindsOf } from '../config/listener-config.ts';
import { descriptionOf, structureHash } from '../config/render.ts';
import type { RenderContext } from '../config/render-context.ts';
import { findMaster, hasListened, isBooting } from '../process/find-master.ts';
import { type HaproxyPaths, startHaproxy } from '../process/process.ts';
import { readRunning } from '../readback.ts';
import { Running } from '../running.ts';
import { Runtime } from '../socket/runtime.ts';
import type { BootedWorker } from '../worker.ts';
import type { StartFaults } from './start-faults.ts';

export interface SupervisorOptions {
  readonly executable: string;
  readonly netns: string;
  readonly paths: HaproxyPaths;
  readonly maker: CandidateMaker;
  readonly faults: StartFaults;
  readonly file: ConfigFile;
  readonly context: (loadBalancers: ReadonlyMap<string, LoadBalancer>) => RenderContext;
  readonly wanted: ReadonlyMap<string, LoadBalancer>;
  /** Whether HAProxy is started here; otherwise systemd or someone else does it. */
  readonly startsHaproxy: boolean;
  readonly isReloading: () => boolean;
  /** Resolves when nobody else is writing the file. */
  readonly fileIdle: () => Promise<void>;
  readonly onRepair: (what: 'process' | 'socket') => void;
  /** The file could not be written: what HAProxy starts with is older. */
  readonly onUnwritten: (error: unknown) => void;
  readonly log: Log;
}

/** While it starts nobody is asked for it but itself. */
export type Phase = 'starting' | 'running';

/** A worker but for the connection to it. */
export type Expected = Omit<BootedWorker, 'runtime'>;

/** Before the first attempt has come to an end. */
const NOT_YET = 'HAProxy has not been reached yet';
const CONNECT_TIMEOUT = 2_000;
const START_TIMEOUT = 30_000;
/** Milliseconds that working out beforehand what a worker will run may hold up a change. */
const EXPECTING = 2;
/** Each round leaves out what the one before was refused for. */
const START_ROUNDS = 5;

export class Supervisor {
  readonly #options: SupervisorOptions;
  #fault = NOT_YET;
  #hasStarted = false;
  #isStarting = false;
  #closed = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
  }

  /** Why there is no worker, '' where there is one. */
  get fault(): string {
    return this.#fault;
  }

  /** Whether a HAProxy was started here, or is about to. */
  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  /** HAProxy is about to read the file: another one in its place would not be recognised. */
  get isStarting(): boolean {
    return this.#isStarting;
  }

  close(): void {
    this.#closed = true;
  }

  /**
   * Tries until it has a worker; undefined only after close(). `onAttempt` is called after each attempt that failed.
   * Nothing but HAProxy's absence is waited for, so that it is back as soon as it can be.
   */
  async obtain(onAttempt: () => void | Promise<void>): Promise<BootedWorker | undefined> {
    const { startsHaproxy, faults, file, log, onRepair } = this.#options;
    await faults.begin();
    for (let attempt = 0; !this.#closed; attempt++) {
      try {
        const worker = (await this.adopt()) ?? (await this.#startIfDue(attempt));
        if (worker !== undefined) {
          if (this.#fault !== NOT_YET) onRepair('process');
          this.#fault = '';
          faults.end();
          // Where it cannot be written the file itself cannot be either, and that is told.
          if (worker.structure !== '') void file.keepAsFirstGood().catch(() => undefined);
          return worker;
        }
        if (this.#fault === NOT_YET) this.#fault = 'HAProxy is not running';
        if (!startsHaproxy) this.#fault = (await faults.heed()) || this.#fault;
      } catch (error) {
        if (this.#fault !== messageOf(error)) log.error('HAProxy cannot be had', { error: messageOf(error) });
        this.#fault = messageOf(error);
      }
      await onAttempt();
      await delay(Math.min(1_000, 50 * 2 ** attempt));
    }
    return undefined;
  }

  /** A worker that was there is lost: until the next one, this is the fault. */
  lose(why: string): void {
    this.#fault = why;
  }

  /** undefined where no HAProxy answers at our sockets, or only one on its way out. Reads only. */
  async adopt(phase: Phase = 'running'): Promise<BootedWorker | undefined> {
    const { maker, context, file, log } = this.#options;
    const runtime = await this.connect(phase);
    if (runtime === undefined) return undefined;
    try {
      const { description, pid, stopping } = runtime.worker;
      if (stopping) {
        runtime.close();
        return undefined;
      }
      const bound = await file.placesUnder(description);
      const booted = await this.#bootedAs(description, bound);
      log.info('Adopted the HAProxy that runs', { worker: pid, ours: booted !== undefined });
      if (booted === undefined) {
        const running = await readRunning(runtime, [], false, context(new Map()).aclId);
        return { runtime, running, booted: new Map(), structure: '', bound };
      }
      const inOrder = inFileOrder(booted);
      const rendering = context(booted);
      const running = await readRunning(runtime, inOrder, true, rendering.aclId);
      maker.accept(booted);
      const structure = structureHash(rendering, inOrder);
      return { runtime, running, booted, structure, bound: bindsIn(booted) };
    } catch (error) {
      runtime.close();
      throw error;
    }
  }

  /**
   * Starts HAProxy with all that can be served, or, where the file cannot be written, with what stands there, or, where
   * no load balancer is at fault, with what served last.
   * Errors: HAPROXY_MISSING; HAPROXY_START where it does not serve with that either; FILE_WRITE.
   */
  async start(): Promise<BootedWorker> {
    const { maker, wanted, file, faults } = this.#options;
    let candidate = await maker.unchecked(wanted);
    for (let round = 1; ; round++) {
      try {
        await file.write(candidate.chunks);
        return await this.#start(candidate);
      } catch (error) {
        if (error instanceof HeadgateError && error.code === 'FILE_WRITE')
          return this.#startAsItStands(error);
        // One that lives, however long it takes, may be there when it is looked for again.
        if (!(error instanceof HeadgateError) || error.code !== 'HAPROXY_START' || error.retry === 'now')
          throw error;
        faults.note(messageOf(error));
        const isNamed = faults.rejectNamed(error.message, candidate, new Map());
        const next = await maker.prepare(wanted, new Map()).catch((fault: unknown) => {
          if (fault instanceof HeadgateError && fault.code === 'HAPROXY_REJECTED') return fault;
          throw fault;
        });
        if (next instanceof HeadgateError) return this.#startAsItWas(candidate, next);
        const isOther = isNamed || next.structure !== candidate.structure;
        if (!isOther || round >= START_ROUNDS) return this.#startAsItWas(candidate, error);
        candidate = next;
      }
    }
  }

  /**
   * Connects to the worker behind the admin socket, or, where that is gone, through the master's, unless HAProxy is
   * being started.
   */
  async connect(phase: Phase = 'running'): Promise<Runtime | undefined> {
    const { adminSocket: socketPath, masterSocket: masterSocketPath } = this.#options.paths;
    const isStarting = phase === 'starting';
    if (!existsSync(socketPath) && (isStarting || !existsSync(masterSocketPath))) return undefined;
    try {
      return await Runtime.connect({
        socketPath,
        masterSocketPath,
        isStarting,
        timeoutMs: CONNECT_TIMEOUT,
      });
    } catch (error) {
      if (error instanceof HeadgateError && error.code === 'RUNTIME_CONNECT') return undefined;
      throw error;
    }
  }

  /** Whether a HAProxy answers at our sockets, started by whomever. Reads only. */
  async isRunning(): Promise<boolean> {
    const runtime = await this.connect().catch(() => undefined);
    runtime?.close();
    return runtime !== undefined;
  }

  /** What a worker is and runs that boots from this candidate: to be made while it boots, when nobody waits for it. */
  async expect({ loadBalancers: booted, structure }: Candidate): Promise<Expected> {
    const { aclId } = this.#options.context(booted);
    const running = new Running();
    const bound = new Set<string>();
    const slice = new Slice(EXPECTING);
    for (const loadBalancer of booted.values()) {
      running.boot(loadBalancer, aclId);
      for (const place of loadBalancer.listeners.flatMap(bindsOf)) bound.add(place);
      if (slice.isOver) await slice.breathe();
    }
    return { running, booted, structure, bound };
  }

  /** The worker that serves exactly this candidate; undefined where the one that answers does not. */
  async find(
    candidate: Candidate,
    phase: Phase = 'running',
    expected?: Expected,
  ): Promise<BootedWorker | undefined> {
    const runtime = await this.connect(phase).catch(() => undefined);
    if (runtime === undefined) return undefined;
    const { description, pid } = runtime.worker;
    if (description !== descriptionOf(candidate.structure) || !(pid > 0)) {
      runtime.close();
      return undefined;
    }
    return { runtime, ...(expected ?? (await this.expect(candidate))) };
  }

  /**
   * What is wanted, if a worker of this description booted from it: all of it, or what is left without the addresses
   * that cannot be bound, as the agent before this one will have found.
   */
  async #bootedAs(
    description: string,
    bound: ReadonlySet<string> | undefined,
  ): Promise<ReadonlyMap<string, LoadBalancer> | undefined> {
    const { maker, context, wanted } = this.#options;
    for (const isProbed of [false, true]) {
      if (isProbed) await maker.probe(wanted, bound);
      const booted = maker.effective(wanted);
      if (description === descriptionOf(structureHash(context(booted), inFileOrder(booted)))) return booted;
    }
    return undefined;
  }

  async #startIfDue(attempt: number): Promise<BootedWorker | undefined> {
    const { startsHaproxy, fileIdle, log } = this.#options;
    if (!startsHaproxy || (await this.#wake(attempt))) return undefined;
    // From now on there may be one, also where nobody waits any longer until it answers.
    this.#hasStarted = true;
    this.#isStarting = true;
    await fileIdle();
    const worker = await this.start().finally(() => {
      this.#isStarting = false;
    });
    log.info('Started HAProxy', { worker: worker.runtime.worker.pid });
    return worker;
  }

  /**
   * A master that lives although its sockets are gone (someone removed them) makes its own anew at a reload.
   * True where there is such a master: starting another HAProxy beside it would be wrong.
   */
  async #wake(attempt: number): Promise<boolean> {
    const { paths, isReloading, onRepair, log } = this.#options;
    const pid = await findMaster(paths);
    if (pid === undefined) return isBooting(paths);
    const isGone = attempt % 4 === 3 && !isReloading() && !existsSync(paths.masterSocket);
    if (isGone && (await hasListened(pid, paths))) {
      log.warn('HAProxy lives but its sockets are gone: reloading it by signal', { master: pid });
      process.kill(pid, 'SIGUSR2');
      onRepair('socket');
    }
    return true;
  }

  /** For a refusal that is no load balancer's fault: an older HAProxy serves better than none. */
  async #startAsItWas(candidate: Candidate, why: HeadgateError): Promise<BootedWorker> {
    const { maker, file } = this.#options;
    maker.tried(candidate.loadBalancers, false);
    if (!(await file.restoreLastGood())) throw why;
    return this.#startFile();
  }

  async #startAsItStands(why: HeadgateError): Promise<BootedWorker> {
    const { paths, onUnwritten } = this.#options;
    if (!existsSync(paths.config)) throw why;
    onUnwritten(why);
    return this.#startFile();
  }

  async #startFile(): Promise<BootedWorker> {
    const { executable, netns, paths, log } = this.#options;
    log.warn('Starting HAProxy with the file that stands there', { path: paths.config });
    return startHaproxy(executable, paths, () => this.adopt('starting'), START_TIMEOUT, netns);
  }

  async #start(candidate: Candidate): Promise<BootedWorker> {
    const { executable, netns, paths, maker } = this.#options;
    const find = (): Promise<BootedWorker | undefined> => this.find(candidate, 'starting');
    const worker = await startHaproxy(executable, paths, find, START_TIMEOUT, netns);
    maker.accept(candidate.loadBalancers);
    return worker;
  }
}

function bindsIn(loadBalancers: ReadonlyMap<string, LoadBalancer>): ReadonlySet<string> {
  return new Set([...loadBalancers.values()].flatMap(({ listeners }) => listeners.flatMap(bindsOf)));
}
