// The agent's own metrics, as families to write out. The only user of the prom-client package.

import { Counter, collectDefaultMetrics, Gauge, Histogram, linearBuckets, Registry } from 'prom-client';
import type { MetricFamily, MetricPart } from '../agent/metric-family.ts';
import { escaped } from './text-format.ts';

/** What the gauges show, read at each scrape. */
export interface AgentState {
  /** How many objects of each kind the agent holds. */
  readonly objects: Readonly<Record<string, number>>;
  readonly loadBalancers: number;
  readonly ignoredServices: number;
  readonly waiting: number;
  /** By reason. */
  readonly problems: ReadonlyMap<string, number>;
  readonly haproxy: {
    readonly serving: boolean;
    /** '' where the state on disk is the desired one. */
    readonly persistFault: string;
    readonly serversToDelete: number;
  };
  readonly addresses: {
    readonly pools: readonly PoolState[];
    readonly unkept: number;
    readonly provisioning: number;
  };
  /** How many there are, by kind and operating status. */
  readonly operating: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** undefined where this host has no VRRP. */
  readonly vrrp: VrrpGauges | undefined;
  /** undefined where this host has no peer. */
  readonly pair: PairState | undefined;
}

/** How VRRP is, as far as gauges show it. */
export interface VrrpGauges {
  readonly instances: readonly {
    readonly name: string;
    readonly state: string;
    readonly priority: number;
    readonly vips: number;
  }[];
  /** Instances of which another host is master, too. */
  readonly rivals: readonly string[];
}

/** Seconds, the same as kube-proxy's `kubeproxy_network_programming_duration_seconds`, so that both can be added up. */
const PROGRAMMING_BUCKETS = [
  0.25,
  0.5,
  ...linearBuckets(1, 1, 59),
  ...linearBuckets(60, 5, 12),
  ...linearBuckets(120, 30, 7),
];

/** How the pair is, as far as gauges show it. */
export interface PairState {
  readonly lowered: readonly { readonly reason: string }[];
  readonly maintenance: boolean;
  readonly parity: Readonly<Record<'model' | 'running', string>>;
  readonly twoMasters: readonly string[];
  readonly peerAddress: string;
  readonly peer: unknown;
  readonly peerNotReady: string;
  /** Milliseconds since the epoch. */
  readonly credentialsExpire: number;
}

interface PoolState extends Readonly<Record<'free' | 'used' | 'held' | 'conflicting', number>> {
  readonly name: string;
  readonly family: 'v4' | 'v6';
}

/** What prom-client gives; its own type leaves out `metricName`. */
interface Collected {
  readonly name: string;
  readonly help: string;
  readonly type: MetricFamily['type'];
  readonly values: readonly {
    readonly labels: Readonly<Record<string, string | number>>;
    readonly value: number;
    readonly metricName?: string;
  }[];
}

/** Gauges of prom-client's that are named like counters, and that anyone can have as a sum. */
const SUMS = ['handles', 'requests', 'resources'];

/** Everything the agent counts. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #events = this.#counter('headgate_events_total', 'Changes of objects that a source delivered', [
    'source',
  ]);
  readonly #apiEvents = this.#counter('headgate_api_events_total', 'Events of watches of the API server', [
    'kind',
    'type',
  ]);
  readonly #apiLists = this.#counter(
    'headgate_api_lists_total',
    'Lists of the API server, by why they were made',
    ['kind', 'reason'],
  );
  readonly #apiWatchEnds = this.#counter(
    'headgate_api_watch_ends_total',
    'Ends of watches of the API server',
    ['kind', 'reason'],
  );
  readonly #statusWrites = this.#counter(
    'headgate_status_writes_total',
    'Writes of Services in the cluster',
    ['result'],
  );
  readonly #claimWrites = this.#counter(
    'headgate_claim_writes_total',
    'Writes of AddressClaims in the cluster',
    ['result'],
  );
  readonly #provisionerCalls = this.#counter(
    'headgate_provisioner_calls_total',
    'Calls of the program that is told of addresses',
    ['action', 'result'],
  );
  readonly #eventsSent = this.#counter('headgate_kubernetes_events_total', 'Events told to the cluster', [
    'result',
  ]);
  readonly #plans = this.#counter('headgate_plans_total', 'Plans made, by what they need', ['kind']);
  readonly #commands = this.#counter(
    'headgate_haproxy_commands_total',
    'Runtime commands that HAProxy acknowledged',
    ['command'],
  );
  readonly #refusals = this.#counter(
    'headgate_haproxy_command_failures_total',
    'Runtime commands that HAProxy refused',
    ['command'],
  );
  readonly #repairs = this.#counter(
    'headgate_repairs_total',
    'What was found different from desired and repaired',
    ['what'],
  );
  readonly #reloads = this.#counter('headgate_haproxy_reloads_total', 'Reloads of HAProxy, once per reason', [
    'reason',
    'result',
  ]);
  readonly #persists = this.#counter('headgate_persist_total', 'Writes of the desired state to disk', [
    'result',
  ]);
  readonly #vrrpTransitions = this.#counter(
    'headgate_vrrp_transitions_total',
    'Transitions of VRRP instances, by the state that was reached',
    ['instance', 'state'],
  );
  readonly #keepalivedReloads = this.#counter('headgate_keepalived_reloads_total', 'Reloads of keepalived', [
    'result',
  ]);
  readonly #pairRefusals = this.#counter(
    'headgate_pair_refused_total',
    'Connections to the pair that were refused or ended, by why',
    ['reason'],
  );
  readonly #ack = new Histogram({
    name: 'headgate_ack_duration_seconds',
    help: 'From the change of an object reaching the agent to the acknowledgement by HAProxy',
    buckets: [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [this.#registry],
  });
  readonly #programming = new Histogram({
    name: 'headgate_network_programming_duration_seconds',
    help: 'From the change of pods, as their EndpointSlice says it, to the acknowledgement by HAProxy',
    labelNames: ['path'],
    buckets: PROGRAMMING_BUCKETS,
    registers: [this.#registry],
  });
  #roundBegan: number | undefined;

  constructor(version: string, state: () => AgentState) {
    for (const path of ['runtime', 'reload']) this.#programming.zero({ path });
    collectDefaultMetrics({ register: this.#registry, prefix: 'headgate_' });
    for (const name of SUMS) this.#registry.removeSingleMetric(`headgate_nodejs_active_${name}_total`);
    this.#gauge('headgate_build_info', 'Always 1; the version is a label', ['version'], (gauge) =>
      gauge.set({ version }, 1),
    );
    this.#gauge('headgate_objects', 'Objects that the agent holds', ['kind'], (gauge) => {
      for (const [kind, count] of Object.entries(state().objects)) gauge.set({ kind }, count);
    });
    this.#gauge('headgate_problems', 'What users have to mend, by reason', ['reason'], (gauge) => {
      gauge.reset();
      for (const [reason, count] of state().problems) gauge.set({ reason }, count);
    });
    this.#gauge(
      'headgate_pool_addresses',
      'Addresses of a pool, by what has become of them',
      ['pool', 'family', 'state'],
      (gauge) => {
        gauge.reset();
        for (const { name: pool, family, ...counts } of state().addresses.pools)
          for (const each of ['free', 'used', 'held', 'conflicting'] as const)
            gauge.set({ pool, family, state: each }, counts[each]);
      },
    );
    const operating = 'headgate_operating_status';
    this.#gauge(operating, 'How many there are, by operating status', ['kind', 'status'], (gauge) => {
      for (const [kind, counts] of Object.entries(state().operating))
        for (const [status, count] of Object.entries(counts)) gauge.set({ kind, status }, count);
    });
    const numbers: [name: string, help: string, value: (state: AgentState) => number][] = [
      ['headgate_load_balancers', 'Load balancers in the model', (now) => now.loadBalancers],
      ['headgate_ignored_services', 'Services that are not ours', (now) => now.ignoredServices],
      [
        'headgate_unkept_claims',
        'Claims on addresses that are yet to be kept',
        (now) => now.addresses.unkept,
      ],
      [
        'headgate_provisioner_pending',
        'What the program that is told of addresses has yet to carry out',
        (now) => now.addresses.provisioning,
      ],
      ['headgate_waiting_changes', 'Load balancers that wait for the loop', (now) => now.waiting],
      ['headgate_haproxy_serving', 'Whether a HAProxy worker answers', (now) => Number(now.haproxy.serving)],
      [
        'headgate_state_persisted',
        'Whether the desired state could be written to disk',
        (now) => Number(now.haproxy.persistFault === ''),
      ],
      [
        'headgate_haproxy_servers_to_delete',
        'Servers out of use that still wait to be deleted',
        (now) => now.haproxy.serversToDelete,
      ],
    ];
    for (const [name, help, value] of numbers)
      this.#gauge(name, help, [], (gauge) => gauge.set(value(state())));
    this.#vrrpGauges(() => state().vrrp);
    this.#pairGauges(() => state().pair);
  }

  /** As they are now. */
  async families(): Promise<readonly MetricFamily[]> {
    const metrics = (await this.#registry.getMetricsAsJSON()) as unknown as readonly Collected[];
    return metrics.map(({ name, help, type, values }) => ({
      name,
      help,
      type: type === 'counter' && !name.endsWith('_total') ? 'gauge' : type,
      parts: values.map((each): MetricPart => {
        const labels = Object.entries(each.labels).map(
          ([label, value]) => `${label}="${escaped(String(value))}"`,
        );
        return {
          suffix: (each.metricName ?? name).slice(name.length),
          labels: '',
          rows: [{ labels: labels.join(',') }],
          value: () => each.value,
        };
      }),
    }));
  }

  eventReceived(source: string): void {
    this.#events.inc({ source });
  }

  apiEvent(kind: string, type: string): void {
    this.#apiEvents.inc({ kind, type });
  }

  apiList(kind: string, reason: string): void {
    this.#apiLists.inc({ kind, reason });
  }

  apiWatchEnded(kind: string, reason: string): void {
    this.#apiWatchEnds.inc({ kind, reason });
  }

  statusWritten(result: string): void {
    this.#statusWrites.inc({ result });
  }

  claimWritten(result: string): void {
    this.#claimWrites.inc({ result });
  }

  provisioned(action: string, result: string): void {
    this.#provisionerCalls.inc({ action, result });
  }

  eventSent(result: string): void {
    this.#eventsSent.inc({ result });
  }

  planned(kind: string): void {
    this.#plans.inc({ kind });
  }

  acknowledged(seconds: number): void {
    this.#ack.observe(seconds);
  }

  programmed(path: 'runtime' | 'reload', seconds: number): void {
    this.#programming.observe({ path }, seconds);
  }

  /** Milliseconds that the loop's round under way has taken so far; 0 between two rounds. */
  get roundTime(): number {
    return this.#roundBegan === undefined ? 0 : performance.now() - this.#roundBegan;
  }

  turns(): void {
    this.#roundBegan = performance.now();
  }

  turned(): void {
    this.#roundBegan = undefined;
  }

  commandsAcknowledged(command: string): void {
    this.#commands.inc({ command });
  }

  commandRefused(command: string): void {
    this.#refusals.inc({ command });
  }

  repaired(what: string): void {
    this.#repairs.inc({ what });
  }

  reloaded(reason: string, result: 'done' | 'failed'): void {
    this.#reloads.inc({ reason, result });
  }

  vrrpTransition(instance: string, state: string): void {
    this.#vrrpTransitions.inc({ instance, state });
  }

  keepalivedReloaded(result: 'done' | 'failed'): void {
    this.#keepalivedReloads.inc({ result });
  }

  pairRefused(reason: string): void {
    this.#pairRefusals.inc({ reason });
  }

  persisted(result: 'done' | 'failed'): void {
    this.#persists.inc({ result });
  }

  /** Without VRRP they have no value. */
  #vrrpGauges(state: () => VrrpGauges | undefined): void {
    const name = 'headgate_vrrp_state';
    this.#gauge(name, 'The state of a VRRP instance on this host', ['instance', 'state'], (gauge) => {
      gauge.reset();
      for (const each of state()?.instances ?? []) gauge.set({ instance: each.name, state: each.state }, 1);
    });
    const numbers: [
      name: string,
      help: string,
      value: (each: VrrpGauges['instances'][number], all: VrrpGauges) => number,
    ][] = [
      ['headgate_vrrp_priority', 'Priority, with what lowers it', ({ priority }) => priority],
      ['headgate_vrrp_vips', 'VIPs that go with the instance', ({ vips }) => vips],
      [
        'headgate_vrrp_rival',
        'Whether this host, a master, hears another one',
        ({ name: instance }, { rivals }) => Number(rivals.includes(instance)),
      ],
    ];
    for (const [gaugeName, help, value] of numbers) {
      this.#gauge(gaugeName, help, ['instance'], (gauge) => {
        const now = state();
        for (const each of now?.instances ?? [])
          gauge.set({ instance: each.name }, value(each, now as VrrpGauges));
      });
    }
  }

  /** Without a peer they have no value. */
  #pairGauges(state: () => PairState | undefined): void {
    const numbers: [name: string, help: string, value: (pair: PairState) => number][] = [
      ['headgate_pair_peer_heard', 'Whether the peer is heard', ({ peer }) => Number(peer !== undefined)],
      [
        'headgate_pair_peer_ready',
        'Whether the peer could take over now',
        ({ peerNotReady }) => Number(peerNotReady === ''),
      ],
      [
        'headgate_pair_two_masters',
        'How many VRRP instances have two masters',
        ({ twoMasters }) => twoMasters.length,
      ],
      [
        'headgate_maintenance',
        'Whether an operator has locked this host',
        ({ maintenance }) => Number(maintenance),
      ],
      [
        'headgate_pair_credentials_expiry_timestamp_seconds',
        'When the certificate of the pair ends',
        ({ credentialsExpire }) => credentialsExpire / 1000,
      ],
    ];
    for (const [name, help, value] of numbers) {
      this.#gauge(name, help, ['peer'], (gauge) => {
        gauge.reset();
        const pair = state();
        if (pair !== undefined) gauge.set({ peer: pair.peerAddress }, value(pair));
      });
    }
    this.#gauge('headgate_pair_parity', 'Whether the peer has the same', ['of'], (gauge) => {
      for (const [of, sameness] of Object.entries(state()?.parity ?? {}))
        gauge.set({ of }, Number(sameness === 'same'));
    });
    this.#gauge('headgate_standing_lowered', 'What lowers this host in the pair', ['reason'], (gauge) => {
      gauge.reset();
      for (const { reason } of state()?.lowered ?? []) gauge.set({ reason }, 1);
    });
  }

  #counter(name: string, help: string, labelNames: string[]): Counter {
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }

  #gauge(name: string, help: string, labelNames: string[], collect: (gauge: Gauge) => void): Gauge {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      collect: () => collect(gauge),
    });
    return gauge;
  }
}
