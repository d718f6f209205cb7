// Requests that ask for another protocol on their connection (`Upgrade`), at the real HAProxy: after status 101 no rule sees what
// the client sends, so a member must not be asked for HTTP or TLS there.

import { hash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import ava, { type ExecutionContext } from 'ava';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { startRendered } from '../support/haproxy/rendered-haproxy.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { entryOf, gatewayOf, poolOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const host = 'a.example.org';
const SETTINGS = 'AAMAAABkAAQAoAAAAAIAAAAA';

/** A member that agrees to every upgrade and tunnel, and answers a request with the names of its headers. */
async function startWilling(t: ExecutionContext): Promise<string> {
  const server = createServer((request, response) => response.end(Object.keys(request.headers).join(' ')))
    .on('upgrade', ({ headers }, socket) => {
      const key = `${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
      const lines = [
        'HTTP/1.1 101 Switching Protocols',
        'connection: upgrade',
        `upgrade: ${headers.upgrade}`,
        `sec-websocket-accept: ${hash('sha1', key, 'base64')}`,
      ];
      socket.on('error', () => undefined);
      socket.end(`${lines.join('\r\n')}\r\n\r\ntunnel`);
    })
    .on('connect', (_, socket) => {
      socket.on('error', () => undefined);
      socket.end('HTTP/1.1 200 OK\r\n\r\ntunnel');
    })
    .listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A Gateway whose route sends to it. */
async function routed(t: ExecutionContext): Promise<Place> {
  const place = { address: '127.0.0.1', port: await freePort() };
  const edge = gatewayOf(place, [sectionOf('http', '*', { [host]: [entryOf('/', 'web')] })]);
  await startRendered(t, [edge, poolOf('web', [await startWilling(t)])]);
  return place;
}

/** A Service in mode http, without routes. */
async function unrouted(t: ExecutionContext): Promise<Place> {
  const place = { address: '127.0.0.1', port: await freePort() };
  const [pool] = poolOf('web', [await startWilling(t)]).listeners;
  const service = gatewayOf(place, []);
  const listeners = service.listeners.map((listener) => ({
    ...listener,
    name: 'default:web:tcp:80:v4',
    routing: undefined,
    pool: pool?.pool ?? listener.pool,
  }));
  await startRendered(t, [{ ...service, key: 'default/web', name: 'web', listeners }]);
  return place;
}

async function upgrade({ address, port }: Place, protocol: string, connection = 'Upgrade'): Promise<string> {
  const socket = connect(port, address);
  socket.setEncoding('latin1');
  const lines = [
    'GET / HTTP/1.1',
    `host: ${host}`,
    `connection: ${connection}`,
    `upgrade: ${protocol}`,
    `http2-settings: ${SETTINGS}`,
    'sec-websocket-key: MTIzNDU2Nzg5MDEyMzQ1Ng==',
    'sec-websocket-version: 13',
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
    if (/^HTTP\/1.1 200/.test(text) && text.includes('host')) socket.end();
  });
  await once(socket, 'close');
  return text;
}

for (const [what, start] of [
  ['A route', routed],
  ['A Service in mode http', unrouted],
] as const)
  test(`${what} passes no upgrade to another HTTP or to TLS`, async (t) => {
    const place = await start(t);
    for (const protocol of ['h2c', 'H2C', 'h2c-14', 'h2', 'websocket, h2c', 'HTTP/2.0', 'TLS/1.0', 'foo,h2c'])
      for (const connection of ['Upgrade, HTTP2-Settings', 'HTTP2-Settings,upgrade']) {
        const answer = await upgrade(place, protocol, connection);
        // HAProxy since 3.0 removes `h2c` from a list itself, and the member gets the rest.
        if (protocol.includes(',') && /^upgrade: (?:websocket|foo)\r$/m.test(answer)) continue;
        t.regex(answer, /^HTTP\/1.1 200/, protocol);
        t.notRegex(answer, /upgrade|http2-settings|tunnel$/, protocol);
      }
    const websocket = await upgrade(place, 'websocket');
    t.regex(websocket, /^HTTP\/1.1 101[\s\S]*tunnel$/);
  });

for (const [what, start] of [
  ['A route', routed],
  ['A Service in mode http', unrouted],
] as const)
  test(`${what} passes no CONNECT, after which no rule would see what the client sends`, async (t) => {
    const { address, port } = await start(t);
    const socket = connect(port, address);
    socket.setEncoding('latin1');
    socket.write(`CONNECT ${host}:80 HTTP/1.1\r\nhost: ${host}:80\r\nconnection: close\r\n\r\n`);
    let text = '';
    for await (const chunk of socket) text += chunk;
    t.regex(text, /^HTTP\/1.1 405/);
    t.notRegex(text, /tunnel/);
  });

test('A route passes no upgrade to another HTTP by an extended CONNECT of HTTP/2', async (t) => {
  const { address, port } = await routed(t);
  const session = connectHttp2(`http://${address}:${port}`);
  t.teardown(() => session.destroy());
  await once(session, 'remoteSettings');
  const answerTo = async (protocol: string): Promise<string> => {
    const stream = session.request({
      ':method': 'CONNECT',
      ':protocol': protocol,
      ':scheme': 'http',
      ':path': '/',
      ':authority': host,
    });
    stream.setEncoding('latin1');
    const answer = once(stream, 'response').catch((error) => [{ ':status': String(error.code) }]);
    const [headers] = await answer;
    let text = '';
    if (headers[':status'] === 200) for await (const chunk of stream) text += chunk;
    return `${headers[':status']} ${text}`;
  };
  t.is(await answerTo('websocket'), '200 tunnel');
  for (const protocol of ['h2c', 'H2c', 'h2', 'HTTP/2.0', 'TLS/1.0'])
    t.notRegex(await answerTo(protocol), /tunnel/, protocol);
});
