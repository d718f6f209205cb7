// Claim first, then finalizer and status in one patch, whatever happens in between: Services that are deleted or created
// again, a watch that lags behind, requests that arrive late, another leader, an agent that is killed. An address is never
// published for two Services, and in the end each Service has one and no other claim is left.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import fc from 'fast-check';
import { AddressKeeper } from '../../../agent/address-keeper/address-keeper.ts';
import { systemClock } from '../../../agent/base/clock.ts';
import type { ApiRequest, ApiResponse } from '../../../agent/kubernetes/api/kubernetes-api.ts';
import { Cluster } from '../../../agent/kubernetes/cluster.ts';
import { readCurrentService } from '../../../agent/kubernetes/current-service.ts';
import type { DesiredService } from '../../../agent/kubernetes/writers/service-patch.ts';
import { StatusWriter } from '../../../agent/kubernetes/writers/status-writer.ts';
import { until } from '../../support/basics/until.ts';
import { FakeApi, type Json } from '../../support/kube/fake-api.ts';
import { pool } from '../../support/values/address-requests.ts';
import { parsedObject, serviceJson } from '../../support/values/kubernetes-json.ts';
import { silentLog } from '../../support/values/silent-log.ts';
import { SETTINGS } from '../../support/values/translated.ts';

const SERVICES = '/api/v1/namespaces/default/services';
const CLAIMS = '/apis/headgate.io/v1alpha1/addressclaims';
const NAMES = ['a', 'b', 'c', 'd'] as const;
/** Fewer than Services, so that they compete for each. */
const ADDRESSES = 2;
const POOL = pool('p', ['192.0.2.1-192.0.2.2']);
const TRANSLATING = { ...SETTINGS, handleUnclassed: true };
const AGENTS = [0, 1] as const;

type Step =
  | { readonly kind: 'create' | 'delete'; readonly name: (typeof NAMES)[number] }
  | { readonly kind: 'watch'; readonly agent: 0 | 1; readonly events: number }
  /** `none`: the Lease has no holder. */
  | { readonly kind: 'lead'; readonly agent: 0 | 1 | 'none' }
  /** A new agent with an empty memory follows. `loses`: requests of the old one that have not arrived yet never do. */
  | { readonly kind: 'kill'; readonly agent: 0 | 1; readonly loses: boolean }
  /** From now on requests for these objects arrive late, or their answers do. */
  | { readonly kind: 'hold'; readonly what: 'request' | 'answer'; readonly of: 'claims' | 'services' }
  | { readonly kind: 'release' }
  | { readonly kind: 'pass' };

const name = fc.constantFrom(...NAMES);
const agent = fc.constantFrom(...AGENTS);
const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('create' as const), name }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('delete' as const), name }) },
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant('watch' as const),
        agent,
        events: fc.integer({ min: 1, max: 4 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('lead' as const),
        agent: fc.constantFrom(0 as const, 1 as const, 'none' as const),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('kill' as const), agent, loses: fc.boolean() }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('hold' as const),
        what: fc.constantFrom('request' as const, 'answer' as const),
        of: fc.constantFrom('claims' as const, 'services' as const),
      }),
    },
    { weight: 2, arbitrary: fc.constant<Step>({ kind: 'release' }) },
    { weight: 5, arbitrary: fc.constant<Step>({ kind: 'pass' }) },
  ),
  { minLength: 20, maxLength: 60, size: 'max' },
);

test('An address is published for one Service at a time, and none is lost, whatever happens between claim and status', async (t) => {
  t.timeout(120_000);
  await t.notThrowsAsync(
    fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const world = await World.create();
        try {
          for (const step of list) await world.run(step);
          await world.end();
        } finally {
          await world.close();
        }
      }),
      { numRuns: 200, includeErrorInReport: true },
    ),
  );
});

/** An API server with a log of what its watches show, and two agents. */
class World {
  readonly api = new FakeApi();
  readonly log: { readonly path: string; readonly object: Json | undefined }[] = [];
  readonly #folder: string;
  readonly #agents: [Agent, Agent] | [] = [];
  /** `request claims` → until it may arrive. */
  readonly #held = new Map<string, PromiseWithResolvers<void>>();
  #leader: 0 | 1 | 'none' = 0;
  #uids = 0;
  /** The first thing that must never be. */
  #fault = '';

  private constructor(folder: string) {
    this.#folder = folder;
    const put = this.api.put.bind(this.api);
    this.api.put = (path, object) => {
      const isReleased = object.metadata.deletionTimestamp !== undefined && !hasFinalizers(object);
      if (isReleased) {
        this.#remove(path);
        return object;
      }
      const uid = object.metadata.uid ?? `uid-${++this.#uids}`;
      const before = this.api.objects.get(path);
      const stored = put(path, { ...object, metadata: { ...object.metadata, uid } });
      this.log.push({ path, object: stored });
      this.#check(before, stored);
      return stored;
    };
    const { objects } = this.api;
    const remove = objects.delete.bind(objects);
    objects.delete = (path) => {
      this.log.push({ path, object: undefined });
      return remove(path);
    };
  }

  static async create(): Promise<World> {
    const world = new World(await mkdtemp(join(tmpdir(), 'headgate-claims-')));
    for (const index of AGENTS) world.#agents[index] = await Agent.start(world, world.#folder, index);
    world.#lead(0);
    return world;
  }

  async run(step: Step): Promise<void> {
    const path = 'name' in step ? `${SERVICES}/${step.name}` : '';
    const stored = this.api.objects.get(path);
    if (step.kind === 'create' && stored === undefined) this.#create(path, step.name);
    else if (step.kind === 'delete' && stored !== undefined) this.#delete(path, stored);
    else if (step.kind === 'watch') void this.#agent(step.agent).watch(step.events);
    else if (step.kind === 'lead') await this.#change(step.agent);
    else if (step.kind === 'kill') await this.#restart(step.agent, step.loses);
    else if (step.kind === 'hold') this.#hold(`${step.what} ${step.of}`);
    else if (step.kind === 'release') this.#release();
    else if (step.kind === 'pass') await pass();
    if (this.#fault !== '') throw new Error(this.#fault);
  }

  /** Everything arrives, one agent leads: then all is as it should be. */
  async end(): Promise<void> {
    this.#release();
    if (this.#leader === 'none') await this.#change(0);
    await until(
      'each Service has its address, and nothing else is left',
      () => {
        for (const index of AGENTS) void this.#agent(index).watch(Number.POSITIVE_INFINITY);
        if (this.#fault !== '') throw new Error(this.#fault);
        return this.#difference() === '';
      },
      { seen: () => this.#difference() },
    );
  }

  async close(): Promise<void> {
    this.#release();
    for (const one of this.#agents) await one.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  isLeader(index: 0 | 1, self: Agent): boolean {
    return this.#leader === index && this.#agents[index] === self;
  }

  /** A killed agent gets no answer, though its request may arrive. */
  async request(self: Agent, request: ApiRequest): Promise<ApiResponse> {
    const of = request.path.startsWith(CLAIMS) ? 'claims' : 'services';
    await this.#held.get(`request ${of}`)?.promise;
    if (self.isLost) throw new Error('The request is lost');
    const response = await this.api.request(request);
    await this.#held.get(`answer ${of}`)?.promise;
    if (self.isKilled) throw new Error('The agent is gone');
    return response;
  }

  #create(path: string, service: string): void {
    this.api.put(path, serviceJson(service, { metadata: { namespace: 'default' } }));
  }

  #delete(path: string, stored: Json): void {
    if (!hasFinalizers(stored)) this.#remove(path);
    else if (stored.metadata.deletionTimestamp === undefined)
      this.api.put(path, {
        ...stored,
        metadata: { ...stored.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
      });
  }

  #remove(path: string): void {
    this.api.objects.delete(path);
  }

  #agent(index: 0 | 1): Agent {
    const one = this.#agents[index];
    if (one === undefined) throw new Error('There are two agents');
    return one;
  }

  #lead(leader: 0 | 1 | 'none'): void {
    this.#leader = leader;
    for (const one of this.#agents) one.lead();
  }

  /**
   * The Lease lasts longer than a request and than a watch lags behind: requests of the former leader have arrived, or
   * never do, and the new one sees what they did before it leads.
   */
  async #change(leader: 0 | 1 | 'none'): Promise<void> {
    this.#lead('none');
    this.#release();
    await pass();
    if (leader !== 'none') await this.#agent(leader).watch(Number.POSITIVE_INFINITY);
    this.#lead(leader);
  }

  async #restart(index: 0 | 1, losesRequests: boolean): Promise<void> {
    void this.#agent(index).kill(losesRequests);
    this.#release();
    await pass();
    this.#agents[index] = await Agent.start(this, this.#folder, index);
    this.#agent(index).lead();
  }

  #hold(what: string): void {
    if (!this.#held.has(what)) this.#held.set(what, Promise.withResolvers<void>());
  }

  #release(): void {
    for (const held of this.#held.values()) held.resolve();
    this.#held.clear();
  }

  /** No two Services that live show the same address, and none loses the one that it shows. */
  #check(before: Json | undefined, now: Json): void {
    const [had = '', has = ''] = [...ipsOf(before?.status), ''].slice(0, 1).concat(ipsOf(now.status));
    if (had !== '' && now.metadata.deletionTimestamp === undefined && had !== has)
      this.#fault ||= `${now.metadata.name} had ${had} and has ${has || 'none'}`;
    const shown = this.#services().flatMap(({ metadata, status }) =>
      metadata.deletionTimestamp === undefined ? ipsOf(status) : [],
    );
    if (new Set(shown).size < shown.length) this.#fault ||= `Published twice: ${shown}`;
  }

  #services(): readonly Json[] {
    return [...this.api.objects].flatMap(([path, object]) => (path.startsWith(SERVICES) ? [object] : []));
  }

  /**
   * '' if each Service that shows an address has a claim with its UID, as many have one as there are addresses, no other
   * claim is there, and no Service is being deleted.
   */
  #difference(): string {
    const services = this.#services().map(({ metadata, status }) => {
      const state = metadata.deletionTimestamp === undefined ? '' : ' is being deleted';
      return `default/${metadata.name} ${metadata.uid} ${ipsOf(status).join()}${state}`;
    });
    const claims = [...this.api.objects].flatMap(([path, { spec }]) =>
      path.startsWith(CLAIMS) ? [`${spec.service} ${spec.serviceUID} ${spec.address}`] : [],
    );
    const isSame = claims.every((claim) => services.includes(claim));
    const without = services.filter((service) => service.endsWith(' ')).length;
    const isAll = claims.length === Math.min(ADDRESSES, services.length);
    return isSame && isAll && claims.length + without === services.length
      ? ''
      : `Services: ${services}; claims: ${claims}`;
  }
}

/** Follows the API server as far as its watch has come, and serves at once all that it desires. */
class Agent {
  isKilled = false;
  isLost = false;
  readonly #world: World;
  readonly #cluster = new Cluster();
  readonly #shown = new Map<string, Json>();
  readonly #writer: StatusWriter;
  readonly #keeper: AddressKeeper;
  readonly #isLeader: () => boolean;
  #onLeader: () => void = () => undefined;
  #at: number;

  private constructor(world: World, stateDir: string, index: 0 | 1) {
    this.#world = world;
    this.#at = world.log.length;
    const log = silentLog();
    const api = {
      request: (request: ApiRequest) => world.request(this, request),
      close: () => undefined,
    };
    const isLeader = () => !this.isKilled && world.isLeader(index, this);
    this.#isLeader = isLeader;
    this.#writer = new StatusWriter({
      api,
      clock: systemClock,
      log,
      isLeader,
      currentService: (key) => readCurrentService(this.#shown.get(pathOf(key))),
    });
    this.#keeper = new AddressKeeper({
      cluster: this.#cluster,
      // The address of a Service that is gone is free at once.
      settings: { pools: [POOL], releaseAfter: 0, provisioner: '', stateDir },
      translating: TRANSLATING,
      store: {
        api,
        home: () => 'cluster',
        writers: {
          get isLeader() {
            return isLeader();
          },
          isBarred: false,
          onLeader: (listener) => {
            this.#onLeader = listener;
          },
          events: { record: () => undefined },
          services: this.#writer,
        },
      },
      hooks: {
        onChanged: (keys) => this.#report(keys),
        onKept: (key) => this.#report([key]),
        onProblems: () => undefined,
      },
      log,
      metrics: { claimWritten: () => undefined, provisioned: () => undefined },
    });
  }

  static async start(world: World, folder: string, index: 0 | 1): Promise<Agent> {
    const one = new Agent(world, join(folder, String(index)), index);
    for (const [path, object] of world.api.objects) one.#take(path, object);
    await one.#keeper.start();
    return one;
  }

  lead(): void {
    this.#writer.lead(this.#isLeader());
    this.#onLeader();
    this.#report(NAMES.map((each) => `default/${each}`));
  }

  /** Resolves when the keeper has decided on what it has seen. */
  async watch(events: number): Promise<void> {
    for (const { path, object } of this.#world.log.slice(this.#at, this.#at + events)) {
      this.#at++;
      this.#take(path, object);
    }
    await this.#keeper.decided();
  }

  /** As SIGKILL does: nothing more is sent. */
  async kill(losesRequests: boolean): Promise<void> {
    this.isKilled = true;
    this.isLost = losesRequests;
    this.#writer.lead(false);
    this.#onLeader();
    await this.close();
  }

  async close(): Promise<void> {
    await Promise.all([this.#keeper.close(), this.#writer.close()]);
  }

  #take(path: string, object: Json | undefined): void {
    const kind = path.startsWith(CLAIMS) ? ('AddressClaim' as const) : ('Service' as const);
    const short = path.slice(path.lastIndexOf('/') + 1);
    const key = kind === 'Service' ? `default/${short}` : short;
    if (object === undefined) this.#shown.delete(path);
    else this.#shown.set(path, object);
    const change =
      object === undefined
        ? { upserted: [], removed: [{ kind, key }] }
        : { upserted: [parsedObject(object)], removed: [] };
    const { owners, ...ofAddresses } = this.#cluster.apply(change, 'api');
    this.#keeper.take(ofAddresses);
    this.#report(new Set([...owners, ...this.#keeper.assign(owners)]));
    if (kind === 'Service') this.#writer.observed(key);
  }

  /** As Reporter does after a round of the loop. */
  #report(keys: Iterable<string>): void {
    for (const key of keys) this.#writer.set(key, this.#desired(key));
  }

  #desired(key: string): DesiredService | undefined {
    const service = this.#cluster.service(key);
    if (service === undefined) return undefined;
    const { uid, deleting } = service;
    if (deleting) return { kind: 'release', uid, isTornDown: true };
    if (!this.#keeper.isKept(key)) return { kind: 'choosing', uid };
    const addresses = this.#keeper.ofPools(key)?.addresses ?? [];
    const [address] = addresses.map((each) => each.address);
    return {
      kind: 'serve',
      uid,
      status: {
        ingress:
          address === undefined ? [] : [{ ip: address, ipMode: 'Proxy', ports: [], onlyIfPublished: false }],
        conditions: [
          {
            type: 'headgate.io/IPAllocated',
            status: address === undefined ? 'False' : 'True',
            reason: 'Any',
            message: address ?? '',
          },
        ],
        isSettled: address !== undefined,
      },
    };
  }
}

async function pass(): Promise<void> {
  for (let turns = 0; turns < 5; turns++) await turn();
}

function hasFinalizers({ metadata }: Json): boolean {
  return (metadata.finalizers ?? []).length > 0;
}

function ipsOf(status: Json | undefined): readonly string[] {
  return (status?.loadBalancer?.ingress ?? []).map(({ ip }: Json) => ip);
}

function pathOf(key: string): string {
  return `${SERVICES}/${key.slice('default/'.length)}`;
}
