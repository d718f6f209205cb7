// Looks now and then at the flows of the kernel path, for what only they show: a source address that runs out of ports, and
// members in gateway mode whose answers do not come back through this host. Reads the flows only if there can be either.

import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import { Rounds } from '../../base/rounds.ts';
import { sameValue } from '../../base/same-value.ts';
import type { Log } from '../../host/log.ts';
import type { OwnerKey, Problem } from '../../model/load-balancer.ts';
import { objectOf, ownerOfListener } from '../../model/names.ts';
import type { SourceGroups } from '../../model/source-groups.ts';
import { isInGatewayMode, type KernelListener } from '../rules/kernel-listener.ts';
import { conntrackUsage } from './conntrack-usage.ts';
import { type FlowCounts, lastingSilence, NEARLY_ALL_FLOWS, type Silence } from './flow-counts.ts';
import { silenceInWords, whyShort } from './flow-faults.ts';
import { readFlows } from './read-flows.ts';

export interface FlowWatchOptions {
  readonly netns: string;
  /** The listeners that the kernel has. */
  readonly listeners: () => readonly KernelListener[];
  readonly sources: () => SourceGroups;
  /** The problems of these load balancers have changed. */
  readonly onChanged: (keys: Iterable<OwnerKey>) => void;
  readonly log: Log;
}

const INTERVAL_MS = 15_000;
/** A reading takes at most this part of a processor. */
const SHARE_OF_TIME = 1 / 100;
/** Time of a processor; not measured, because on a busy machine a reading waits more than it works. */
const FLOW_COST_MS = 0.01;
/** While something is wrong an operator waits for the end of it. */
const MOST_REST_MS = 60_000;
const SHORT = 'New flows of the kernel path may be dropped';

export class FlowWatch {
  readonly #options: FlowWatchOptions;
  readonly #rounds: Rounds;
  readonly #short = new Fault();
  readonly #unread = new Fault();
  /** At the last reading. */
  #suspects: readonly Silence[] = [];
  /** Key: an owner; value: problems of members that were silent at the last two readings. */
  #problems: ReadonlyMap<OwnerKey, readonly Problem[]> = new Map();
  #restMs = INTERVAL_MS;

  constructor(options: FlowWatchOptions) {
    this.#options = options;
    this.#rounds = new Rounds({
      intervalMs: () => this.#restMs,
      work: () => this.check(),
      onFailed: (error) => {
        if (this.#unread.set(messageOf(error)))
          options.log.warn('Cannot read the flows of the kernel path', { error: this.#unread.text });
      },
    });
  }

  start(): void {
    this.#rounds.start();
  }

  close(): void {
    this.#rounds.close();
  }

  /** Why new flows are dropped, or about to be; '' if every source address has ports. */
  get short(): string {
    return this.#short.text;
  }

  problemsOf(key: OwnerKey): readonly Problem[] {
    return this.#problems.get(key) ?? [];
  }

  /** Errors: COMMAND_FAILED. */
  async check(): Promise<void> {
    const { netns } = this.#options;
    const listeners = this.#options.listeners();
    if (listeners.length === 0 && this.#suspects.length === 0 && this.#short.text === '') return;
    const usage = await conntrackUsage(netns);
    const entries = usage?.entries ?? 0;
    const canBeShort = entries >= NEARLY_ALL_FLOWS;
    const counts = await readFlows(netns, canBeShort ? listeners : listeners.filter(isInGatewayMode));
    const restMs = Math.max(INTERVAL_MS, (entries * FLOW_COST_MS) / SHARE_OF_TIME);
    this.#unread.clear();
    this.#judgePorts(whyShort(counts));
    this.#judgeAnswers(counts);
    const isWell = this.#suspects.length === 0 && this.#short.text === '';
    this.#restMs = isWell ? restMs : Math.min(restMs, MOST_REST_MS);
  }

  #judgePorts(why: string): void {
    const { log } = this.#options;
    if (!this.#short.set(why === '' ? '' : `${SHORT}: ${why}`)) return;
    if (why === '') log.info('Every source address of the kernel path has ports again');
    else log.error(SHORT, { error: why });
  }

  #judgeAnswers({ silent }: FlowCounts): void {
    const { sources, onChanged, log } = this.#options;
    const [was, now] = [this.#problems, new Map<OwnerKey, readonly Problem[]>()];
    for (const silence of lastingSilence(this.#suspects, silent)) {
      const { name, protocol, port } = silence.listener;
      const key = ownerOfListener(name);
      const message = silenceInWords(silence, sources());
      const problem = {
        object: objectOf(key),
        reason: 'AnswersMissing',
        message,
        port: { protocol, port },
      } as const;
      now.set(key, [...(now.get(key) ?? []), problem]);
      if (!was.has(key)) log.warn('Members do not answer', { loadBalancer: key, error: message });
    }
    this.#suspects = silent;
    this.#problems = now;
    const keys = [...new Set([...was.keys(), ...now.keys()])];
    const changed = keys.filter((key) => !sameValue(was.get(key), now.get(key)));
    if (changed.length > 0) onChanged(changed);
  }
}
