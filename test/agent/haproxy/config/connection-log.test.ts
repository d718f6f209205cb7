import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava from 'ava';
import { parseLogTarget } from '../../../../agent/base/log-target.ts';
import { logWords } from '../../../../agent/haproxy/config/connection-log.ts';
import { memberNames } from '../../../../agent/haproxy/config/log-names.ts';
import { logWriterText } from '../../../../agent/haproxy/config/log-writer-text.ts';
import { runCommand } from '../../../../agent/host/run-command.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { haproxyExecutable } from '../../../support/haproxy/haproxy.ts';
import { endpoint, service, slice } from '../../../support/values/build.ts';
import { listenerOf, translated } from '../../../support/values/translated.ts';

const test = requires(ava, { haproxy: true });

test('HAProxy takes each kind of target, and the configuration of the log writer', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-log-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const targets = ['journald', '192.0.2.1:514', '[2001:db8::1]:514', 'socket:/dev/log', 'file:/c.log'];
  const lines = targets.map((text) => {
    const target = parseLogTarget(text);
    return target === undefined ? '' : `    log ${logWords(target, '/run/writer.sock')}\n`;
  });
  const timeouts = '    timeout client 1s\n    timeout server 1s\n    timeout connect 1s\n';
  const texts = [
    `global\n    maxconn 100\nlisten a\n    bind 127.0.0.1:8080\n${timeouts}${lines.join('')}`,
    logWriterText({ logSocket: join(folder, 'log.sock'), socketMode: '660' }, 'daemon', 'daemon'),
    logWriterText({ logSocket: join(folder, 'log.sock'), socketMode: '600' }, '', ''),
  ];
  for (const text of texts) {
    const path = join(folder, 'haproxy.cfg');
    await writeFile(path, text);
    const { exitCode, stderr } = await runCommand(haproxyExecutable, ['-c', '-dW', '-f', path], {
      timeout: 30_000,
    });
    t.is(exitCode, 0, stderr);
  }
});

test('memberNames() has the pod or node of each member of a listener with a log', (t) => {
  const endpoints = [
    endpoint('10.0.0.1', { target: 'Pod/web-0' }),
    endpoint('10.0.0.2', { target: 'VirtualMachineInstance/vm' }),
    endpoint('10.0.0.3', { target: '' }),
  ];
  const listener = listenerOf(translated([service(), slice({ endpoints })], { connectionLog: 'all' }));
  t.deepEqual(memberNames(listener), [
    ['10.0.0.1:8080@pod@default:web:tcp:80:v4', 'web-0'],
    ['10.0.0.2:8080@pod@default:web:tcp:80:v4', 'vm'],
  ]);
  const [member] = listener.pool.members;
  if (member === undefined) throw new Error('No member');
  const pool = { ...listener.pool, members: [{ ...member, target: 'Node/n-1' }] };
  t.deepEqual(memberNames({ ...listener, pool }), [['10.0.0.1:8080@node@default:web:tcp:80:v4', 'n-1']]);
  t.deepEqual(memberNames({ ...listener, log: 'none' }), []);
});
