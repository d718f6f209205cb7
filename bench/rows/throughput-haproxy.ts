// `throughput-haproxy`: wrk through the agent's configuration and through the best hand-written one, TCP from one address
// to ten members. The two take turns in changing order, and the ratio is the median of the rounds' ratios, because the
// speed of the machine varies more than the configurations differ.

import { ManifestFolder, serving, startAgent } from '../support/agent.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { Addresses, services } from '../support/objects.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { wrk } from '../support/wrk.ts';

const MEMBER_PORT = 9000;
const ROUNDS = 12;

interface Mode {
  readonly headers: readonly string[];
  readonly rendered: number[];
  readonly written: number[];
}

export const throughputHaproxy: Benchmark = {
  rows: ['throughput-haproxy'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const member = responder(`0.0.0.0:${MEMBER_PORT}`);
      await startHaproxy(scratch, 'member', bench.haproxy, member.body, { globals: member.globals });
      const [spec] = services(new Addresses(), 1, 10, { memberPort: MEMBER_PORT });
      if (spec === undefined) throw new Error('No Service');
      const agent = startAgent(scratch, new ManifestFolder(scratch.path('m'), [spec]).path, {
        haproxy: bench.haproxy,
      });
      await serving(agent, 1);
      const servers = spec.members.map(({ address, port }, at) => `    server s${at} ${address}:${port}\n`);
      const body = `
listen by-hand
    bind ${spec.vip}:8081
    balance roundrobin
${servers.join('')}`;
      await startHaproxy(scratch, 'by-hand', bench.haproxy, body, { globals: '    maxconn 9000\n' });

      const keepAlive: Mode = { headers: [], rendered: [], written: [] };
      const newEach: Mode = { headers: ['Connection: close'], rendered: [], written: [] };
      const rounds = bench.scaled(ROUNDS, 2);
      for (let round = 1; round <= rounds; round++) {
        bench.report(`throughput-haproxy: round ${round} of ${rounds}`);
        for (const { headers, rendered, written } of [keepAlive, newEach]) {
          const turns: [number, number[]][] = [
            [8080, rendered],
            [8081, written],
          ];
          if (round % 2 === 0) turns.reverse();
          for (const [port, rates] of turns) rates.push(await wrk(spec.vip, port, headers));
        }
      }
      const ratioOf = ({ rendered, written }: Mode): number =>
        median(rendered.map((rate, at) => rate / (written[at] ?? Number.NaN)));
      const [ratio, ratioOfNew] = [ratioOf(keepAlive), ratioOf(newEach)];
      bench.measured(
        row({
          name: 'throughput-haproxy',
          value: median(keepAlive.rendered),
          unit: 'requests/s',
          target:
            '≥ 0.98 × a hand-written configuration, with keep-alive and with a connection for each request',
          met: ratio >= 0.98 && ratioOfNew >= 0.98,
          reference: { name: 'hand-written', value: median(keepAlive.written) },
          ratio,
          others: [{ name: 'hand-written, a connection for each request', value: median(newEach.written) }],
          details: {
            'a connection for each request': median(newEach.rendered),
            'ratio with a connection for each request': ratioOfNew,
            rounds,
          },
        }),
      );
    }),
};
