// `route-cost`: wrk through one HTTPRoute, alone and among 10,000 hostnames, and through a hand-written `use_backend` for that
// one. The three take turns in changing order, and each ratio is the median of the rounds' ratios.

import { startAgent } from '../support/agent.ts';
import { GatewayFolder, route } from '../support/gateway.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { Addresses, services } from '../support/objects.ts';
import { request } from '../support/request.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { until } from '../support/until.ts';
import { wrk } from '../support/wrk.ts';

const MEMBER_PORT = 9000;
const PORTS = { one: 8080, many: 8081, byHand: 8082 } as const;
const ROUNDS = 12;
const HOSTS_PER_ROUTE = 10;
const HOST = 'api.example.org';

export const routeCost: Benchmark = {
  rows: ['route-cost'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const member = responder(`0.0.0.0:${MEMBER_PORT}`);
      await startHaproxy(scratch, 'member', bench.haproxy, member.body, { globals: member.globals });
      const [spec] = services(new Addresses(), 1, 10, { port: 80, memberPort: MEMBER_PORT });
      if (spec === undefined) throw new Error('No Service');
      const hosts = bench.scaled(10_000, 100);
      for (const [name, count] of [
        ['one', 0],
        ['many', hosts],
      ] as const) {
        const folder = new GatewayFolder(scratch.path(name), spec.vip, PORTS[name], [spec]);
        const others = Array.from({ length: count / HOSTS_PER_ROUTE }, (_, at) =>
          route(
            `other-${at}`,
            Array.from({ length: HOSTS_PER_ROUTE }, (__, host) => `h${at}-${host}.example.org`),
            spec,
          ),
        );
        folder.write('routes', [...others, route('api', [HOST], spec)]);
        startAgent(scratch, folder.path, { name, haproxy: bench.haproxy });
      }
      const servers = spec.members.map(({ address, port }, at) => `    server s${at} ${address}:${port}\n`);
      const byHand = `
frontend by-hand
    mode http
    bind ${spec.vip}:${PORTS.byHand}
    option forwardfor
    use_backend api if { req.hdr(host) -i ${HOST} }
backend api
    mode http
    balance roundrobin
${servers.join('')}`;
      await startHaproxy(scratch, 'by-hand', bench.haproxy, byHand, { globals: '    maxconn 9000\n' });
      const headers = [`Host: ${HOST}`];
      for (const port of Object.values(PORTS))
        await until(
          `Port ${port} answers`,
          async () => (await request(spec.vip, port, 1_000, undefined, HOST)).failure === '',
          { every: 100 },
        );

      const rates = { one: [] as number[], many: [] as number[], byHand: [] as number[] };
      const rounds = bench.scaled(ROUNDS, 2);
      for (let round = 1; round <= rounds; round++) {
        bench.report(`route-cost: round ${round} of ${rounds}`);
        const turns = Object.keys(rates) as (keyof typeof rates)[];
        if (round % 2 === 0) turns.reverse();
        for (const turn of turns) rates[turn].push(await wrk(spec.vip, PORTS[turn], headers));
      }
      const ratioOf = (some: readonly number[]): number =>
        median(some.map((rate, at) => rate / (rates.byHand[at] ?? Number.NaN)));
      const [one, many] = [ratioOf(rates.one), ratioOf(rates.many)];
      bench.measured(
        row({
          name: 'route-cost',
          value: median(rates.one),
          unit: 'requests/s',
          target: '≥ 0.90 × a hand-written `use_backend`, with 10,000 hostnames ≥ 0.88 ×',
          met: one >= 0.9 && many >= 0.88,
          reference: { name: 'hand-written', value: median(rates.byHand) },
          ratio: one,
          details: {
            'with 10,000 hostnames': median(rates.many),
            'ratio with 10,000 hostnames': many,
            hostnames: hosts + 1,
            rounds,
          },
        }),
      );
    }),
};
