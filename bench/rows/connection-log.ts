// `connection-log`: wrk through two Services that differ in their log only, `all` and `none`, in HTTP mode, where each request
// is a line; also in TCP mode with a connection for each request. The lines go to a file. The two take turns in changing
// order, and a ratio is the median of the rounds' ratios.

import { askOnce } from '../../agent/haproxy/socket/ask-once.ts';
import { ManifestFolder, serving, startAgent } from '../support/agent.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { Addresses, type ServiceSpec, services } from '../support/objects.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { processorTime } from '../support/usage.ts';
import { wrk } from '../support/wrk.ts';

const MEMBER_PORT = 9000;
const ROUNDS = 12;
const MODES = ['http', 'tcp'] as const;
const LOGS = ['none', 'all'] as const;

interface Side {
  readonly spec: ServiceSpec;
  readonly rates: number[];
  /** Microseconds of HAProxy's processor time for each request. */
  readonly costs: number[];
}

type Sides = Readonly<Record<(typeof LOGS)[number], Side>>;

export const connectionLog: Benchmark = {
  rows: ['connection-log'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const member = responder(`0.0.0.0:${MEMBER_PORT}`);
      await startHaproxy(scratch, 'member', bench.haproxy, member.body, { globals: member.globals });
      const plain = services(new Addresses(), MODES.length * LOGS.length, 10, { memberPort: MEMBER_PORT });
      const specs = plain.map((spec, at) => {
        const [mode, log] = [MODES[at >> 1] ?? 'tcp', LOGS[at & 1] ?? 'none'];
        return { ...spec, annotations: { mode, log } };
      });
      const sidesOf = (mode: (typeof MODES)[number]): Sides => {
        const [none, all] = specs.filter(({ annotations }) => annotations.mode === mode);
        if (none === undefined || all === undefined) throw new Error('No Services');
        return { none: { spec: none, rates: [], costs: [] }, all: { spec: all, rates: [], costs: [] } };
      };
      const manifests = new ManifestFolder(scratch.path('m'), specs).path;
      const target = `file:${scratch.path('connections.log')}`;
      const flags = ['--manifests', manifests, '--connection-log-target', target];
      const agent = startAgent(scratch, flags, { haproxy: bench.haproxy });
      await serving(agent, specs.length);

      const haproxyTime = (): number => sum(agent.haproxyPids().map(processorTime));
      const [requests, connections] = [sidesOf('http'), sidesOf('tcp')];
      const rounds = bench.scaled(ROUNDS, 2);
      for (let round = 1; round <= rounds; round++) {
        bench.report(`connection-log: round ${round} of ${rounds}`);
        for (const [sides, headers] of [
          [requests, []],
          [connections, ['Connection: close']],
        ] as const) {
          const turns = round % 2 === 0 ? [sides.all, sides.none] : [sides.none, sides.all];
          for (const { spec, rates, costs } of turns) {
            const before = haproxyTime();
            const rate = await wrk(spec.vip, spec.port, headers);
            rates.push(rate);
            costs.push(((haproxyTime() - before) * 1_000) / rate);
          }
        }
      }
      const [ratio, ratioOfConnections] = [ratioOf(requests), ratioOf(connections)];
      // A rate is the requests of one second.
      const lines = sum(requests.all.rates) + sum(connections.all.rates);
      const info = await askOnce(agent.adminSocket, 'show info');
      const dropped = Number(/^DroppedLogs: (\d+)$/m.exec(info)?.[1]);
      bench.measured(
        row({
          name: 'connection-log',
          value: median(requests.all.rates),
          unit: 'requests/s',
          target: '≥ 0.75 × without a log, each request a line; ≥ 0.85 × with a connection for each request',
          met: ratio >= 0.75 && ratioOfConnections >= 0.85,
          reference: { name: 'without a log', value: median(requests.none.rates) },
          ratio,
          others: [{ name: 'without a log, in TCP mode', value: median(connections.none.rates) }],
          details: {
            'in TCP mode, a connection for each request': median(connections.all.rates),
            'ratio in TCP mode': ratioOfConnections,
            'µs of HAProxy for each request': median(requests.all.costs),
            'µs without a log': median(requests.none.costs),
            'µs of HAProxy for each connection in TCP mode': median(connections.all.costs),
            'µs without a log in TCP mode': median(connections.none.costs),
            '% of lines that HAProxy dropped': (100 * dropped) / lines,
            rounds,
          },
        }),
      );
    }),
};

function ratioOf({ none, all }: Sides): number {
  return median(all.rates.map((rate, at) => rate / (none.rates[at] ?? Number.NaN)));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
