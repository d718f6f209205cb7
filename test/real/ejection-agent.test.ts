// Members that fail clients, with the whole agent: what a Service says of them, with a connection log, in mode tcp, and beside a
// health monitor.

import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { type FaultyMember, startFaultyMember, statusOf } from '../support/traffic/faulty-members.ts';
import { connectTo } from '../support/traffic/sockets.ts';
import { MEMBER_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true });

/**
 * An agent that has run for 50 ms takes longer for its first lines than a client for some requests; how many fail at most is
 * counted in ejection.test.ts. Of the requests in these tests 15 or 20 would fail if no member rested.
 */
const MOST_FAILURES = 12;

/** Four members, of which the first one will fail. */
async function serving(
  t: ExecutionContext<unknown>,
  annotations: Readonly<Record<string, string>>,
  flags: readonly string[] = [],
) {
  const host = await TestHost.create(t);
  const places = [11, 12, 13, 14].map((last) => host.address(last));
  const members = await Promise.all(places.map((address) => startFaultyMember(t, address, MEMBER_PORT)));
  await host.serve({ members: places, annotations });
  const agent = await host.start(flags);
  const [bad] = members as [FaultyMember];
  const failures = async (count: number): Promise<number> => {
    let failed = 0;
    for (let at = 0; at < count; at++) if ((await statusOf(host.place(), '/shop')) !== 200) failed++;
    return failed;
  };
  /** What `why` says of the member. */
  const said = async (): Promise<string> => {
    const { stdout } = await host.command('why', ['default/web']);
    return stdout.split('\n').find((line) => line.includes(bad.place)) ?? stdout;
  };
  return { host, agent, bad, failures, said };
}

test.serial('`why`, status, metrics and log say that a member rests', async (t) => {
  const { host, agent, bad, failures, said } = await serving(t, { mode: 'http' });
  bad.fault = 'answers 500';
  t.true((await failures(80)) <= MOST_FAILURES);
  t.regex(await said(), /ready {2}ERROR .*it rests, because of 3 errors in a row: it answered 500/);
  t.regex((await host.command('why', ['default/web'])).stdout, /^Service default\/web: .*DEGRADED/m);
  const metric = await agent.metrics();
  t.is(metric('headgate_ejections_total', { result: 'rested' }), 1);
  t.true(agent.hasLogged('A member rests, because it fails clients'));
  bad.fault = undefined;
  await host.soon('it has come back', async () => agent.hasLogged('A member comes back'));
  await host.soon('it is well', async () => !(await said()).includes('rests'));
  t.is(await failures(40), 0);
  t.is(await host.reloads(), 0);
});

for (const log of ['errors', 'all'])
  for (const format of ['json', 'haproxy'])
    test.serial(`A member rests beside a connection log of ${log} in the format ${format}`, async (t) => {
      const flags = ['--connection-log-target', 'socket:/nonexistent', '--connection-log-format', format];
      const { bad, failures, said } = await serving(t, { mode: 'http', log }, flags);
      bad.fault = 'resets';
      t.true((await failures(60)) <= MOST_FAILURES);
      t.regex(await said(), /it rests, because of 3 errors in a row: it reset the connection/);
    });

test.serial('In mode tcp a member rests only if the Service asks for it', async (t) => {
  const { bad, host, said } = await serving(t, {});
  bad.fault = 'resets';
  const connect = async (): Promise<void> => {
    const { address, port } = host.place();
    const socket = (await connectTo(address, port)).resume();
    socket.write('GET /shop HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    await new Promise((resolve) => socket.once('close', resolve));
  };
  for (let at = 0; at < 40; at++) await connect();
  t.notRegex(await said(), /rests/);
  await host.serve({
    members: [11, 12, 13, 14].map((last) => host.address(last)),
    annotations: { 'eject-after': '2' },
  });
  await host.until('it rests', async () => {
    for (let at = 0; at < 8; at++) await connect();
    return (await said()).includes('it rests, because of 2 errors in a row: it reset the connection');
  });
  bad.fault = undefined;
  await host.soon('it has come back', async () => !(await said()).includes('rests'));
});

test.serial('A member with a health monitor rests until the monitor says that it is well', async (t) => {
  const monitor = {
    'health-monitor': 'http',
    'health-monitor-interval': '500ms',
    'health-monitor-rise': '1',
  };
  const { bad, failures, said } = await serving(t, { mode: 'http', ...monitor });
  bad.fault = 'answers 500';
  t.true((await failures(80)) <= MOST_FAILURES);
  t.regex(await said(), /ERROR/);
  bad.fault = undefined;
  const before = bad.requests;
  const began = performance.now();
  while (bad.requests === before && performance.now() - began < 10_000) await failures(1);
  t.true(performance.now() - began < 2_000);
});
