// The agent and a reference side by side, each with its own folder of the same number of Services. One member process
// answers at every address.

import { ManifestFolder, serving, startAgent } from './agent.ts';
import { responder, startHaproxy } from './haproxy.ts';
import { Addresses, type ServiceSpec, services } from './objects.ts';
import { startModule } from './processes.ts';
import type { Bench } from './row.ts';
import type { Scratch } from './scratch.ts';

export const MEMBER_PORT = 9000;

export interface Side {
  readonly port: number;
  readonly specs: readonly ServiceSpec[];
  readonly folder: ManifestFolder;
  /** Milliseconds. */
  readonly samples: number[];
}

export interface TwoSides {
  readonly addresses: Addresses;
  readonly agent: Side;
  readonly reference: Side;
}

/** 1,000 Services × 10 endpoints each. `module` is a file name in reference/. Resolves when both serve all Services. */
export async function twoSides(bench: Bench, scratch: Scratch, module: string): Promise<TwoSides> {
  const addresses = new Addresses();
  const count = bench.scaled(1_000, 5);
  const member = responder(`0.0.0.0:${MEMBER_PORT}`);
  await startHaproxy(scratch, 'member', bench.haproxy, member.body, { globals: member.globals });
  const side = (port: number): Side => {
    const specs = services(addresses, count, 10, { port, memberPort: MEMBER_PORT });
    return { port, specs, folder: new ManifestFolder(scratch.path(`m${port}`), specs), samples: [] };
  };
  const [agent, reference] = [side(8080), side(8081)];
  await serving(startAgent(scratch, agent.folder.path, { haproxy: bench.haproxy }), count);
  const url = new URL(`../reference/${module}.ts`, import.meta.url);
  await startModule(scratch, module, url, [reference.folder.path, bench.haproxy]).ask({});
  return { addresses, agent, reference };
}
