// `route-change`: an HTTPRoute gets another Service, with 5,000 other routes; the time from the end of the write of its manifest
// to the first answer of the other Service, while others send requests by the same route. Reference: one `set map` that is sent
// straight to the socket of a HAProxy with a hand-written map, in turns.

import { writeFileSync } from 'node:fs';
import { askOnce } from '../../agent/haproxy/socket/ask-once.ts';
import { startAgent } from '../support/agent.ts';
import { GatewayFolder, route } from '../support/gateway.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { startLoad } from '../support/load.ts';
import { Addresses, type ServiceSpec, services } from '../support/objects.ts';
import { untilAnswered } from '../support/request.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median, percentile } from '../support/statistics.ts';
import { pause } from '../support/until.ts';

const MEMBER_PORT = 9000;
const [PORT, BY_HAND_PORT] = [8080, 8081];
const ROUTES_PER_FILE = 500;
const BETWEEN_MS = 200;
/** Connections a second. */
const RATE = 200;

export const routeChange: Benchmark = {
  rows: ['route-change'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const member = responder(`0.0.0.0:${MEMBER_PORT}`);
      await startHaproxy(scratch, 'member', bench.haproxy, member.body, { globals: member.globals });
      const [one, other] = services(new Addresses(), 2, 1, { port: 80, memberPort: MEMBER_PORT });
      if (one === undefined || other === undefined) throw new Error('No Services');
      const folder = new GatewayFolder(scratch.path('m'), one.vip, PORT, [one, other]);
      const routes = bench.scaled(5_000, 50);
      for (let from = 0; from < routes; from += ROUTES_PER_FILE)
        folder.write(
          `others-${from}`,
          Array.from({ length: Math.min(ROUTES_PER_FILE, routes - from) }, (_, at) =>
            route(`other-${from + at}`, [`h${from + at}.example.org`], at % 2 === 0 ? one : other),
          ),
        );
      const lead = (to: ServiceSpec): void => folder.write('changing', [route('changing', [], to)]);
      lead(one);
      const agent = startAgent(scratch, folder.path, { haproxy: bench.haproxy });
      const answerOf = ({ members }: ServiceSpec): string => members[0]?.address ?? '';
      await untilAnswered(one.vip, PORT, answerOf(one), performance.now(), { every: 100 });

      const map = scratch.path('by-hand.map');
      const leadByHand = await servedByHand(scratch, bench.haproxy, map, [one, other]);
      const samples = { agent: [] as number[], byHand: [] as number[] };
      const count = bench.scaled(100, 3);
      const reloads = await agent.counter('headgate_reloads_total');
      const load = startLoad(scratch);
      let isOver = false;
      let requests = 0;
      const failures: string[] = [];
      const loading = (async () => {
        while (!isOver) {
          const result = await load({ addresses: [one.vip], port: PORT, rate: RATE, seconds: 1 });
          requests += result.requests;
          failures.push(...result.failures.map(({ why }) => why));
        }
      })();
      bench.report(`route-change: ${count} changes each`);
      for (let at = 0; at < count; at++) {
        const to = at % 2 === 0 ? other : one;
        await pause(BETWEEN_MS);
        lead(to);
        samples.agent.push(await untilAnswered(one.vip, PORT, answerOf(to), performance.now()));
        await pause(BETWEEN_MS);
        const began = performance.now();
        await leadByHand(to);
        samples.byHand.push(await untilAnswered(one.vip, BY_HAND_PORT, answerOf(to), began));
      }
      isOver = true;
      await loading;
      const made = (await agent.counter('headgate_reloads_total')) - reloads;
      const [p50, p99] = [median(samples.agent), percentile(samples.agent, 0.99)];
      bench.measured(
        row({
          name: 'route-change',
          value: p50,
          unit: 'ms',
          target: 'p50 ≤ 8 ms, p99 ≤ 30 ms, no failed request, no reload',
          met: p50 <= 8 && p99 <= 30 && made === 0 && failures.length === 0,
          reference: { name: '`set map` by hand, p50', value: median(samples.byHand) },
          others: [{ name: '`set map` by hand, p99', value: percentile(samples.byHand, 0.99) }],
          details: {
            p99,
            samples: samples.agent.length,
            reloads: made,
            routes: routes + 1,
            requests,
            failed: failures.length,
          },
        }),
      );
    }),
};

/** Resolves with a function that leads all requests to a Service. */
async function servedByHand(
  scratch: Parameters<typeof startHaproxy>[0],
  haproxy: string,
  map: string,
  all: readonly ServiceSpec[],
): Promise<(to: ServiceSpec) => Promise<string>> {
  const backends = all.map(
    ({ index, members }) => `
backend b${index}
    mode http
    server s ${members[0]?.address}:${members[0]?.port}
`,
  );
  const body = `
frontend by-hand
    mode http
    bind ${all[0]?.vip}:${BY_HAND_PORT}
    use_backend %[str(all),map_str(${map})]
${backends.join('')}`;
  writeFileSync(map, `all b${all[0]?.index}\n`);
  const { adminSocket } = await startHaproxy(scratch, 'by-hand', haproxy, body);
  return ({ index }) => askOnce(adminSocket, `set map ${map} all b${index}`);
}
