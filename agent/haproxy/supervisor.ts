// Gets hold of a HAProxy worker: adopts the one that runs, or starts HAProxy where that is the agent's task.
// Says of each what it booted from, as far as that can be known.

import { existsSync } from 'node:fs';
import { HeadgateError, messageOf } from '../errors.ts';
import type { Log } from '../log.ts';
import type { LoadBalancer } from '../model.ts';
import type { Worker } from './apply.ts';
import type { Candidate, CandidateMaker } from './candidate.ts';
import { keyOfListener, readAlerts } from './check.ts';
import type { ConfigFile } from './config-file.ts';
import { inFileOrder } from './config-text.ts';
import { type HaproxyPaths, startHaproxy } from './process.ts';
import type { Quarantine } from './quarantine.ts';
import { readRunning } from './readback.ts';
import { descriptionOf, structureHash } from './render.ts';
import type { RenderContext } from './render-context.ts';
import { Running } from './running.ts';
import { Runtime } from './runtime.ts';

/** A worker and the file it booted from. */
export interface ServingWorker extends Worker {
  /** What that file held, by key; empty where another file than ours was booted. */
  readonly booted: ReadonlyMap<string, LoadBalancer>;
  /** As in its description; '' where that is none of ours. */
  readonly structure: string;
}

export interface SupervisorOptions {
  readonly executable: string;
  readonly paths: HaproxyPaths;
  readonly maker: CandidateMaker;
  readonly quarantine: Quarantine;
  readonly file: ConfigFile;
  readonly context: (loadBalancers: ReadonlyMap<string, LoadBalancer>) => RenderContext;
  readonly wanted: ReadonlyMap<string, LoadBalancer>;
  readonly log: Log;
}

const CONNECT_TIMEOUT = 2_000;
const START_TIMEOUT = 30_000;
/** Each round leaves out what the one before was refused for. */
const START_ROUNDS = 5;

export class Supervisor {
  readonly #options: SupervisorOptions;

  constructor(options: SupervisorOptions) {
    this.#options = options;
  }

  /** undefined where no HAProxy answers at our sockets. Reads only. */
  async adopt(): Promise<ServingWorker | undefined> {
    const { maker, context, wanted } = this.#options;
    const runtime = await this.connect();
    if (runtime === undefined) return undefined;
    try {
      const booted = maker.effective(wanted);
      const inOrder = inFileOrder(booted);
      const rendering = context(booted);
      const structure = structureHash(rendering, inOrder);
      const isOurs = runtime.worker.description === descriptionOf(structure);
      const running = await readRunning(runtime, inOrder, isOurs, rendering.aclId);
      if (isOurs) maker.accept(booted);
      return { runtime, running, booted: isOurs ? booted : new Map(), structure: isOurs ? structure : '' };
    } catch (error) {
      runtime.close();
      throw error;
    }
  }

  /**
   * Starts HAProxy with all that can be served. Errors: HAPROXY_MISSING; HAPROXY_START where it ends for a reason
   * that is no load balancer's; FILE_WRITE.
   */
  async start(): Promise<ServingWorker> {
    const { maker, wanted, file, log } = this.#options;
    let candidate = await maker.unchecked(wanted);
    for (let round = 1; ; round++) {
      await file.write(candidate.chunks);
      try {
        return await this.#start(candidate);
      } catch (error) {
        if (!(error instanceof HeadgateError) || error.code !== 'HAPROXY_START' || round >= START_ROUNDS)
          throw error;
        log.warn('HAProxy does not start, looking for what is at fault', { error: messageOf(error) });
        this.rejectNamed(error.message, candidate, new Map());
        candidate = await maker.prepare(wanted, new Map());
      }
    }
  }

  /** Connects to the worker behind the admin socket, or, where that is gone, through the master's. */
  async connect(): Promise<Runtime | undefined> {
    const { adminSocket: socketPath, masterSocket: masterSocketPath } = this.#options.paths;
    if (!existsSync(socketPath) && !existsSync(masterSocketPath)) return undefined;
    try {
      return await Runtime.connect({ socketPath, masterSocketPath, timeoutMs: CONNECT_TIMEOUT });
    } catch (error) {
      if (error instanceof HeadgateError && error.code === 'RUNTIME_CONNECT') return undefined;
      throw error;
    }
  }

  /** The worker that serves exactly this candidate; undefined where the one that answers does not. */
  async find(candidate: Candidate): Promise<ServingWorker | undefined> {
    const runtime = await this.connect().catch(() => undefined);
    if (runtime === undefined) return undefined;
    const { description, pid } = runtime.worker;
    if (description !== descriptionOf(candidate.structure) || !(pid > 0)) {
      runtime.close();
      return undefined;
    }
    const { aclId } = this.#options.context(candidate.loadBalancers);
    const running = Running.booted(candidate.loadBalancers.values(), aclId);
    return { runtime, running, booted: candidate.loadBalancers, structure: candidate.structure };
  }

  /** Takes out of service what HAProxy's alerts name; true where they name any that is in the candidate. */
  rejectNamed(output: string, candidate: Candidate, lastGood: ReadonlyMap<string, LoadBalancer>): boolean {
    const { quarantine, wanted } = this.#options;
    const { alerts, listeners } = readAlerts(output, candidate.chunks.join(''));
    let any = false;
    for (const key of new Set([...listeners].map(keyOfListener))) {
      const loadBalancer = wanted.get(key);
      if (loadBalancer === undefined || !candidate.loadBalancers.has(key)) continue;
      const alert =
        alerts.find((line) => line.includes(key.replace('/', ':'))) ?? alerts[0] ?? 'no reason given';
      quarantine.reject(loadBalancer, lastGood.get(key), `HAProxy rejects its configuration: ${alert}`);
      any = true;
    }
    return any;
  }

  async #start(candidate: Candidate): Promise<ServingWorker> {
    const { executable, paths, maker } = this.#options;
    let found: ServingWorker | undefined;
    const isServing = async (): Promise<boolean> => {
      found = await this.find(candidate);
      return found !== undefined;
    };
    await startHaproxy(executable, paths, isServing, START_TIMEOUT);
    if (found === undefined) throw new HeadgateError('HAPROXY_START', 'HAProxy started but does not answer');
    maker.accept(candidate.loadBalancers);
    return found;
  }
}
