// A namespace cannot take all connections of HAProxy: its further ones are closed, its owners are named, others are served.

import type { Socket } from 'node:net';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { startMembers } from '../support/traffic/members.ts';
import { connectTo } from '../support/traffic/sockets.ts';
import { type Json, VIP_PORT, webObjects } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true });

const LIMIT = 20;

test.serial(
  'A namespace with all its connections is refused more and named, and others are served',
  async (t) => {
    const host = await TestHost.create(t);
    await startMembers(t, host, 1);
    const member = host.address(11);
    const of = (namespace: string, name: string, last: number): readonly Json[] =>
      webObjects({ name, address: host.address(last), members: [member] }).map((object) => ({
        ...object,
        metadata: { ...(object.metadata as Json), namespace },
      }));
    await host.write('all.yaml', [
      ...of('team', 'web', 1),
      ...of('team', 'api', 2),
      ...of('default', 'web', 3),
    ]);
    await host.start(['--max-connections-per-namespace', String(LIMIT), '--health-read-interval', '500ms']);
    await host.until(
      'all are served',
      async () => (await host.answers(1)) && (await host.answers(2)) && host.answers(3),
    );
    const reasons = async (service: string) => (await host.why(service)).problems.map(({ reason }) => reason);
    t.deepEqual(await reasons('team/web'), []);

    // HAProxy counts a connection, and its end, a moment after the kernel.
    const counted = async (connections: number) =>
      host.until(`${connections} are counted`, async () => {
        const [, now = '0'] =
          /key=team .*conn_cur=(\d+)/.exec(await host.haproxy('show table headgate:namespaces')) ?? [];
        return Number(now) === connections;
      });
    await counted(0);
    const open: Socket[] = [];
    t.teardown(() => {
      for (const socket of open) socket.destroy();
    });
    for (let count = 0; count < LIMIT; count++)
      open.push(await connectTo(host.address(1 + (count % 2)), VIP_PORT));
    await counted(LIMIT);
    t.false(await host.answers(2), 'one more');
    t.true(open.every(({ destroyed }) => !destroyed));
    t.true(await host.answers(3), 'another namespace');
    for (const service of ['team/web', 'team/api'])
      await host.until('it is named', async () => (await reasons(service)).includes('ShareExceeded'));
    const { problems } = await host.why('team/web');
    t.is(
      problems[0]?.message,
      'Refuses new connections: the Services of namespace "team" have the 20 connections that a namespace may have together; find what keeps them open, or raise the setting maxConnectionsPerNamespace',
    );
    t.deepEqual(await reasons('default/web'), []);

    for (const socket of open) socket.destroy();
    await host.until('no problem is left', async () => (await reasons('team/web')).length === 0);
    t.true(await host.answers(1));
  },
);
