// A Service of the demonstration: who is in its manifest, and how long an edit takes to become traffic.

import { readFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { DemoAgent } from './demo-agent.ts';
import { manifestText, writeManifest } from './demo-manifest.ts';
import { type Member, stopMember } from './demo-members.ts';
import { type Answer, get } from './demo-request.ts';

/** Milliseconds. */
const DEADLINE = 10_000;
/** What `headgate why --json` says of a listener. */
interface Explained {
  readonly members: readonly { readonly name: string; readonly haproxy: string }[];
}

const NOT_YET = ['ECONNREFUSED', 'ECONNRESET'];

export class DemoPool {
  readonly url: string;
  readonly path: string;
  readonly #name: string;
  readonly #port: number;
  readonly #memberPort: number;
  #members: readonly Member[] = [];
  readonly #leaving = new Set<Member>();
  #hasAnswered = false;

  /** Writes nothing yet. Both ports are of loopback addresses: the Service's of 127.0.0.1, the members' of their own. */
  constructor(directory: string, name: string, port: number, memberPort: number) {
    this.url = `http://127.0.0.1:${port}/`;
    this.path = join(directory, `${name}.yaml`);
    this.#name = name;
    this.#port = port;
    this.#memberPort = memberPort;
  }

  /** Those in the manifest, the oldest first. */
  get members(): readonly Member[] {
    return this.#members;
  }

  add(members: readonly Member[]): Promise<void> {
    this.#members = [...this.#members, ...members];
    return this.#write();
  }

  remove(members: readonly Member[]): Promise<void> {
    this.#members = this.#members.filter((member) => !members.includes(member));
    return this.#write();
  }

  /** Puts one member in the place of all others. */
  moveTo(member: Member): Promise<void> {
    this.#members = [member];
    return this.#write();
  }

  /**
   * As Kubernetes takes pods away: they terminate in the manifest, and it loses them when they are gone. Each is told
   * to end once it gets no new connections, which is what a pod's `preStop` waits for.
   */
  async retire(members: readonly Member[], agent: Pick<DemoAgent, 'ask'>): Promise<void> {
    for (const member of members) this.#leaving.add(member);
    await this.#write();
    await this.#untilDrained(members, agent);
    await Promise.all(members.map(stopMember));
    await this.remove(members);
  }

  /**
   * Milliseconds from now until one of these answers; asks on new connections, one after the other, and goes on where
   * nothing listens yet, or only the agent, which tries for a moment whether the port is free.
   */
  async untilAnswered(members: readonly Member[]): Promise<number> {
    const names = members.map(({ name }) => name);
    for (const began = performance.now(); performance.now() < began + DEADLINE; ) {
      try {
        const { member } = await get(this.url, false);
        this.#hasAnswered = true;
        if (names.includes(member)) return performance.now() - began;
      } catch (error) {
        const isThere = this.#hasAnswered || !NOT_YET.includes((error as NodeJS.ErrnoException).code ?? '');
        if (isThere) throw error;
        await delay(2);
      }
    }
    throw new Error(`None of ${names.join(', ')} answers at ${this.url} within ${DEADLINE} ms`);
  }

  /** Has a member begin an answer that takes a second; resolves, wrapped, once it is at it. */
  async beginSlowAnswer({ name }: Member): Promise<{ readonly answer: Promise<Answer> }> {
    for (;;) {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      if ((await get(this.url, agent)).member === name) {
        const begun = Promise.withResolvers<void>();
        const answer = get(`${this.url}slow`, agent, begun.resolve).finally(() => agent.destroy());
        await Promise.race([begun.promise, answer]);
        return { answer };
      }
      agent.destroy();
    }
  }

  /** Writes a text that is no YAML, and gives the function that undoes it. */
  async breakManifest(): Promise<() => Promise<void>> {
    const text = await readFile(this.path, 'utf8');
    await writeManifest(this.path, text.replace('endpoints:', 'endpoints: ['));
    return () => writeManifest(this.path, text);
  }

  /** As HAProxy has acknowledged it. */
  async #untilDrained(members: readonly Member[], agent: Pick<DemoAgent, 'ask'>): Promise<void> {
    const names = members.map(({ address }) => `${address}:${this.#memberPort}`);
    for (const until = performance.now() + DEADLINE; performance.now() < until; ) {
      const { listeners } = JSON.parse(await agent.ask('why', `default/${this.#name}`, '--json'));
      const all = (listeners as readonly Explained[]).flatMap((listener) => listener.members);
      if (all.every(({ name, haproxy }) => haproxy !== 'ready' || !names.includes(name))) return;
    }
    throw new Error(`HAProxy does not drain ${names.join(', ')} within ${DEADLINE} ms`);
  }

  #write(): Promise<void> {
    const endpoints = this.#members.map((member) => {
      const state: 'leaving' | 'ready' = this.#leaving.has(member) ? 'leaving' : 'ready';
      return { name: member.name, address: member.address, state };
    });
    return writeManifest(this.path, manifestText(this.#name, this.#port, this.#memberPort, endpoints));
  }
}
