// What the demonstration does to its Services while the load runs, phase by phase.

import { setTimeout as delay } from 'node:timers/promises';
import type { DemoAgent } from './demo-agent.ts';
import { freePorts, killMember, type Member, startMembers } from './demo-members.ts';
import { DemoPool } from './demo-pool.ts';
import type { DemoTraffic } from './demo-traffic.ts';

export interface Stage {
  readonly agent: DemoAgent;
  readonly traffic: DemoTraffic;
  /** Gets the traffic; has members 1 and 2. */
  readonly web: DemoPool;
  /** Has one member at a time, so that the first new connection after an edit shows it. */
  readonly single: DemoPool;
  readonly memberPort: number;
  /** Members 3 to 20, which are in no manifest yet. */
  readonly spare: readonly Member[];
}

export interface PhaseResult {
  /** Milliseconds from each edit to the first answer that shows it. */
  readonly edits?: readonly number[];
  /** What there is to say about it. */
  readonly remark?: string;
}

export interface Phase {
  readonly name: string;
  /** Whether HAProxy has to be reloaded for it; where not, a reload is a fault. */
  readonly reloads: boolean;
  readonly run: (stage: Stage) => Promise<PhaseResult>;
}

export const phases: readonly Phase[] = [
  {
    name: 'nothing changes',
    reloads: false,
    async run() {
      await delay(2_000);
      return {};
    },
  },
  {
    name: 'scale from 2 to 20 members',
    reloads: false,
    async run({ web, spare }) {
      await web.add(spare);
      const edits = [await web.untilAnswered(spare)];
      await delay(1_500);
      return { edits };
    },
  },
  {
    name: 'move a Service 18 times',
    reloads: false,
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
    reloads: false,
    async run({ agent, web }) {
      await web.retire(web.members.slice(5), agent);
      await delay(300);
      return {};
    },
  },
  {
    name: 'drain one member, remove it',
    reloads: false,
    async run({ agent, web }) {
      const [oldest] = web.members;
      if (oldest === undefined) throw new Error('There is no member left');
      const { answer } = await web.beginSlowAnswer(oldest);
      await web.retire([oldest], agent);
      const { member, resent } = await answer;
      if (member !== oldest.name || resent) throw new Error(`${oldest.name} was cut off in an answer`);
      return { remark: `${member} was in the middle of a slow answer and finished it` };
    },
  },
  {
    name: 'kill one without notice',
    reloads: false,
    async run({ traffic, web }) {
      const [oldest] = web.members;
      if (oldest === undefined) throw new Error('There is no member left');
      // A request that it had in hand would be lost with it, whatever stands before it.
      await traffic.without(() => killMember(oldest));
      await delay(1_000);
      await web.remove([oldest]);
      await delay(500);
      return {
        remark: `${oldest.name} got SIGKILL between two requests; the manifest said so only a second later`,
      };
    },
  },
  {
    name: 'replace every member',
    reloads: false,
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
    reloads: false,
    async run({ agent, web }) {
      const repair = await web.breakManifest();
      const problem = await problemAt(agent, web.path);
      await delay(500);
      await repair();
      return { remark: problem };
    },
  },
  {
    name: 'add a Service on a new port',
    reloads: true,
    async run({ agent, web, memberPort }) {
      const before = await agent.reloads();
      const [port = 0] = await freePorts(1);
      const api = new DemoPool(agent.manifests, 'api', port, memberPort);
      await api.add(web.members);
      const edits = [await api.untilAnswered(web.members)];
      while ((await agent.reloads()) === before) await delay(20);
      return { edits, remark: 'a new port is what HAProxy has to be reloaded for' };
    },
  },
];

/** What the agent says about a file, as soon as it says something. */
async function problemAt(agent: DemoAgent, path: string): Promise<string> {
  for (const until = performance.now() + 10_000; performance.now() < until; ) {
    const lines = (await agent.ask('status')).split('\n');
    const found = lines.find((line) => line.trimStart().startsWith(path));
    if (found !== undefined) return found.slice(found.lastIndexOf(path) + path.length + 1);
  }
  throw new Error(`The agent does not say that ${path} is broken`);
}
