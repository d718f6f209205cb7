// HTTP on a Gateway is HAProxy's: the public tests of HTTP/2 pass, and requests of HTTP/1 that servers read differently get the
// same answers, and reach members with the same bytes, as with the same HAProxy and a few lines written by hand.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { eventually } from '../support/basics/eventually.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { startHaproxy } from '../support/haproxy/haproxy.ts';
import { TestHost } from '../support/host/agent.ts';
import { kubeNeeds, kubePrograms } from '../support/kube/kube.ts';
import { h2spec } from '../support/traffic/h2spec.ts';
import { rawStatuses, startRawMember } from '../support/traffic/raw-http.ts';
import { Authority, tlsSecret } from '../support/traffic/tls.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { backendObjects, gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';

const test = requires(ava, { haproxy: true, programs: ['openssl', ...(kubeNeeds('h2spec').programs ?? [])] });

interface Served {
  readonly gateway: Place;
  readonly byHand: Place;
  readonly gatewayTls: Place;
  readonly byHandTls: Place;
  readonly folder: string;
}

/** The member behind a Gateway with a route for all hosts, and behind HAProxy with a file by hand. */
async function served(t: ExecutionContext<unknown>, member: string): Promise<Served> {
  const host = await TestHost.create(t);
  const [address, http, https] = [host.address(1), await freePort(), await freePort()];
  const authority = await Authority.create(t);
  const pair = await authority.issue({ names: ['*.example'] });
  const pem = join(host.directory, 'by-hand.pem');
  await writeFile(pem, `${pair.cert}${pair.key}`);
  await host.write('objects.yaml', [
    gatewayClassJson(),
    tlsSecret('tls', pair),
    gatewayJson('edge', {
      addresses: [{ type: 'IPAddress', value: address }],
      listeners: [
        { name: 'http', port: http, protocol: 'HTTP' },
        { name: 'https', port: https, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'tls' }] } },
      ],
    }),
    ...backendObjects('web', member),
    routeJson('web', [{ name: 'edge' }]),
  ]);
  await host.start();
  const [byHand, byHandTls] = [await freePort(), await freePort()];
  const haproxy = await startHaproxy(`
frontend by-hand
  mode http
  timeout http-request 10s
  timeout http-keep-alive 10s
  option forwardfor
  bind 127.0.0.1:${byHand}
  bind 127.0.0.1:${byHandTls} ssl crt ${pem} alpn h2,http/1.1
  http-request set-header X-Forwarded-Proto https if { ssl_fc }
  default_backend member
backend member
  mode http
  server s ${member}`);
  t.teardown(() => haproxy.stop());
  const gateway = { address, port: http };
  await eventually(
    () => rawStatuses(gateway, END).catch(() => []),
    ([status]) => status === '200',
  );
  return {
    gateway,
    byHand: { address: '127.0.0.1', port: byHand },
    gatewayTls: { address, port: https },
    byHandTls: { address: '127.0.0.1', port: byHandTls },
    folder: host.directory,
  };
}

test.serial(
  'h2spec finds no other fault in a Gateway, with TLS and without, than in HAProxy itself',
  async (t) => {
    t.timeout(600_000);
    const { h2spec: program = '' } = await kubePrograms(['h2spec']);
    const { place: member } = await startRawMember(t);
    const { gateway, byHand, gatewayTls, byHandTls, folder } = await served(t, member);
    for (const [isTls, place, plain] of [
      [false, gateway, byHand],
      [true, gatewayTls, byHandTls],
    ] as const) {
      const reference = await h2spec({ program, place: plain, isTls, folder });
      const result = await h2spec({ program, place, isTls, folder });
      t.log(`${isTls ? 'TLS' : 'h2c'}: ${result.cases} cases, failed: ${result.failed.join('; ') || 'none'}`);
      t.true(result.cases > 140, String(result.cases));
      t.is(result.cases, reference.cases);
      t.deepEqual(result.failed, reference.failed);
    }
  },
);

const END = 'GET /last HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\r\n';
const HOST = 'host: a.example\r\n';

/** Bytes of requests. Each ends with a whole request that closes the connection. */
const REQUESTS: Readonly<Record<string, string>> = {
  'a plain request': END,
  'Content-Length and Transfer-Encoding': `POST / HTTP/1.1\r\n${HOST}content-length: 6\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${END}`,
  'two Content-Lengths that differ': `POST / HTTP/1.1\r\n${HOST}content-length: 1\r\ncontent-length: 2\r\n\r\nab${END}`,
  'two equal Content-Lengths': `POST / HTTP/1.1\r\n${HOST}content-length: 1\r\ncontent-length: 1\r\n\r\na${END}`,
  'a list as Content-Length': `POST / HTTP/1.1\r\n${HOST}content-length: 1, 1\r\n\r\na${END}`,
  'a sign in Content-Length': `POST / HTTP/1.1\r\n${HOST}content-length: +1\r\n\r\na${END}`,
  'an empty Content-Length': `POST / HTTP/1.1\r\n${HOST}content-length: \r\n\r\n${END}`,
  'an unknown Transfer-Encoding': `POST / HTTP/1.1\r\n${HOST}transfer-encoding: xchunked\r\n\r\n0\r\n\r\n${END}`,
  'chunked before another coding': `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n${END}`,
  'Transfer-Encoding twice': `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${END}`,
  'Transfer-Encoding in HTTP/1.0': `POST / HTTP/1.0\r\n${HOST}transfer-encoding: chunked\r\n\r\n0\r\n\r\n${END}`,
  'a blank before the colon': `POST / HTTP/1.1\r\n${HOST}transfer-encoding : chunked\r\n\r\n0\r\n\r\n${END}`,
  'a tab before the value': `POST / HTTP/1.1\r\n${HOST}transfer-encoding:\tchunked\r\n\r\n0\r\n\r\n${END}`,
  'a chunk size that is no number': `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n${END}`,
  'a chunk size with 0x': `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n${END}`,
  'a chunk size beyond 64 bits': `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\nffffffffffffffff1\r\nabc\r\n0\r\n\r\n${END}`,
  'a chunk longer than its size': `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n${END}`,
  'chunks with extensions': `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n${END}`,
  'a chunk whose lines end with a line feed alone': `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n3\nabc\n0\n\n${END}`,
  'a folded header': `GET / HTTP/1.1\r\n${HOST}x-a: 1\r\n 2\r\n\r\n${END}`,
  'a header that begins with a blank': `GET / HTTP/1.1\r\n ${HOST}\r\n${END}`,
  'a header without a colon': `GET / HTTP/1.1\r\n${HOST}x-a\r\n\r\n${END}`,
  'a header without a name': `GET / HTTP/1.1\r\n${HOST}: a\r\n\r\n${END}`,
  'a NUL in a header': `GET / HTTP/1.1\r\n${HOST}x-a: a\0b\r\n\r\n${END}`,
  'a carriage return in a header': `GET / HTTP/1.1\r\n${HOST}x-a: a\rb\r\n\r\n${END}`,
  'lines that end with a line feed alone': `GET / HTTP/1.1\n${HOST.replace('\r', '')}\n${END}`,
  'two Hosts that differ': `GET / HTTP/1.1\r\n${HOST}host: b.example\r\n\r\n${END}`,
  'two equal Hosts': `GET / HTTP/1.1\r\n${HOST}${HOST}\r\n${END}`,
  'no Host': `GET / HTTP/1.1\r\n\r\n${END}`,
  'an absolute URI with the same host': `GET http://a.example/x HTTP/1.1\r\n${HOST}\r\n${END}`,
  'an absolute URI with another host': `GET http://b.example/x HTTP/1.1\r\n${HOST}\r\n${END}`,
  'a user in the URI': `GET http://b.example@a.example/x HTTP/1.1\r\n${HOST}\r\n${END}`,
  'a fragment in the path': `GET /a#b HTTP/1.1\r\n${HOST}\r\n${END}`,
  'a path without a slash': `GET a HTTP/1.1\r\n${HOST}\r\n${END}`,
  'a byte beyond ASCII in the path': `GET /\xff HTTP/1.1\r\n${HOST}\r\n${END}`,
  'a blank in the path': `GET /a b HTTP/1.1\r\n${HOST}\r\n${END}`,
  'a star': `OPTIONS * HTTP/1.1\r\n${HOST}\r\n${END}`,
  'a method that is no token': `G(T / HTTP/1.1\r\n${HOST}\r\n${END}`,
  'an empty line in front': `\r\n${END}`,
  'HTTP/0.9': 'GET /\r\n',
  'HTTP/1.0 without a Host': 'GET / HTTP/1.0\r\n\r\n',
  'HTTP/1.9': `GET / HTTP/1.9\r\n${HOST}connection: close\r\n\r\n`,
  'HTTP/9.9': `GET / HTTP/9.9\r\n${HOST}\r\n${END}`,
  'a version that is none': `GET / HTTPS/1.1\r\n${HOST}\r\n${END}`,
};
const TO_H2C = `GET / HTTP/1.1\r\n${HOST}connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n${END}`;

test.serial(
  'Requests of HTTP/1 that servers read differently get the answers of HAProxy itself',
  async (t) => {
    const member = await startRawMember(t);
    const { gateway, byHand } = await served(t, member.place);
    member.take();
    for (const [what, bytes] of Object.entries(REQUESTS)) {
      const plain = { statuses: await rawStatuses(byHand, bytes), reached: withoutForwarded(member.take()) };
      const own = { statuses: await rawStatuses(gateway, bytes), reached: withoutForwarded(member.take()) };
      t.deepEqual(own, plain, what);
    }
    await rawStatuses(gateway, REQUESTS['Content-Length and Transfer-Encoding'] ?? '');
    t.notRegex(member.take(), /content-length/, 'Members read one length only');
    t.deepEqual(await rawStatuses(gateway, TO_H2C), ['200']);
    t.notRegex(member.take(), /h2c|http2-settings/, 'HAProxy alone passes an upgrade to HTTP/2');
    await rawStatuses(gateway, `GET / HTTP/1.1\r\n${HOST}connection: x-a\r\nx-a: 1\r\n\r\n${END}`);
    t.regex(member.take(), /^(?!.*connection: x-a).*x-a: 1/s, 'HAProxy alone passes the name on');
  },
);

/** The agent adds these by its settings. */
function withoutForwarded(text: string): string {
  return text.replace(/^x-forwarded-(?:proto|port|host): .*\r\n/gm, '');
}
