// `auth-cost`: wrk through an HTTPRoute whose requests a service must let in, and through a hand-written `use_backend` to the same
// members. The round trip of the question is a second request as the hand-written file forwards it; what is left of the
// processor's time is the price of asking. The two take turns in changing order.

import { chmodSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { startAgent } from '../support/agent.ts';
import { GatewayFolder, route } from '../support/gateway.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { Addresses, nameOf, services } from '../support/objects.ts';
import { request } from '../support/request.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { until } from '../support/until.ts';
import { processorTime } from '../support/usage.ts';
import { wrk } from '../support/wrk.ts';

const MEMBER_PORT = 9000;
const PORTS = { asked: 8080, byHand: 8081 } as const;
const ROUNDS = 12;
const HOST = 'api.example.org';
const MOST_MICROSECONDS = 120;

export const authCost: Benchmark = {
  rows: ['auth-cost'],
  run: (bench) =>
    withScratch(async (scratch) => {
      // HAProxy connects to its own socket after it has become another user.
      for (const folder of [dirname(scratch.directory), scratch.directory])
        chmodSync(folder, statSync(folder).mode | 0o011);
      const member = responder(`0.0.0.0:${MEMBER_PORT}`);
      await startHaproxy(scratch, 'member', bench.haproxy, member.body, { globals: member.globals });
      const [spec] = services(new Addresses(), 1, 2, { port: 80, memberPort: MEMBER_PORT });
      if (spec === undefined) throw new Error('No Service');
      const folder = new GatewayFolder(scratch.path('m'), spec.vip, PORTS.asked, [spec]);
      const http = { allowedHeaders: ['Cookie'], allowedResponseHeaders: ['X-User'] };
      const externalAuth = {
        protocol: 'HTTP',
        backendRef: { name: nameOf(spec), port: spec.port },
        http,
      };
      const filters = [{ type: 'ExternalAuth', externalAuth }];
      folder.write('routes', [route('api', [HOST], spec, 'edge', filters)]);
      const agent = startAgent(scratch, folder.path, { haproxy: bench.haproxy });
      const servers = spec.members.map(({ address, port }, at) => `    server s${at} ${address}:${port}\n`);
      const text = `
frontend by-hand
    mode http
    bind ${spec.vip}:${PORTS.byHand}
    option forwardfor
    use_backend api if { req.hdr(host) -i ${HOST} }
backend api
    mode http
    balance roundrobin
${servers.join('')}`;
      const byHand = await startHaproxy(scratch, 'by-hand', bench.haproxy, text, {
        globals: '    maxconn 9000\n',
      });
      for (const port of Object.values(PORTS))
        await until(
          `Port ${port} answers`,
          async () => (await request(spec.vip, port, 1_000, undefined, HOST)).failure === '',
          { every: 100 },
        );

      const pidsOf = { asked: () => agent.haproxyPids(), byHand: () => [byHand.pid] };
      const timeOf = (turn: keyof typeof PORTS): number =>
        pidsOf[turn]().reduce((sum, pid) => sum + processorTime(pid), 0);
      const rates = { asked: [] as number[], byHand: [] as number[] };
      const costs = { asked: [] as number[], byHand: [] as number[] };
      const rounds = bench.scaled(ROUNDS, 2);
      for (let round = 1; round <= rounds; round++) {
        bench.report(`auth-cost: round ${round} of ${rounds}`);
        const turns = Object.keys(PORTS) as (keyof typeof PORTS)[];
        if (round % 2 === 0) turns.reverse();
        for (const turn of turns) {
          const before = timeOf(turn);
          const rate = await wrk(spec.vip, PORTS[turn], [`Host: ${HOST}`, 'Cookie: session=0123456789']);
          rates[turn].push(rate);
          costs[turn].push(((timeOf(turn) - before) * 1_000) / rate);
        }
      }
      const own = costs.asked.map((cost, at) => cost - 2 * (costs.byHand[at] ?? Number.NaN));
      bench.measured(
        row({
          name: 'auth-cost',
          value: median(own),
          unit: 'µs',
          target: `≤ ${MOST_MICROSECONDS} µs of HAProxy's processor for each request, beside the question's round trip`,
          met: median(own) <= MOST_MICROSECONDS,
          reference: { name: 'a request through a file by hand', value: median(costs.byHand) },
          details: {
            'µs of HAProxy for each request that is asked about': median(costs.asked),
            'requests/s': median(rates.asked),
            'requests/s by hand': median(rates.byHand),
            rounds,
          },
        }),
      );
    }),
};
