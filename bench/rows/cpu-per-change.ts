// `cpu-per-change`: the agent's processor time for one edit of a manifest that replaces an endpoint, from reading the file
// to deleting the old server. The time that an agent at rest uses is subtracted (see `idle`). Reference: the lower bound.
// Both are warm, because V8 compiles during the first thousands of changes; the first changes have their own figure.

import { ManifestFolder, serving, startAgent } from '../support/agent.ts';
import { costs } from '../support/cost.ts';
import { Addresses, type ServiceSpec, services } from '../support/objects.ts';
import { startModule } from '../support/processes.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { pause } from '../support/until.ts';
import { processorTime } from '../support/usage.ts';

const ROUNDS = 3;
/** The changes after the start, before V8 has compiled the code. */
const FIRST_CHANGES = 240;
/** Changes until V8 has compiled nearly all code of a change. */
const WARM_CHANGES = 4_000;
const BETWEEN_MS = 80;
const BETWEEN_WARMING_MS = 5;
const BETWEEN_SINGLE_MS = 1_000;
/** For the work that follows the last change. */
const TAIL_MS = 3_500;
/** An audit runs every 30 s, and so once in each turn. */
const TURN_MS = 31_000;

/** Edits one Service after the other; each edit replaces one endpoint. */
class Editor {
  readonly #folder: ManifestFolder;
  readonly #specs: ServiceSpec[];
  readonly #addresses = new Addresses();
  #edits = 0;

  constructor(folder: ManifestFolder, specs: readonly ServiceSpec[]) {
    this.#folder = folder;
    this.#specs = [...specs];
  }

  edit(): void {
    const at = (this.#edits++ * 7919) % this.#specs.length;
    const spec = this.#specs[at];
    if (spec === undefined) return;
    const fresh = { address: this.#addresses.pod(100_000 + this.#edits), port: 9000 };
    const changed = { ...spec, members: [...spec.members.slice(1), fresh] };
    this.#specs[at] = changed;
    this.#folder.write(changed);
  }

  /** Milliseconds of processor time of `pid` for each change, with all other work of the process. */
  async cost(pid: number, changes: number, between: number): Promise<number> {
    const before = processorTime(pid);
    for (let n = 0; n < changes; n++) {
      this.edit();
      await pause(between);
    }
    await pause(TAIL_MS);
    return (processorTime(pid) - before) / changes;
  }
}

export const cpuPerChange: Benchmark = {
  rows: ['cpu-per-change'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const count = bench.scaled(1_000, 5);
      const [ofAgent, ofBound] = [8080, 8081].map((port) => {
        const specs = services(new Addresses(), count, 10, { port });
        const folder = new ManifestFolder(scratch.path(`m${port}`), specs);
        return { folder, editor: new Editor(folder, specs) };
      }) as [{ folder: ManifestFolder; editor: Editor }, { folder: ManifestFolder; editor: Editor }];
      const agent = startAgent(scratch, ofAgent.folder.path, { haproxy: bench.haproxy });
      await serving(agent, count);
      const module = new URL('../reference/bound-process.ts', import.meta.url);
      const bound = startModule(scratch, 'bound', module, [ofBound.folder.path, bench.haproxy]);
      await bound.ask({});
      const changes = bench.scaled(240, 3);
      bench.report('cpu-per-change: first changes');
      const first = await ofAgent.editor.cost(agent.pid, bench.scaled(FIRST_CHANGES, 3), BETWEEN_MS);
      bench.report('cpu-per-change: warming up');
      const warming = bench.scaled(WARM_CHANGES, 3);
      await Promise.all([
        ofAgent.editor.cost(agent.pid, warming, BETWEEN_WARMING_MS),
        ofBound.editor.cost(bound.pid, warming, BETWEEN_WARMING_MS),
      ]);
      bench.report(`cpu-per-change: ${ROUNDS} rounds`);
      const sides = [
        { pid: agent.pid, change: () => ofAgent.editor.edit() },
        { pid: bound.pid, change: () => ofBound.editor.edit() },
      ];
      const turnMs = bench.scaled(TURN_MS, 500);
      const options = { rounds: ROUNDS, changes, betweenMs: BETWEEN_MS, turnMs };
      const [agentCost, boundCost] = await costs(sides, options);
      if (agentCost === undefined || boundCost === undefined) throw new Error('A side has no cost');
      const single = await ofAgent.editor.cost(agent.pid, bench.scaled(10), BETWEEN_SINGLE_MS);
      const value = agentCost.median;
      bench.measured(
        row({
          name: 'cpu-per-change',
          value,
          unit: 'ms',
          target: '≤ 4 ms',
          met: value <= 4,
          reference: { name: 'lower bound', value: boundCost.median },
          others: [
            { name: 'with all other work of the agent', value: agentCost.everything },
            { name: 'first 240 changes after a start', value: first },
            { name: 'one change a second, with all other work of that second', value: single },
          ],
          details: {
            least: Math.min(...agentCost.rounds),
            most: Math.max(...agentCost.rounds),
            changes: changes * ROUNDS,
            'changes to warm up': warming,
          },
        }),
      );
    }),
};
