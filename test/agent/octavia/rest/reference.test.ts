// The answers of the REST API beside those of Octavia's own agent.

import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ava, { type ExecutionContext } from 'ava';
import { freePort } from '../../../support/basics/free-port.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { until } from '../../../support/basics/until.ts';
import { AMPHORA_ID, AmphoraWorld, type Answer } from '../../../support/octavia/amphora-world.ts';

// Octavia's agent starts the installed HAProxy.
const test = requires(ava, { programs: ['haproxy', 'openssl', 'octavia-worker'] });

const LB = '11111111-2222-3333-4444-555555555555';
const LISTENER = '66666666-2222-3333-4444-555555555555';
const LB_PATH = `/1.0/loadbalancer/${LB}`;
const MAC = 'fa:16:3e:00:00:01';
const TEXT = `global
    daemon
    stats socket /tmp/x.sock mode 0666 level user
defaults
    mode http
    timeout client 1s
    timeout server 1s
    timeout connect 1s
frontend ${LISTENER}
    bind 127.0.0.1:18080
    mode http
    option forwardfor
`;

type Question = readonly [method: string, path: string, body?: string];

/** In this order; what a question leaves behind is there for the next one. */
const QUESTIONS: readonly Question[] = [
  ['GET', '/'],
  ['GET', '//'],
  ['GET', '/1.0/nothing'],
  ['DELETE', '/1.0/info'],
  ['GET', '/1.0/listeners'],
  ['GET', `${LB_PATH}/haproxy`],
  ['PUT', `${LB_PATH}/reload`],
  ['PUT', `${LB_PATH}/frob`],
  ['GET', `${LB_PATH}/certificates/abc.pem`],
  ['PUT', `${LB_PATH}/certificates/abc.pem`, 'PEM'],
  ['GET', `${LB_PATH}/certificates/abc.pem`],
  ['DELETE', `${LB_PATH}/certificates/abc.pem`],
  ['DELETE', `${LB_PATH}/certificates/abc.pem`],
  ['PUT', `${LB_PATH}/certificates/abc.txt`, 'PEM'],
  ['PUT', `/1.0/loadbalancer/${AMPHORA_ID}/${LB}/haproxy`, TEXT],
  ['GET', `${LB_PATH}/haproxy`],
  ['GET', '/1.0/listeners'],
  ['PUT', `${LB_PATH}/frob`],
  ['GET', `/1.0/listeners/${LISTENER}/udp_listener`],
  ['DELETE', `/1.0/listeners/${LISTENER}`],
  ['DELETE', `/1.0/listeners/${LB}`],
  ['GET', '/1.0/listeners'],
  ['PUT', '/1.0/vrrp/frob'],
  ['GET', '/1.0/interface/x'],
  ['POST', '/1.0/plug/vip/10.0.0.10', '{}'],
  ['POST', '/1.0/plug/vip/10.0.0.10', 'no json'],
  [
    'POST',
    '/1.0/plug/vip/x',
    JSON.stringify({ mac_address: MAC, subnet_cidr: '10.0.0.0/24', gateway: null }),
  ],
  ['POST', '/1.0/plug/network', '{}'],
  ['POST', '/1.0/plug/network', JSON.stringify({ mac_address: MAC, fixed_ips: [{ ip_address: 'x' }] })],
];

/** The port of Octavia's own agent. */
async function reference(t: ExecutionContext, amphora: AmphoraWorld): Promise<number> {
  const port = await freePort();
  const folder = join(amphora.folder, 'reference');
  const paths = { folder, base: join(folder, 'base'), certificates: join(folder, 'certs') };
  for (const path of Object.values(paths)) mkdirSync(path, { recursive: true });
  const script = fileURLToPath(new URL('../../../support/octavia/reference_agent.py', import.meta.url));
  const child = spawn('/usr/bin/python3', [script], { stdio: ['pipe', 'inherit', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  child.stdin.write(
    `${JSON.stringify({
      ...paths,
      port,
      serverCertificate: amphora.certificates.server,
      clientAuthority: amphora.certificates.clientAuthority,
      namespace: 'none',
    })}\n`,
  );
  const isUp = () =>
    amphora.ask('GET', '/', '', undefined, port).then(
      () => true,
      () => false,
    );
  await until('the reference agent answers', isUp, { seconds: 60 });
  return port;
}

/** What a client sees. */
function seen({ status, text, headers, json }: Answer): object {
  const [type] = String(headers['content-type']).split(';');
  const body = type === 'application/json' ? (json ?? JSON.parse(text)) : { text };
  // Headgate names the value.
  const { message, ...rest } = body;
  const words =
    typeof message === 'string' ? message.replace(/^(Invalid (?:network port|VIP)).*/, '$1') : message;
  return { status, type, body: { ...rest, message: words }, etag: headers.etag?.replaceAll('"', '') };
}

test('The API answers as that of Octavia’s own agent', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  const port = await reference(t, amphora);
  for (const [method, path, body = ''] of QUESTIONS) {
    const own = await amphora.ask(method, path, body);
    const other = await amphora.ask(method, path, body, undefined, port);
    t.deepEqual(seen(own), seen(other), `${method} ${path}`);
  }
});
