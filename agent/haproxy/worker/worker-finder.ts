// Connects to the running HAProxy worker and finds out what it booted from: the desired state, a candidate, or an
// unknown file. Changes nothing.

import { Slice } from '../../base/slice.ts';
import type { Log } from '../../host/log.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import type { BootedWorker } from '../booted-worker.ts';
import type { Candidate, CandidateMaker } from '../config/candidate.ts';
import type { ConfigFile } from '../config/config-file.ts';
import { inFileOrder } from '../config/config-text.ts';
import { bindsOf } from '../config/listener-config.ts';
import { descriptionOf, structureHash } from '../config/render.ts';
import type { RenderContext } from '../config/render-context.ts';
import { spareProfile } from '../config/spare-pools.ts';
import { connectOwnWorker, connectWorker, type Phase } from '../instance/connect.ts';
import type { HaproxyPaths } from '../paths.ts';
import { readRunning } from '../readback.ts';
import type { RowTables } from '../routes/patched-tables.ts';
import { Running } from '../running.ts';
import type { Runtime } from '../socket/runtime.ts';
import { Spares } from '../spares.ts';

export interface WorkerFinderOptions {
  readonly paths: HaproxyPaths;
  readonly maker: CandidateMaker;
  readonly file: ConfigFile;
  readonly context: (loadBalancers: ReadonlyMap<string, LoadBalancer>) => RenderContext;
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  /** The rows of a listener with routes that are in the files of the maps. */
  readonly tablesOf: (listener: Listener) => RowTables;
  readonly log: Log;
}

/** A worker without its connection. */
export type Expected = Omit<BootedWorker, 'runtime'>;

/** The computation of a new worker's state delays a change by this much at most. */
const EXPECT_SLICE_MS = 2;

export class WorkerFinder {
  readonly #options: WorkerFinderOptions;
  #reading = 0;

  constructor(options: WorkerFinderOptions) {
    this.#options = options;
  }

  /** As connectWorker(). */
  connect(phase: Phase = 'running'): Promise<Runtime | undefined> {
    return connectWorker(this.#options.paths, phase);
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
      running.boot(loadBalancer, aclId, this.#options.tablesOf);
      for (const bind of loadBalancer.listeners.flatMap(bindsOf)) bound.add(bind);
      if (slice.isOver) await slice.breathe();
    }
    running.spares = new Spares(spareProfile(booted.values()));
    return { running, booted, structure, bound };
  }

  /** The worker that serves exactly this candidate; undefined if the one that answers does not. */
  async find(
    candidate: Candidate,
    phase: Phase = 'running',
    expected?: Expected,
  ): Promise<BootedWorker | undefined> {
    const runtime = await this.#connectOwn(phase).catch(() => undefined);
    if (runtime === undefined) return undefined;
    const { description, pid } = runtime.worker;
    if (description !== descriptionOf(candidate.structure) || !(pid > 0)) {
      runtime.close();
      return undefined;
    }
    return { runtime, ...(expected ?? (await this.expect(candidate))) };
  }

  /** undefined if no HAProxy answers at the sockets, or only one that is stopping. Reads only. */
  async adopt(phase: Phase = 'running'): Promise<BootedWorker | undefined> {
    const { maker, context, file, tablesOf, log } = this.#options;
    const runtime = await this.#connectOwn(phase);
    if (runtime === undefined) return undefined;
    this.#reading++;
    try {
      const { description, pid, stopping } = runtime.worker;
      if (stopping) {
        runtime.close();
        return undefined;
      }
      const bound = await file.bindsUnder(description);
      const booted = await this.#bootedAs(description, bound);
      log.info('Adopted the running HAProxy', { worker: pid, ours: booted !== undefined });
      if (booted === undefined) {
        const running = await readRunning(runtime, [], false, context(new Map()).aclId);
        return { runtime, running, booted: new Map(), structure: '', bound };
      }
      const inOrder = inFileOrder(booted);
      const rendering = context(booted);
      const { certificates, routes } = rendering;
      const running = await readRunning(runtime, inOrder, true, rendering.aclId, {
        certificates,
        routes,
        tablesOf,
      });
      maker.accept(booted);
      const structure = structureHash(rendering, inOrder);
      return { runtime, running, booted, structure, bound: bindsIn(booted) };
    } catch (error) {
      runtime.close();
      throw error;
    } finally {
      this.#reading--;
    }
  }

  /** A worker has answered, and is being read for adopt(), which takes seconds on a busy host. */
  get isReading(): boolean {
    return this.#reading > 0;
  }

  #connectOwn(phase: Phase): Promise<Runtime | undefined> {
    return connectOwnWorker(this.#options.paths, phase, this.#options.log);
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
}

function bindsIn(loadBalancers: ReadonlyMap<string, LoadBalancer>): ReadonlySet<string> {
  return new Set([...loadBalancers.values()].flatMap(({ listeners }) => listeners.flatMap(bindsOf)));
}
