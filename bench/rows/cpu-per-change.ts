// `cpu-per-change`: what one endpoint change costs the agent in processor time, everything included that follows
// from it: reading the file, the commands, the file on disk, the deletion of the old server, and all that the agent does
// meanwhile without a change. Changes are edits of manifests, 80 ms apart. Beside it the bound on manifests of the same
// size. Both are warm: an agent runs for months, and V8 compiles for the first thousands of changes; what the first ones
// after the start cost stands beside it.

import { ManifestFolder, serving, startAgent } from '../support/agent.ts';
import { Addresses, type ServiceSpec, services } from '../support/objects.ts';
import { startModule } from '../support/processes.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { pause } from '../support/until.ts';
import { processorTime } from '../support/usage.ts';

const ROUNDS = 3;
/** After the start, before anything is warm. */
const FIRST = 240;
/** Changes that make a side warm: V8 has compiled by then what is called at each, which is at its 3,000th call at the latest. */
const WARM = 4_000;
/** Milliseconds. */
const BETWEEN = 80;
const BETWEEN_WARMING = 5;
const ALONE = 1_000;
const TAIL = 2_500;

/** Edits one Service after the other; each time another endpoint of it is a new one. */
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

  /** Milliseconds of processor time of `pid` for each change. */
  async cost(pid: number, changes: number, between: number): Promise<number> {
    const before = processorTime(pid);
    for (let n = 0; n < changes; n++) {
      this.edit();
      await pause(between);
    }
    await pause(TAIL);
    return (processorTime(pid) - before) / changes;
  }
}

export const cpuPerChange: Benchmark = {
  rows: ['cpu-per-change'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const count = bench.scaled(1_000, 5);
      const [own, its] = [8080, 8081].map((port) => {
        const specs = services(new Addresses(), count, 10, { port });
        const folder = new ManifestFolder(scratch.path(`m${port}`), specs);
        return { folder, editor: new Editor(folder, specs) };
      }) as [{ folder: ManifestFolder; editor: Editor }, { folder: ManifestFolder; editor: Editor }];
      const agent = startAgent(scratch, own.folder.path, { haproxy: bench.haproxy });
      await serving(agent, count);
      const module = new URL('../reference/bound-process.ts', import.meta.url);
      const bound = startModule(scratch, 'bound', module, [its.folder.path, bench.haproxy]);
      await bound.ask({});
      const changes = bench.scaled(80, 3);
      const [ownCosts, itsCosts]: [number[], number[]] = [[], []];
      bench.say('cpu-per-change: the first changes');
      const first = await own.editor.cost(agent.pid, bench.scaled(FIRST, 3), BETWEEN);
      bench.say('cpu-per-change: warming up');
      const warming = bench.scaled(WARM, 3);
      await Promise.all([
        own.editor.cost(agent.pid, warming, BETWEEN_WARMING),
        its.editor.cost(bound.pid, warming, BETWEEN_WARMING),
      ]);
      for (let round = 1; round <= ROUNDS; round++) {
        bench.say(`cpu-per-change: round ${round} of ${ROUNDS}`);
        ownCosts.push(await own.editor.cost(agent.pid, changes, BETWEEN));
        itsCosts.push(await its.editor.cost(bound.pid, changes, BETWEEN));
      }
      const alone = await own.editor.cost(agent.pid, bench.scaled(10), ALONE);
      const value = median(ownCosts);
      return [
        row({
          name: 'cpu-per-change',
          value,
          unit: 'ms',
          target: '≤ 2 ms',
          met: value <= 2,
          reference: { name: 'the bound', value: median(itsCosts) },
          others: [
            { name: 'the first 240 changes after a start', value: first },
            { name: 'one change a second, with all that the agent does in a second', value: alone },
          ],
          details: {
            least: Math.min(...ownCosts),
            most: Math.max(...ownCosts),
            changes: changes * ROUNDS,
            'changes before': warming,
          },
        }),
      ];
    }),
};
