// Gets a HAProxy worker, however long it takes: adopts a running one, or starts HAProxy if that is the agent's task.
// Finds out what each worker booted from, as far as possible.

import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '../../base/backoff.ts';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import { Slice } from '../../base/slice.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import type { Candidate, CandidateMaker } from '../config/candidate.ts';
import type { ConfigFile } from '../config/config-file.ts';
import { inFileOrder } from '../config/config-text.ts';
import { bindsOf } from '../config/listener-config.ts';
import { descriptionOf, structureHash } from '../config/render.ts';
import type { RenderContext } from '../config/render-context.ts';
import type { HaproxyPaths } from '../paths.ts';
import { findMaster, hasListened, isBooting } from '../process/find-master.ts';
import { startHaproxy } from '../process/process.ts';
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
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  /** True if the agent starts HAProxy; false if systemd or another process does. */
  readonly startsHaproxy: boolean;
  readonly isReloading: () => boolean;
  /** Resolves when the persister is not writing the file. */
  readonly fileIdle: () => Promise<void>;
  readonly onRepair: (what: 'process' | 'socket') => void;
  /** The file could not be written: HAProxy starts with an older one. */
  readonly onUnwritten: (error: unknown) => void;
  readonly log: Log;
}

/** While HAProxy starts only its own socket is tried, not the master's. */
export type Phase = 'starting' | 'running';

/** A worker without its connection. */
export type Expected = Omit<BootedWorker, 'runtime'>;

/** The fault before the end of the first attempt. */
const NOT_YET = 'HAProxy has not been reached yet';
const CONNECT_TIMEOUT_MS = 2_000;
const START_TIMEOUT_MS = 30_000;
/** The wait between two attempts to get a worker. */
const BACKOFF = { firstMs: 50, mostMs: 1_000 };
/** The computation of a new worker's state delays a change by this much at most. */
const EXPECT_SLICE_MS = 2;
/** Attempts to start; each leaves out the load balancers for which the last was refused. */
const MAX_START_ATTEMPTS = 5;

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #fault = new Fault(NOT_YET);
  #hasStarted = false;
  #isStarting = false;
  #closed = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
  }

  /** Why there is no worker; '' if there is one. */
  get fault(): string {
    return this.#fault.text;
  }

  /** True if this agent has started HAProxy, or is about to. */
  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  /** HAProxy is about to read the file, which must not change now. */
  get isStarting(): boolean {
    return this.#isStarting;
  }

  close(): void {
    this.#closed = true;
  }

  /** Tries until it has a worker; undefined only after close(). `onAttempt` is called after each failed attempt. */
  async obtain(onAttempt: () => void | Promise<void>): Promise<BootedWorker | undefined> {
    const { startsHaproxy, faults, file, log, onRepair } = this.#options;
    await faults.begin();
    for (let attempt = 0; !this.#closed; attempt++) {
      try {
        const worker = (await this.adopt()) ?? (await this.#startIfDue(attempt));
        if (worker !== undefined) {
          if (this.#fault.text !== NOT_YET) onRepair('process');
          this.#fault.clear();
          faults.end();
          // A failure to write shows at the file itself.
          if (worker.structure !== '') void file.keepAsFirstGood().catch(() => undefined);
          return worker;
        }
        if (this.#fault.text === NOT_YET) this.#fault.set('HAProxy is not running');
        if (!startsHaproxy) this.#fault.set((await faults.readOutput()) || this.#fault.text);
      } catch (error) {
        const reason = messageOf(error);
        if (this.#fault.set(reason)) log.error('Cannot start or reach HAProxy', { error: reason });
      }
      await onAttempt();
      await delay(backoffMs(attempt + 1, BACKOFF));
    }
    return undefined;
  }

  /** The worker was lost; `why` is the fault until there is another. */
  lose(why: string): void {
    this.#fault.set(why);
  }

  /** undefined if no HAProxy answers at the sockets, or only one that is stopping. Reads only. */
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
      log.info('Adopted the running HAProxy', { worker: pid, ours: booted !== undefined });
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
   * Starts HAProxy with all load balancers that it accepts; with the present file if it cannot be written; with the last
   * good file if HAProxy refuses the file and no load balancer is at fault.
   * Errors: HAPROXY_MISSING; HAPROXY_START if it does not serve in the end; FILE_WRITE.
   */
  async start(): Promise<BootedWorker> {
    const { maker, desired, file, faults } = this.#options;
    let candidate = await maker.unchecked(desired);
    for (let attempt = 1; ; attempt++) {
      try {
        await file.write(candidate.chunks);
        return await this.#start(candidate);
      } catch (error) {
        if (error instanceof HeadgateError && error.code === 'FILE_WRITE')
          return this.#startWithPresentFile(error);
        // A HAProxy that is slow to start may be found at the next attempt.
        if (!(error instanceof HeadgateError) || error.code !== 'HAPROXY_START' || error.retry === 'now')
          throw error;
        faults.note(messageOf(error));
        const isNamed = faults.rejectNamed(error.message, candidate, new Map());
        const next = await maker.prepare(desired, new Map()).catch((fault: unknown) => {
          if (fault instanceof HeadgateError && fault.code === 'HAPROXY_REJECTED') return fault;
          throw fault;
        });
        if (next instanceof HeadgateError) return this.#startWithLastGood(candidate, next);
        const isOther = isNamed || next.structure !== candidate.structure;
        if (!isOther || attempt >= MAX_START_ATTEMPTS) return this.#startWithLastGood(candidate, error);
        candidate = next;
      }
    }
  }

  /** Connects to the worker by the admin socket; if that was removed and HAProxy is not starting, by the master's. */
  async connect(phase: Phase = 'running'): Promise<Runtime | undefined> {
    const { adminSocket: socketPath, masterSocket: masterSocketPath } = this.#options.paths;
    const isStarting = phase === 'starting';
    if (!existsSync(socketPath) && (isStarting || !existsSync(masterSocketPath))) return undefined;
    try {
      return await Runtime.connect({
        socketPath,
        masterSocketPath,
        isStarting,
        timeoutMs: CONNECT_TIMEOUT_MS,
      });
    } catch (error) {
      if (error instanceof HeadgateError && error.code === 'RUNTIME_CONNECT') return undefined;
      throw error;
    }
  }

  /** True if a HAProxy answers at the sockets, whichever process started it. Reads only. */
  async isRunning(): Promise<boolean> {
    const runtime = await this.connect().catch(() => undefined);
    runtime?.close();
    return runtime !== undefined;
  }

  /** The state of a worker that boots from this candidate, to be computed while it boots. */
  async expect({ loadBalancers: booted, structure }: Candidate): Promise<Expected> {
    const { aclId } = this.#options.context(booted);
    const running = new Running();
    const bound = new Set<string>();
    const slice = new Slice(EXPECT_SLICE_MS);
    for (const loadBalancer of booted.values()) {
      running.boot(loadBalancer, aclId);
      for (const place of loadBalancer.listeners.flatMap(bindsOf)) bound.add(place);
      if (slice.isOver) await slice.breathe();
    }
    return { running, booted, structure, bound };
  }

  /** The worker that serves exactly this candidate; undefined if the one that answers does not. */
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
   * The load balancers that a worker with this description booted from: all desired ones, or those without the addresses
   * that cannot be bound. undefined if it booted from another file.
   */
  async #bootedAs(
    description: string,
    bound: ReadonlySet<string> | undefined,
  ): Promise<ReadonlyMap<string, LoadBalancer> | undefined> {
    const { maker, context, desired } = this.#options;
    for (const isProbed of [false, true]) {
      if (isProbed) await maker.probe(desired, bound);
      const booted = maker.effective(desired);
      if (description === descriptionOf(structureHash(context(booted), inFileOrder(booted)))) return booted;
    }
    return undefined;
  }

  async #startIfDue(attempt: number): Promise<BootedWorker | undefined> {
    const { startsHaproxy, fileIdle, log } = this.#options;
    if (!startsHaproxy || (await this.#wake(attempt))) return undefined;
    // Set before the start, because HAProxy may come up after the attempt has timed out.
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
   * True if a master runs although its sockets were removed: a second HAProxy must not start beside it. Reloads such a
   * master by signal, after which it creates its socket again.
   */
  async #wake(attempt: number): Promise<boolean> {
    const { paths, isReloading, onRepair, log } = this.#options;
    const pid = await findMaster(paths);
    if (pid === undefined) return isBooting(paths);
    const isGone = attempt % 4 === 3 && !isReloading() && !existsSync(paths.masterSocket);
    if (isGone && (await hasListened(pid, paths))) {
      log.warn('HAProxy runs but its sockets were removed: reloading it by signal', { master: pid });
      process.kill(pid, 'SIGUSR2');
      onRepair('socket');
    }
    return true;
  }

  /** For a refusal that is no load balancer's fault: an older configuration is better than none. */
  async #startWithLastGood(candidate: Candidate, why: HeadgateError): Promise<BootedWorker> {
    const { maker, file } = this.#options;
    maker.tried(candidate.loadBalancers, false);
    if (!(await file.restoreLastGood())) throw why;
    return this.#startFile();
  }

  async #startWithPresentFile(why: HeadgateError): Promise<BootedWorker> {
    const { paths, onUnwritten } = this.#options;
    if (!existsSync(paths.config)) throw why;
    onUnwritten(why);
    return this.#startFile();
  }

  async #startFile(): Promise<BootedWorker> {
    const { executable, netns, paths, log } = this.#options;
    log.warn('Starting HAProxy with the present file', { path: paths.config });
    let adopted: BootedWorker | undefined;
    const isServing = async (): Promise<boolean> => {
      adopted = await this.adopt('starting');
      return adopted !== undefined;
    };
    await startHaproxy(executable, paths, isServing, START_TIMEOUT_MS, netns);
    if (adopted === undefined)
      throw new HeadgateError('HAPROXY_START', 'HAProxy started but does not answer');
    return adopted;
  }

  async #start(candidate: Candidate): Promise<BootedWorker> {
    const { executable, netns, paths, maker } = this.#options;
    let found: BootedWorker | undefined;
    const isServing = async (): Promise<boolean> => {
      found = await this.find(candidate, 'starting');
      return found !== undefined;
    };
    await startHaproxy(executable, paths, isServing, START_TIMEOUT_MS, netns);
    if (found === undefined) throw new HeadgateError('HAPROXY_START', 'HAProxy started but does not answer');
    maker.accept(candidate.loadBalancers);
    return found;
  }
}

function bindsIn(loadBalancers: ReadonlyMap<string, LoadBalancer>): ReadonlySet<string> {
  return new Set([...loadBalancers.values()].flatMap(({ listeners }) => listeners.flatMap(bindsOf)));
}
