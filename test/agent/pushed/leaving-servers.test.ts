import test from 'ava';
import type { Command } from '../../../agent/haproxy/socket/commands.ts';
import type { Reply } from '../../../agent/haproxy/socket/reply.ts';
import { LeavingServers } from '../../../agent/pushed/leaving-servers.ts';
import { readServerLine } from '../../../agent/pushed/text/server-line.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';

const BUSY: Reply = { ok: false, kind: 'busy', text: 'Server still has connections attached to it' };

function leaving(reply: () => Reply) {
  const clock = new FakeClock();
  const sent: string[] = [];
  const servers = new LeavingServers({
    clock,
    send: async (commands, done) => {
      const batch: readonly Command[] = commands();
      for (const command of batch) if (command.kind === 'DeleteServer') sent.push(command.server);
      done(batch.map(reply));
    },
  });
  return { clock, sent, servers };
}

const line = (name: string) => readServerLine(`server ${name} 10.0.0.1:80 weight 1`);

test('LeavingServers deletes a server when no attempt to connect to it can be under way', async (t) => {
  const { clock, sent, servers } = leaving(() => ({ ok: true }));
  servers.add('pool', line('m1'), 5_000);
  await clock.advance(6_000);
  t.deepEqual(sent, []);
  await clock.advance(200);
  t.deepEqual(sent, ['m1']);
  t.is(servers.size, 0);
});

test('LeavingServers asks again for a server with connections, and ends none of them', async (t) => {
  let reply: Reply = BUSY;
  const { clock, sent, servers } = leaving(() => reply);
  servers.add('pool', line('m1'), 0);
  await clock.advance(1_200);
  await clock.advance(2_000);
  t.deepEqual(sent, ['m1', 'm1']);
  t.is(servers.lines.get('pool')?.get('m1')?.name, 'm1');
  reply = { ok: true };
  await clock.advance(30_000);
  t.is(servers.size, 0);
});

test('LeavingServers leaves a server alone that is a member again', async (t) => {
  const { clock, sent, servers } = leaving(() => ({ ok: true }));
  servers.add('pool', line('m1'), 0);
  servers.forget('pool', 'm1');
  await clock.advance(60_000);
  t.deepEqual(sent, []);
});

test('LeavingServers deletes many in portions', async (t) => {
  const { clock, sent, servers } = leaving(() => ({ ok: true }));
  for (let at = 0; at < 40; at++) servers.add('pool', line(`m${at}`), 0);
  for (let portion = 0; portion < 3; portion++) await clock.advance(1_200);
  t.is(sent.length, 40);
});
