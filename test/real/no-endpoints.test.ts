// Services without endpoints: connections are refused, as by kube-proxy, until a member comes.

import { connect } from 'node:net';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { type HostOptions, TestHost } from '../support/host/agent.ts';
import { startMembers } from '../support/traffic/members.ts';
import { Client } from '../support/traffic/traffic.ts';
import { VIP_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true });

const listener = (name: string): string => `default:${name}:tcp:${VIP_PORT}:v4`;

async function created(t: ExecutionContext<unknown>, options: HostOptions = {}): Promise<TestHost> {
  const host = await TestHost.create(t, { flags: ['--reload-interval', '100ms'], ...options });
  await startMembers(t, host, 2);
  return host;
}

/** What a new connection to the VIP gets: `accepted`, or the error's code. */
function attempt(host: TestHost, last = 1): Promise<string> {
  const { address, port } = host.place(last);
  return new Promise((resolve) => {
    const socket = connect({ host: address, port });
    socket.once('connect', () => resolve('accepted'));
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code ?? ''));
    socket.once('close', () => resolve('closed'));
    socket.once('connect', () => socket.destroy());
  });
}

function refused(host: TestHost, last = 1): Promise<void> {
  return host.soon('connections are refused', async () => (await attempt(host, last)) === 'ECONNREFUSED');
}

// Conformance: no ready endpoint
test.serial(
  'Without an endpoint connections are refused, those that are open continue, and a member serves without a reload',
  async (t) => {
    const host = await created(t);
    await host.serve();
    const agent = await host.start();
    const open = await Client.connect(host.place());
    t.is(await open.ask(), host.address(11));
    for (let round = 0; round < 3; round++) {
      await host.serve({ members: [] });
      await refused(host);
      t.is(await open.ask(), host.address(11));
      await host.serve({ members: [host.address(12)] });
      await host.soon('it is served', () => host.answers());
    }
    open.close();
    t.is(await host.reloads(), 0);
    await host.serve({ members: [] });
    await refused(host);
    const read = await agent.metrics();
    t.is(read('headgate_listener_up', { service: 'web' }), 0);
  },
);

test.serial(
  'Connections are refused after a reload and a restart of the agent, and no fault is reported',
  async (t) => {
    const host = await created(t);
    await host.serve({ members: [] });
    const first = await host.start(['--audit-interval', '1s']);
    await refused(host);
    await host.serve({ name: 'other', address: host.address(2) });
    await host.until('the other Service is served after a reload', () => host.answers(2));
    await refused(host);
    t.is((await host.command('status')).status, 0);
    await first.kill();
    t.is(await attempt(host), 'ECONNREFUSED');
    const second = await host.start(['--audit-interval', '1s']);
    t.is(await attempt(host), 'ECONNREFUSED');
    // Another process changes it.
    t.is(await host.haproxy(`enable frontend ${listener('web')}`), '');
    t.is(await attempt(host), 'accepted');
    await host.until('it refuses again', async () => (await attempt(host)) === 'ECONNREFUSED');
    t.is(await host.haproxy(`disable frontend ${listener('other')}`), '');
    await refused(host, 2);
    await host.until('it serves again', () => host.answers(2));
    t.true(second.hasLogged('HAProxy differs from the state that the agent gave it'));
    await host.serve();
    await host.soon('it is served', () => host.answers());
  },
);

test.serial(
  'A new Service without an endpoint refuses in the landing, and after its move to the main HAProxy',
  async (t) => {
    const host = await created(t, {
      landing: true,
      flags: ['--reload-interval', '100ms', '--landing-rest', '2s'],
    });
    await host.serve();
    await host.start();
    await host.serve({ name: 'new', address: host.address(2), members: [] });
    await host.until('it has landed', async () => (await host.status()).haproxy.landed === 1);
    await refused(host, 2);
    await host.serve({ name: 'new', address: host.address(2) });
    await host.soon('it is served', () => host.answers(2));
    await host.serve({ name: 'new', address: host.address(2), members: [] });
    await refused(host, 2);
    await host.until('it is in the main HAProxy', async () => (await host.status()).haproxy.landed === 0);
    await refused(host, 2);
    await host.serve({ name: 'new', address: host.address(2) });
    await host.soon('it is served', () => host.answers(2));
    t.is((await host.command('status')).status, 0);
  },
);

test.serial('Without an endpoint a listener of HTTP answers 503', async (t) => {
  const host = await created(t);
  await host.serve({ members: [], annotations: { mode: 'http' } });
  await host.start();
  const { address, port } = host.place();
  t.is((await fetch(`http://${address}:${port}/`)).status, 503);
});
