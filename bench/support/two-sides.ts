// Two who serve the same number of Services side by side, the agent and a reference, each from a folder of its own:
// they take turns. Every member answers, whichever address it is asked at.

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
  readonly own: Side;
  readonly its: Side;
}

/** 1,000 Services × 10 endpoints each. `reference`: a module in reference/. Returns once both serve all. */
export async function twoSides(bench: Bench, scratch: Scratch, reference: string): Promise<TwoSides> {
  const addresses = new Addresses();
  const count = bench.scaled(1_000, 5);
  const member = responder(`0.0.0.0:${MEMBER_PORT}`);
  await startHaproxy(scratch, 'member', bench.haproxy, member.body, { globals: member.globals });
  const side = (port: number): Side => {
    const specs = services(addresses, count, 10, { port, memberPort: MEMBER_PORT });
    return { port, specs, folder: new ManifestFolder(scratch.path(`m${port}`), specs), samples: [] };
  };
  const [own, its] = [side(8080), side(8081)];
  const agent = startAgent(scratch, own.folder.path, { haproxy: bench.haproxy });
  await serving(agent, count);
  const module = new URL(`../reference/${reference}.ts`, import.meta.url);
  await startModule(scratch, reference, module, [its.folder.path, bench.haproxy]).ask({});
  return { addresses, own, its };
}
