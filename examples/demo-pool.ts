// A Service of the demonstration: edits its manifest and measures the time until the traffic follows.

import { readFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { DemoAgent } from './demo-agent.ts';
import { manifestText, writeManifest } from './demo-manifest.ts';
import { type Member, stopMember } from './demo-members.ts';
import { type Answer, get } from './demo-request.ts';

const DEADLINE_MS = 10_000;

/** A listener in the output of `headgate why --json`. */
interface Explained {
  readonly members: readonly { readonly name: string; readonly haproxy: string }[];
}

/** Errors of a port on which HAProxy does not listen yet. */
const NOT_LISTENING = ['ECONNREFUSED', 'ECONNRESET'];

export class DemoPool {
  readonly url: string;
  readonly path: string;
  readonly #name: string;
  readonly #port: number;
  readonly #memberPort: number;
  #members: readonly Member[] = [];
  readonly #leaving = new Set<Member>();
  #hasAnswered = false;

  /** Writes no file. The Service listens on `port` of 127.0.0.1, the members on `memberPort` of their own addresses. */
  constructor(directory: string, name: string, port: number, memberPort: number) {
    this.url = `http://127.0.0.1:${port}/`;
    this.path = join(directory, `${name}.yaml`);
    this.#name = name;
    this.#port = port;
    this.#memberPort = memberPort;
  }

  /** The members in the manifest, the oldest first. */
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

  /** Replaces all members with one. */
  moveTo(member: Member): Promise<void> {
    this.#members = [member];
    return this.#write();
  }

  /**
   * Removes members as Kubernetes removes pods: they terminate in the manifest until they have ended. A member gets SIGTERM
   * when it receives no new connections, as after a pod's `preStop`.
   */
  async retire(members: readonly Member[], agent: Pick<DemoAgent, 'command'>): Promise<void> {
    for (const member of members) this.#leaving.add(member);
    await this.#write();
    await this.#untilDrained(members, agent);
    await Promise.all(members.map(stopMember));
    await this.remove(members);
  }

  /**
   * Resolves with the milliseconds from now until one of the members answers. Sends requests on new connections, one after
   * the other, and continues if no process listens yet, or only the agent, which tests for a moment that the port is free.
   */
  async untilAnswered(members: readonly Member[]): Promise<number> {
    const names = members.map(({ name }) => name);
    for (const began = performance.now(); performance.now() < began + DEADLINE_MS; ) {
      try {
        const { member } = await get(this.url, false);
        this.#hasAnswered = true;
        if (names.includes(member)) return performance.now() - began;
      } catch (error) {
        const { code = '' } = error as NodeJS.ErrnoException;
        if (this.#hasAnswered || !NOT_LISTENING.includes(code)) throw error;
        await delay(2);
      }
    }
    throw new Error(`None of ${names.join(', ')} answers at ${this.url} within ${DEADLINE_MS} ms`);
  }

  /** Resolves when the member has begun an answer that takes a second, with the promise of that answer. */
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

  /** Writes a text that is not YAML; resolves with a function that restores the manifest. */
  async breakManifest(): Promise<() => Promise<void>> {
    const text = await readFile(this.path, 'utf8');
    await writeManifest(this.path, text.replace('endpoints:', 'endpoints: ['));
    return () => writeManifest(this.path, text);
  }

  /** Resolves when HAProxy has acknowledged that the members drain. */
  async #untilDrained(members: readonly Member[], agent: Pick<DemoAgent, 'command'>): Promise<void> {
    const names = members.map(({ address }) => `${address}:${this.#memberPort}`);
    for (const until = performance.now() + DEADLINE_MS; performance.now() < until; ) {
      const { listeners } = JSON.parse(await agent.command('why', `default/${this.#name}`, '--json'));
      const all = (listeners as readonly Explained[]).flatMap((listener) => listener.members);
      if (all.every(({ name, haproxy }) => haproxy !== 'ready' || !names.includes(name))) return;
    }
    throw new Error(`HAProxy does not drain ${names.join(', ')} within ${DEADLINE_MS} ms`);
  }

  #write(): Promise<void> {
    const endpoints = this.#members.map((member) => {
      const state: 'leaving' | 'ready' = this.#leaving.has(member) ? 'leaving' : 'ready';
      return { name: member.name, address: member.address, state };
    });
    return writeManifest(this.path, manifestText(this.#name, this.#port, this.#memberPort, endpoints));
  }
}
