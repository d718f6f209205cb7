// The example of a proxy for /metrics, with a real HAProxy in front of an agent.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import ava from 'ava';
import { runCommand } from '../../agent/host/run-command.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { haproxyExecutable } from '../support/haproxy/haproxy.ts';
import { TestHost } from '../support/host/agent.ts';
import { Authority } from '../support/traffic/tls.ts';

const test = requires(ava, { haproxy: true, programs: ['openssl'] });

test('The example of a proxy gives /metrics by TLS to those who know the password', async (t) => {
  const host = await TestHost.create(t);
  const agent = await host.start();
  const authority = await Authority.create(t);
  const { cert, key } = await authority.issue({ names: ['lb-1.example.org'] });
  const pem = join(host.directory, 'metrics.pem');
  await writeFile(pem, cert + key);
  const port = await freePort();
  const own = new URL(agent.url ?? '').host;
  const example = await readFile('examples/metrics-proxy/haproxy.cfg', 'utf8');
  const proxy = (hash: string) =>
    example
      .replace(' password *', ` password ${hash}`)
      .replace('bind :9443', `bind 127.0.0.1:${port}`)
      .replace('/etc/haproxy/metrics.pem', pem)
      .replaceAll('127.0.0.1:9180', own);
  const ask = (path: string, password: string) =>
    new Promise<{ readonly status: number | undefined; readonly text: string }>((resolve, reject) => {
      const server = { host: '127.0.0.1', port, servername: 'lb-1.example.org', ca: authority.cert };
      request({ ...server, path, auth: `prometheus:${password}`, agent: false }, (response) => {
        let text = '';
        response.on('data', (data) => {
          text += data;
        });
        response.on('end', () => resolve({ status: response.statusCode, text }));
      })
        .on('error', reject)
        .end();
    });

  const config = join(host.directory, 'proxy.cfg');
  const start = async (hash: string) => {
    await writeFile(config, proxy(hash));
    const checked = await runCommand(haproxyExecutable, ['-c', '-f', config], { timeout: 30_000 });
    t.is(checked.exitCode, 0, checked.stderr);
    t.notRegex(checked.stderr, /WARNING|ALERT/);
    const child = spawn(haproxyExecutable, ['-db', '-f', config], { stdio: 'ignore' });
    t.teardown(() => child.kill('SIGKILL'));
    await host.until('the proxy listens', () =>
      ask('/', 'secret').then(
        () => true,
        () => false,
      ),
    );
    return async () => {
      child.kill('SIGTERM');
      await once(child, 'exit');
    };
  };

  const stop = await start('*');
  for (const password of ['', '*', '*0', 'secret']) t.is((await ask('/metrics', password)).status, 401);
  await stop();

  const { stdout } = await runCommand('openssl', ['passwd', '-6', 'secret'], { timeout: 30_000 });
  await start(stdout.trim());
  t.is((await ask('/metrics', 'other')).status, 401);
  const scrape = await ask('/metrics', 'secret');
  t.is(scrape.status, 200);
  t.regex(scrape.text, /^headgate_build_info\{/m);
  t.is((await ask('/readyz', 'secret')).status, 200);
  t.is((await ask('/', 'secret')).status, 404);
});
