// What changes during a soak: objects, many times a second, and what runs, one fault after the other. Each change is chosen
// by the seed. Objects are written until the API server takes them, since it is away from time to time.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type RunningAgent, signal, type TestHost } from '../host/agent.ts';
import type { Kube } from '../kube/kube.ts';
import { servicePath, slicePath } from '../kube/kube-objects.ts';
import { tlsSecret } from '../traffic/tls.ts';
import { order, roleOf } from '../vrrp/agent-pair.ts';
import type { Seeded } from './seeded.ts';
import type { SoakClients } from './soak-clients.ts';
import {
  BACKENDS,
  type Backend,
  clientsSecret,
  guestService,
  guestTarget,
  ingressOf,
  ingressPath,
  PODS,
  poolPath,
  SHOP,
  type SoakKeys,
  secretPath,
  soakPool,
  soakSlice,
  usersSecret,
} from './soak-world.ts';

export interface SoakHost {
  readonly name: string;
  readonly host: TestHost;
  agent: RunningAgent;
  /** The logs of its agents that have ended. */
  former: string;
  /** By when its agent is there again and has caught up, by performance.now(). */
  backAt: number;
}

export interface SoakChangesOptions {
  readonly kube: Kube;
  readonly hosts: readonly SoakHost[];
  readonly clients: SoakClients;
  readonly keys: SoakKeys;
  readonly seeded: Seeded;
  /** Programs of `headgate`: an upgrade changes from one to the next. */
  readonly versions: readonly string[];
  readonly web: WebTurns;
}

/**
 * A planned failover keeps the connections of a Service's present engine, and of the kernel path those whose slot has not
 * moved (docs/high-availability.md): the Service that changes its engine rests while one is under way, and shortly before.
 */
export interface WebTurns {
  isFailover: boolean;
  /** By performance.now(). */
  changedAt: number;
  /** When its engine was changed last, likewise. */
  engineAt: number;
}

const PATIENCE_MS = 120_000;
const AWAY_MS = 3_000;
/** A guest stays for some changes, so that its clients see it served. */
const GUESTS = 3;
const CATCH_UP_MS = 20_000;
/** For both hosts to serve a Service by another engine or members, also while they are busy. */
const REST_MS = 6_000;
const MERGE = 'application/merge-patch+json';

export class SoakChanges {
  /** Kind of change → how often. */
  readonly counts = new Map<string, number>();
  /** When each change began and ended: ISO time and kind. */
  readonly log: string[] = [];
  /** The pods of each Service as they were written last. */
  readonly pods = new Map<Backend, readonly string[]>(BACKENDS.map((each) => [each, PODS.slice(0, 4)]));
  readonly #options: SoakChangesOptions;
  readonly #guests: string[] = [];
  #turn = 0;

  constructor(options: SoakChangesOptions) {
    this.#options = options;
  }

  /** One change of an object. */
  async object(): Promise<void> {
    const { seeded, keys } = this.#options;
    const turn = ++this.#turn;
    const changes: Readonly<Record<string, () => Promise<unknown>>> = {
      certificate: () => this.#replaceSecret('server', tlsSecret('server', seeded.one(keys.servers))),
      'client authority': () =>
        this.#replaceSecret(
          'clients',
          clientsSecret(seeded.one([keys.clientCa, keys.clientCa + keys.otherCa])),
        ),
      users: () => this.#replaceSecret('users', usersSecret(turn)),
      engine: () => {
        const engine = seeded.one(['haproxy', 'kernel']);
        return this.#inTurn(() => {
          this.#options.web.engineAt = performance.now();
          return this.#annotate('web', 'headgate.io/engine', engine);
        });
      },
      option: () => {
        const spec = { sessionAffinity: seeded.one(['None', 'ClientIP']) };
        return this.#inTurn(() => this.#patch(servicePath('default', 'web'), { spec }));
      },
      route: () =>
        this.#patch(ingressPath('shop'), {
          spec: { rules: ruleOf({ '/': 'shop', '/blog': seeded.one(['shop', 'blog']) }) },
        }),
      weight: () => this.#canary(seeded.below(101)),
      pool: () => this.#pool(turn),
      guest: () => this.#guest(turn),
    };
    const isEndpoints = seeded.below(3) > 0;
    const kind = isEndpoints ? 'endpoints' : seeded.one(Object.keys(changes));
    await this.#run(kind, changes[kind] ?? (() => this.#endpoints()));
  }

  /** One change of what runs; resolves when it is over. */
  async fault(): Promise<void> {
    const { seeded, hosts, versions, kube } = this.#options;
    const one = seeded.one(hosts);
    const faults: Readonly<Record<string, () => Promise<void>>> = {
      'agent killed': () => this.#restart(one, 'SIGKILL'),
      'agent upgraded': async () => {
        one.host.headgate = versions[(versions.indexOf(one.host.headgate) + 1) % versions.length] ?? '';
        await this.#restart(one, 'SIGTERM');
      },
      'HAProxy upgraded': () => upgradeHaproxy(one.host),
      'API server killed': async () => {
        await kube.killApiServer();
        await delay(AWAY_MS);
        await kube.startApiServer();
      },
      'API server frozen': async () => {
        kube.freezeApiServer();
        await delay(AWAY_MS).finally(() => kube.thawApiServer());
      },
      settings: () => changeSettings(one, seeded.below(5) + 5),
      failover: () => this.#failover(),
    };
    const kind = seeded.one(Object.keys(faults));
    await this.#run(`${kind} (${one.name})`, async () => faults[kind]?.());
  }

  /** Guests go, in the end. */
  async removeGuests(): Promise<void> {
    while (this.#guests.length > 0) await this.#removeGuest();
  }

  #endpoints(): Promise<unknown> {
    const { seeded } = this.#options;
    const backend = seeded.one(BACKENDS);
    const pods = seeded.some(PODS);
    const change = (): Promise<unknown> => {
      this.pods.set(backend, pods);
      const slice = soakSlice(backend, pods);
      return this.#write('PATCH', slicePath('default', `${backend}-1`), { endpoints: slice.endpoints });
    };
    return backend === 'web' ? this.#inTurn(change) : change();
  }

  async #guest(turn: number): Promise<void> {
    const { clients, kube, seeded, hosts } = this.#options;
    const begun = performance.now();
    const name = `guest-${turn}` as const;
    await this.#write('POST', servicePath('default'), guestService(name));
    await this.#write('POST', slicePath('default'), soakSlice(name, seeded.some(PODS)));
    const address = await persist(`${name} has an address`, async () => {
      const { status } = await kube.must('GET', servicePath('default', name));
      return status.loadBalancer.ingress?.[0]?.ip as string | undefined;
    });
    this.#guests.push(name);
    // A published address answers. But the host that is not active publishes it, and the active one has it when its agent
    // is back, if the agent is away meanwhile.
    if (hosts.some(({ backAt }) => backAt > begun)) this.#count('guest not asked');
    else await clients.add(guestTarget(name, address));
    if (this.#guests.length > GUESTS) await this.#removeGuest();
  }

  async #removeGuest(): Promise<void> {
    const { clients } = this.#options;
    const name = this.#guests.shift();
    if (name === undefined) return;
    await clients.remove(name);
    // Its last request may be under way.
    await delay(1_000);
    await this.#write('DELETE', servicePath('default', name));
    await this.#write('DELETE', slicePath('default', `${name}-1`));
  }

  async #canary(weight: number): Promise<void> {
    const annotations = {
      'nginx.ingress.kubernetes.io/canary': 'true',
      'nginx.ingress.kubernetes.io/canary-weight': String(weight),
    };
    const canary = ingressOf('canary', SHOP, { '/': 'blog' }, {}, annotations);
    await this.#write('POST', ingressPath(), canary);
    await this.#patch(ingressPath('canary'), { metadata: { annotations } });
  }

  /** A second pool comes and goes; no Service has an address of it. */
  async #pool(turn: number): Promise<void> {
    const pool = soakPool('other', { blocks: ['10.9.4.0/24'], autoAssign: false });
    if (turn % 2 === 0) await this.#write('POST', poolPath(), pool);
    else await this.#write('DELETE', poolPath('other'));
  }

  #replaceSecret(name: string, secret: object): Promise<unknown> {
    return this.#write('PUT', secretPath(name), secret);
  }

  #annotate(service: string, name: string, value: string): Promise<unknown> {
    return this.#patch(servicePath('default', service), { metadata: { annotations: { [name]: value } } });
  }

  #patch(path: string, body: object): Promise<unknown> {
    return this.#write('PATCH', path, body);
  }

  /** An object that is there already, or gone already, is fine. */
  async #write(method: string, path: string, body?: object): Promise<unknown> {
    const { kube } = this.#options;
    return persist(`${method} ${path}`, async () => {
      const { status, body: answer } = await kube.api(
        method,
        path,
        body,
        method === 'PATCH' ? MERGE : undefined,
      );
      const isDone = (method === 'POST' && status === 409) || (method === 'DELETE' && status === 404);
      if (status < 300 || isDone) return true;
      throw new Error(`${status} ${JSON.stringify(answer).slice(0, 300)}`);
    });
  }

  async #restart(one: SoakHost, how: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    one.backAt = Number.POSITIVE_INFINITY;
    one.agent.signal(how);
    await one.agent.exited;
    one.former += one.agent.text;
    one.agent = await one.host.start();
    one.backAt = performance.now() + CATCH_UP_MS;
  }

  /** A change of `web`. */
  async #inTurn(change: () => Promise<unknown>): Promise<void> {
    const { web } = this.#options;
    if (web.isFailover) return this.#count('web not changed');
    web.changedAt = performance.now();
    await change();
    web.changedAt = performance.now();
  }

  async #failover(): Promise<void> {
    const { web, clients } = this.#options;
    web.isFailover = true;
    try {
      await delay(Math.max(0, web.changedAt + REST_MS - performance.now()));
      await clients.renew();
      // Requests of before may be under way.
      await delay(1_000);
      await this.#handOver();
    } finally {
      web.isFailover = false;
    }
  }

  async #handOver(): Promise<void> {
    for (const { host } of this.#options.hosts) {
      if ((await roleOf(host)) !== 'master') continue;
      const { ok } = await order(host, 'failover');
      // A host that is behind, after a restart for instance, does not take over.
      if (!ok) this.#count('failover refused');
      return;
    }
  }

  async #run(kind: string, change: () => Promise<unknown>): Promise<void> {
    this.#count(kind);
    this.log.push(`${new Date().toISOString()} ${kind}`);
    await change();
    this.log.push(`${new Date().toISOString()} ${kind}: done`);
  }

  #count(kind: string): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }
}

function ruleOf(backends: Readonly<Record<string, Backend>>): unknown {
  return (ingressOf('any', SHOP, backends).spec as { readonly rules: unknown }).rules;
}

/** As systemd reloads a unit whose program is new: the master executes it, and starts a new worker. */
async function upgradeHaproxy(host: TestHost): Promise<void> {
  const before = await host.worker();
  signal(await host.master(), 'SIGUSR2');
  await persist('HAProxy has another worker', async () => (await host.worker()) !== before || undefined);
}

async function changeSettings({ host, agent }: SoakHost, seconds: number): Promise<void> {
  const path = join(host.directory, 'headgate.yaml');
  const settings = JSON.parse(await readFile(path, 'utf8'));
  await writeFile(path, JSON.stringify({ ...settings, drainTimeout: `${seconds}s` }));
  agent.signal('SIGHUP');
}

/** Repeats what fails, or gives undefined. */
async function persist<T>(what: string, attempt: () => Promise<T | undefined>): Promise<T> {
  let last: unknown;
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await delay(100)) {
    try {
      const answer = await attempt();
      if (answer !== undefined) return answer;
    } catch (error) {
      last = error;
    }
  }
  throw new Error(`Not within ${PATIENCE_MS} ms: ${what}`, { cause: last });
}
