// `cpu-per-change`: what one endpoint change costs the agent in processor time, everything included that follows
// from it: reading the file, the commands, the file on disk, the deletion of the old server. Changes are edits of
// manifests, 80 ms apart. Beside it the bound on manifests of the same size.

import { ManifestFolder, serving, startAgent } from '../support/agent.ts';
import { Addresses, type ServiceSpec, services } from '../support/objects.ts';
import { startModule } from '../support/processes.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { pause } from '../support/until.ts';
import { processorTime } from '../support/usage.ts';

const ROUNDS = 3;
/** Milliseconds. */
const BETWEEN = 80;
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
      await own.editor.cost(agent.pid, bench.scaled(20), BETWEEN);
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
          others: [{ name: 'one change a second, each with a write of the whole file', value: alone }],
          details: { least: Math.min(...ownCosts), most: Math.max(...ownCosts), changes: changes * ROUNDS },
        }),
      ];
    }),
};
