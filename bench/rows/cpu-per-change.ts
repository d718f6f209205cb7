// `cpu-per-change`: what one endpoint change costs the agent in processor time, everything included that follows
// from it: reading the file, the commands, the file on disk, the deletion of the old server. Changes are edits of
// manifests, 80 ms apart; what the agent takes in as much time without any is subtracted, and stands in `idle`. Beside it
// the bound on manifests of the same size. Both are warm: an agent runs for months, and V8 compiles for the first
// thousands of changes; what the first ones after the start cost stands beside it.

import { ManifestFolder, serving, startAgent } from '../support/agent.ts';
import { costs } from '../support/cost.ts';
import { Addresses, type ServiceSpec, services } from '../support/objects.ts';
import { startModule } from '../support/processes.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { pause } from '../support/until.ts';
import { processorTime } from '../support/usage.ts';

const ROUNDS = 3;
/** After the start, before anything is warm. */
const FIRST = 240;
/** Changes that make a side warm: V8 has compiled by then nearly all that is called at each. */
const WARM = 4_000;
/** Milliseconds. */
const BETWEEN = 80;
const BETWEEN_WARMING = 5;
const ALONE = 1_000;
const TAIL = 3_500;
/** Milliseconds: an audit comes every 30 s, and so once in each. */
const STRETCH = 31_000;

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

  /** Milliseconds of processor time of `pid` for each change, with all that it does meanwhile. */
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
      const changes = bench.scaled(240, 3);
      bench.say('cpu-per-change: the first changes');
      const first = await own.editor.cost(agent.pid, bench.scaled(FIRST, 3), BETWEEN);
      bench.say('cpu-per-change: warming up');
      const warming = bench.scaled(WARM, 3);
      await Promise.all([
        own.editor.cost(agent.pid, warming, BETWEEN_WARMING),
        its.editor.cost(bound.pid, warming, BETWEEN_WARMING),
      ]);
      bench.say(`cpu-per-change: ${ROUNDS} rounds`);
      const sides = [
        { pid: agent.pid, change: () => own.editor.edit() },
        { pid: bound.pid, change: () => its.editor.edit() },
      ];
      const stretch = bench.scaled(STRETCH, 500);
      const [ours, theBounds] = await costs(sides, { rounds: ROUNDS, changes, between: BETWEEN, stretch });
      if (ours === undefined || theBounds === undefined) throw new Error('There are two sides');
      const alone = await own.editor.cost(agent.pid, bench.scaled(10), ALONE);
      const value = ours.median;
      return [
        row({
          name: 'cpu-per-change',
          value,
          unit: 'ms',
          target: '≤ 2.5 ms',
          met: value <= 2.5,
          reference: { name: 'the bound', value: theBounds.median },
          others: [
            { name: 'with all that the agent does meanwhile', value: ours.everything },
            { name: 'the first 240 changes after a start', value: first },
            { name: 'one change a second, with all that the agent does in a second', value: alone },
          ],
          details: {
            least: Math.min(...ours.rounds),
            most: Math.max(...ours.rounds),
            changes: changes * ROUNDS,
            'changes before': warming,
          },
        }),
      ];
    }),
};
