// The phases of the demonstration: the changes of its Services under load.

import { setTimeout as delay } from 'node:timers/promises';
import type { DemoAgent } from './demo-agent.ts';
import { freePorts, killMember, type Member, startMembers } from './demo-members.ts';
import { DemoPool } from './demo-pool.ts';
import type { DemoTraffic } from './demo-traffic.ts';

export interface Stage {
  readonly agent: DemoAgent;
  readonly traffic: DemoTraffic;
  /** The Service under load, with members 1 and 2 at the start. */
  readonly web: DemoPool;
  /** A Service with one member at a time, so that the first new connection after an edit shows the new member. */
  readonly single: DemoPool;
  readonly memberPort: number;
  /** Members 3 to 20, which no manifest contains at the start. */
  readonly spare: readonly Member[];
}

export interface PhaseResult {
  /** Milliseconds from each edit to the first answer that shows it. */
  readonly edits?: readonly number[];
  /** A line for the table. */
  readonly remark?: string;
}

export interface Phase {
  readonly name: string;
  readonly run: (stage: Stage) => Promise<PhaseResult>;
}

export const phases: readonly Phase[] = [
  {
    name: 'nothing changes',
    async run() {
      await delay(2_000);
      return {};
    },
  },
  {
    name: 'scale from 2 to 20 members',
    async run({ web, spare }) {
      await web.add(spare);
      const edits = [await web.untilAnswered(spare)];
      await delay(1_500);
      return { edits };
    },
  },
  {
    name: 'move a Service 18 times',
    async run({ single, spare }) {
      const edits: number[] = [];
      for (const member of spare) {
        await single.moveTo(member);
        edits.push(await single.untilAnswered([member]));
        await delay(50);
      }
      return { edits };
    },
  },
  {
    name: 'scale back to 5',
    async run({ agent, web }) {
      await web.retire(web.members.slice(5), agent);
      await delay(300);
      return {};
    },
  },
  {
    name: 'drain one member, remove it',
    async run({ agent, web }) {
      const [oldest] = web.members;
      if (oldest === undefined) throw new Error('The Service has no member');
      const { answer } = await web.beginSlowAnswer(oldest);
      await web.retire([oldest], agent);
      const { member, resent } = await answer;
      if (member !== oldest.name || resent) throw new Error(`The answer of ${oldest.name} was cut off`);
      return { remark: `${member} finished its slow answer while it drained` };
    },
  },
  {
    name: 'kill one without notice',
    async run({ traffic, web }) {
      const [oldest] = web.members;
      if (oldest === undefined) throw new Error('The Service has no member');
      // A request that the member has received is lost with any load balancer.
      await traffic.without(() => killMember(oldest));
      await delay(1_000);
      await web.remove([oldest]);
      await delay(500);
      return {
        remark: `${oldest.name} got SIGKILL between two requests; the manifest followed a second later`,
      };
    },
  },
  {
    name: 'replace every member',
    async run({ agent, web, memberPort }) {
      for (const [at, old] of web.members.entries()) {
        const fresh = await startMembers(21 + at, 21 + at, memberPort);
        await web.add(fresh);
        await web.untilAnswered(fresh);
        await web.retire([old], agent);
      }
      return {};
    },
  },
  {
    name: 'save a broken manifest',
    async run({ agent, web }) {
      const repair = await web.breakManifest();
      const problem = await problemAt(agent, web.path);
      await delay(500);
      await repair();
      return { remark: `as it should, the agent reports ${problem}` };
    },
  },
  {
    name: 'add a Service ten times',
    async run({ agent, web, memberPort }) {
      const edits: number[] = [];
      for (const [at, port] of (await freePorts(10)).entries()) {
        const added = new DemoPool(agent.manifests, `new-${at + 1}`, port, memberPort);
        await added.add(web.members);
        edits.push(await added.untilAnswered(web.members));
        await delay(1_000);
      }
      const times = edits.map((edit) => edit.toFixed(0)).join(', ');
      return {
        edits,
        remark: `each after ${times} ms, from a second, small HAProxy; the main one takes all over in a later reload`,
      };
    },
  },
];

/** Resolves with the problem of a file when the agent reports one. */
async function problemAt(agent: DemoAgent, path: string): Promise<string> {
  for (const until = performance.now() + 10_000; performance.now() < until; ) {
    const lines = (await agent.command('status')).split('\n');
    const found = lines.find((line) => line.trimStart().startsWith(path));
    if (found !== undefined) return found.slice(found.lastIndexOf(path) + path.length + 1);
  }
  throw new Error(`The agent does not report a problem of ${path}`);
}
