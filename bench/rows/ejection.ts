// `ejection`: one of five ready members answers 500, hangs, or resets its connections, behind ten routes without retries; the
// most requests that fail for one fault, of a client that sends one after the other, and the time from the end of the fault to
// the member's next request. Reference: `observe layer7` with `on-error mark-down` and a check by HTTP in a file by hand.

import { startAgent } from '../support/agent.ts';
import { FAULTS, type FaultyMember, startFaultyMember, succeeds } from '../support/faulty-members.ts';
import { GatewayFolder, route } from '../support/gateway.ts';
import { startHaproxy } from '../support/haproxy.ts';
import { Addresses, nameOf, services } from '../support/objects.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { pause, until } from '../support/until.ts';

const MEMBER_PORT = 9000;
const [PORT, BY_HAND_PORT] = [8080, 8081];
const MEMBERS = 5;
const PATHS = Array.from({ length: 10 }, (_, at) => `/route${at}`);
/** A time-out of one second, so that a member that hangs fails soon. */
const ANNOTATIONS = { 'timeout-server': '1s' };
const REQUESTS = 200;
/** After which a rest begins with the shortest again is a minute: rounds of one fault have longer and longer rests. */
const ROUNDS = 2;
const MOST_WAIT_MS = 10_000;

interface Result {
  readonly failed: number;
  /** Milliseconds from the end of the fault to the next request of the member. */
  readonly back: number;
}

export const ejection: Benchmark = {
  rows: ['ejection'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const [spec] = services(new Addresses(), 1, MEMBERS, { port: 80, memberPort: MEMBER_PORT });
      if (spec === undefined) throw new Error('No Service');
      const members = await Promise.all(spec.members.map(startFaultyMember));
      const folder = new GatewayFolder(scratch.path('m'), spec.vip, PORT, [
        { ...spec, annotations: ANNOTATIONS },
      ]);
      folder.write('routes', [withPaths(route('shop', [], spec), nameOf(spec), spec.port)]);
      const agent = startAgent(scratch, folder.path, { haproxy: bench.haproxy });
      const servers = spec.members.map(
        ({ address, port }, at) =>
          `    server s${at} ${address}:${port} check inter 500ms rise 1 fall 1 observe layer7 error-limit 3 on-error mark-down\n`,
      );
      const body = `
listen by-hand
    mode http
    bind ${spec.vip}:${BY_HAND_PORT}
    balance roundrobin
    timeout server 1s
    option httpchk GET /
    http-check expect status 100-499
${servers.join('')}`;
      await startHaproxy(scratch, 'by-hand', bench.haproxy, body);
      const reloads = async (): Promise<number> => agent.counter('headgate_reloads_total');
      for (const port of [PORT, BY_HAND_PORT])
        await until(`Port ${port} serves`, () => succeeds(spec.vip, port, '/route0'));
      const before = await reloads();
      const results: Record<'agent' | 'byHand', Result[]> = { agent: [], byHand: [] };
      for (let round = 0; round < bench.scaled(ROUNDS, 1); round++)
        for (const [at, fault] of FAULTS.entries()) {
          bench.report(`ejection: a member ${fault}`);
          // Another one each time, because one that fails again soon rests longer.
          const member = members[(round * FAULTS.length + at) % MEMBERS] as FaultyMember;
          for (const [name, port] of [
            ['agent', PORT],
            ['byHand', BY_HAND_PORT],
          ] as const) {
            member.fault = fault;
            const failed = await failures(spec.vip, port);
            member.fault = undefined;
            results[name].push({ failed, back: await untilUsed(member, spec.vip, port) });
            await pause(600);
          }
        }
      for (const { server } of members) {
        server.closeAllConnections();
        server.close();
      }
      const most = (of: readonly Result[]): number => Math.max(...of.map(({ failed }) => failed));
      const back = (of: readonly Result[]): number[] => of.map((each) => each.back);
      const [failed, late] = [most(results.agent), Math.max(...back(results.agent))];
      const made = (await reloads()) - before;
      bench.measured(
        row({
          name: 'ejection',
          value: failed,
          unit: 'failed requests',
          target: '≤ 3 failed requests for each fault; requests again ≤ 1 s after its end; no reload',
          met: failed <= 3 && late <= 1_000 && made === 0,
          reference: { name: '`observe layer7` by hand: failed requests', value: most(results.byHand) },
          others: [
            { name: 'by hand: ms to requests again, median', value: median(back(results.byHand)) },
            { name: 'by hand: ms to requests again, most', value: Math.max(...back(results.byHand)) },
          ],
          details: {
            'ms to requests again, median': median(back(results.agent)),
            'ms to requests again, most': late,
            faults: results.agent.length,
            'requests for each': REQUESTS,
            reloads: made,
          },
        }),
      );
    }),
};

/** A rule for each path. */
function withPaths(
  object: Readonly<Record<string, unknown>>,
  name: string,
  port: number,
): Readonly<Record<string, unknown>> {
  const rules = PATHS.map((value) => ({
    matches: [{ path: { type: 'PathPrefix', value } }],
    backendRefs: [{ name, port }],
  }));
  return { ...object, spec: { ...(object.spec as object), rules } };
}

async function failures(address: string, port: number): Promise<number> {
  let failed = 0;
  for (let at = 0; at < REQUESTS; at++)
    if (!(await succeeds(address, port, PATHS[at % PATHS.length] as string))) failed++;
  return failed;
}

async function untilUsed(member: FaultyMember, address: string, port: number): Promise<number> {
  const before = member.requests;
  const began = performance.now();
  while (member.requests === before && performance.now() - began < MOST_WAIT_MS)
    await succeeds(address, port, PATHS[0] as string);
  return performance.now() - began;
}
