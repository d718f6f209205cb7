// Gateways that end TLS or pass it through, with several listeners on one port.

import { once } from 'node:events';
import { createServer } from 'node:https';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import ava, { type ExecutionContext } from 'ava';
import type { Certificate, LoadBalancer, Tls } from '../../agent/model/load-balancer.ts';
import { eventually } from '../support/basics/eventually.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { ModelHost } from '../support/haproxy/model-host.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { Authority, handshake, type IssuedCertificate } from '../support/traffic/tls.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { CertificateTexts } from '../support/values/certificate-texts.ts';
import { entryOf, forwardTo, gatewayOf, patternOf, poolOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true, programs: ['openssl'] });

const TLS = { minVersion: '1.2', ciphers: [], alpn: ['http/1.1'], clients: undefined } as const;

/** The member, or the status, or `refused`, and the common name of the server's certificate. */
async function askAs(
  place: Place,
  sni: string,
  host: string,
  more: Partial<IssuedCertificate> = {},
): Promise<string> {
  try {
    const { socket } = await handshake(place, { servername: sni, rejectUnauthorized: false, ...more });
    const name = socket.getPeerCertificate().subject.CN;
    socket.write(`GET / HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
    let text = '';
    for await (const chunk of socket) text += chunk;
    return `${/"member":"([^"]+)"/.exec(text)?.[1] ?? text.split(' ')[1]} ${name}`;
  } catch {
    return 'refused';
  }
}

test('Each section has its certificates, and answers 421 to a request for another one', async (t) => {
  const authority = await Authority.create(t);
  const texts = new CertificateTexts();
  const issued = (cn: string) => authority.issue({ names: [cn] });
  const [one, wild, renewed, other] = [
    texts.pair('default/one', await issued('one.example.org')),
    texts.pair('default/wild', await issued('*.example.org')),
    texts.pair('default/one', await issued('one.example.org')),
    texts.pair('default/other', await issued('other.example.com')),
  ] as const;
  const clients = texts.clients('configmap default/clients', authority.cert);
  const client = await authority.issue({ names: ['client'] });
  const place = { address: '127.0.0.1', port: await freePort() };
  const pools = await Promise.all(
    ['one', 'wild', 'any'].map(async (name) => poolOf(name, [await startEcho(t, name)])),
  );
  const route = (host: string, to: string) => ({ [host]: [entryOf('/', to)] });
  const gateway = (sections: NonNullable<Tls['sections']>) =>
    gatewayOf(
      place,
      {
        kind: 'http',
        detectMisdirected: true,
        sections: [
          sectionOf('one', 'one.example.org', route('one.example.org', 'one')),
          sectionOf('wild', '*.example.org', route('*.example.org', 'wild')),
          sectionOf('any', '*', route('*', 'any')),
        ],
      },
      { tls: { ...TLS, certificates: [other], sections } },
    );
  const section = (hostname: string, certificate: Certificate, whose?: Tls['clients']) => ({
    hostname: patternOf(hostname),
    certificates: [certificate],
    clients: whose,
  });
  const model = await ModelHost.start(
    t,
    [
      gateway([section('one.example.org', one), section('*.example.org', wild), section('*', other)]),
      ...pools,
    ],
    { pems: texts },
  );
  for (const [sni, host, expected] of [
    ['one.example.org', 'one.example.org', 'one one.example.org'],
    ['two.example.org', 'two.example.org', 'wild *.example.org'],
    ['other.example.com', 'other.example.com', 'any other.example.com'],
    ['x.example.com', 'x.example.com', 'any other.example.com'],
    ['', 'x.example.com', 'any other.example.com'],
    ['two.example.org', 'one.example.org', '421 *.example.org'],
    ['one.example.org', 'x.example.com', '421 one.example.org'],
  ] as const)
    t.is(await askAs(place, sni, host), expected, `${sni} ${host}`);

  const shown = async (): Promise<string> => {
    const made = await handshake(place, { servername: 'one.example.org', rejectUnauthorized: false });
    made.socket.destroy();
    return made.fingerprint;
  };
  const before = await shown();
  await model.serve(
    gateway([section('one.example.org', renewed), section('*.example.org', wild), section('*', other)]),
  );
  t.is(await askAs(place, 'one.example.org', 'one.example.org'), 'one one.example.org');
  t.not(await shown(), before);
  t.is(model.reloads, 0, 'A renewed certificate needs no reload');
  await model.serve(gateway([section('*.example.org', wild), section('*', other)]));
  t.is(await askAs(place, 'one.example.org', 'one.example.org'), 'one *.example.org', 'a section less');
  t.is(model.reloads, 0);

  await model.serve(
    gateway([section('one.example.org', one, clients), section('*.example.org', wild), section('*', other)]),
  );
  await model.settled();
  // The worker that is replaced may accept a connection after the new one answers.
  const without = () => askAs(place, 'one.example.org', 'one.example.org');
  await t.notThrowsAsync(eventually(without, (answer) => answer === 'refused'));
  t.is(await askAs(place, 'one.example.org', 'one.example.org', client), 'one one.example.org');
  t.is(await askAs(place, 'two.example.org', 'two.example.org'), 'wild *.example.org');
  t.is(await askAs(place, 'two.example.org', 'one.example.org'), '421 *.example.org');
  t.is(
    await askAs(place, '', 'one.example.org'),
    '421 other.example.com',
    'no way around the client certificate',
  );
});

/** A member that ends TLS, with the name in its certificate. */
async function tlsMember(t: ExecutionContext, issued: IssuedCertificate): Promise<string> {
  const server = createTlsServer({ cert: issued.cert, key: issued.key }, (socket) => {
    socket.on('error', () => undefined);
    socket.end('bye');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return `127.0.0.1:${(server.address() as { port: number }).port}`;
}

/** A member that accepts only clients with a certificate of the authority, and answers with the name in it. */
async function askingMember(t: ExecutionContext, issued: IssuedCertificate, ca: string): Promise<string> {
  const options = { cert: issued.cert, key: issued.key, ca, requestCert: true, rejectUnauthorized: true };
  const server = createServer(options, ({ socket }, response) => {
    const { subject } = (socket as TLSSocket).getPeerCertificate();
    response.setHeader('connection', 'close').end(String(subject.CN));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return `127.0.0.1:${(server.address() as { port: number }).port}`;
}

test('Members get the certificate of the Gateway, and its next content without a reload', async (t) => {
  const authority = await Authority.create(t);
  const texts = new CertificateTexts();
  const [first, second, third] = [
    texts.pair('default/edge', await authority.issue({ names: ['first'] })),
    texts.pair('default/edge', await authority.issue({ names: ['second'] })),
    texts.pair('default/edge', await authority.issue({ names: ['third'] })),
  ] as const;
  const trusted = texts.clients('configmap default/ca', authority.cert).authority;
  const issued = await authority.issue({ names: ['web.example'] });
  const member = await askingMember(t, issued, authority.cert);
  const place = { address: '127.0.0.1', port: await freePort() };
  const gateway = gatewayOf(place, {
    kind: 'http',
    detectMisdirected: false,
    sections: [sectionOf('any', '*', { '*': [entryOf('/', 'web')] })],
  });
  const pool = (certificate: Certificate | undefined, members = [member]): LoadBalancer => {
    const made = poolOf('web', members);
    const tls = { authority: trusted, serverName: 'web.example', certificate };
    return { ...made, listeners: made.listeners.map((each) => ({ ...each, pool: { ...each.pool, tls } })) };
  };
  const asked = async () => {
    const { status, body } = await request(place, '/', { headers: { host: 'web.example' } });
    return status === 200 ? body : status;
  };
  const model = await ModelHost.start(t, [gateway, pool(first, [])], { pems: texts });
  t.is(await asked(), 503);
  await model.serve(pool(first));
  t.is(await asked(), 'first', 'the first member comes after the start');
  await model.serve(pool(second));
  t.is(await asked(), 'second');
  await model.serve(pool(second, []));
  await model.serve(pool(third));
  t.is(await asked(), 'third');
  await model.restartAgent();
  await model.serve(pool(first));
  t.is(await asked(), 'first', 'after another agent has taken over HAProxy');
  t.is(model.reloads, 0);
  t.is(model.repairs, 0);
  await model.serve(pool(undefined));
  await model.settled();
  // 503 if the member's refusal comes before the request is sent: in TLS 1.3 it follows the handshake.
  t.regex(String(await asked()), /^50[23]$/, 'without a certificate the member refuses the connection');
});

test('TLS is passed through by the name in the handshake, and TCP by weights', async (t) => {
  const authority = await Authority.create(t);
  const names = ['one.example.org', 'wild.example.org'] as const;
  const members = await Promise.all(
    names.map(async (name) => tlsMember(t, await authority.issue({ names: [name] }))),
  );
  const pools = names.map((name, at) =>
    poolOf(name.split('.')[0] ?? '', [members[at] ?? ''], { mode: 'tcp' }),
  );
  const places = [
    { address: '127.0.0.1', port: await freePort() },
    { address: '127.0.0.1', port: await freePort() },
  ] as const;
  const to = (weights: Readonly<Record<string, number>>) => forwardTo(weights).backends;
  const tls = (one: Readonly<Record<string, number>>) =>
    gatewayOf(
      places[0],
      {
        kind: 'tls',
        hosts: [
          { host: patternOf('one.example.org'), backends: to(one) },
          { host: patternOf('*.example.org'), backends: to({ wild: 1 }) },
        ],
      },
      { mode: 'tcp', name: 'passed' },
    );
  const tcp = (weights: Readonly<Record<string, number>>) =>
    gatewayOf(places[1], { kind: 'tcp', backends: to(weights) }, { mode: 'tcp', name: 'plain' });
  const model = await ModelHost.start(t, [tls({ one: 1 }), tcp({ one: 1 }), ...pools]);
  const nameAt = async (place: Place, servername: string): Promise<string> => {
    const made = await handshake(place, { servername, rejectUnauthorized: false }).catch(() => undefined);
    const name = made?.socket.getPeerCertificate().subject.CN ?? 'refused';
    made?.socket.destroy();
    return String(name);
  };
  t.is(await nameAt(places[0], 'one.example.org'), 'one.example.org');
  t.is(await nameAt(places[0], 'a.b.example.org'), 'wild.example.org');
  t.is(await nameAt(places[0], 'example.com'), 'refused');
  t.is(await nameAt(places[1], 'x'), 'one.example.org');
  await model.serve(tls({ wild: 1 }), tcp({ one: 0, wild: 1 }));
  t.is(await nameAt(places[0], 'one.example.org'), 'wild.example.org');
  t.is(await nameAt(places[1], 'x'), 'wild.example.org');
  await model.serve(tls({ '-': 1 }), tcp({ one: 1, '-': 1 }));
  t.is(await nameAt(places[0], 'one.example.org'), 'refused');
  const shares = new Map<string, number>();
  for (let at = 0; at < 100; at++) {
    const name = await nameAt(places[1], 'x');
    shares.set(name, (shares.get(name) ?? 0) + 1);
  }
  t.deepEqual([...shares.keys()].sort(), ['one.example.org', 'refused']);
  t.true(Math.abs((shares.get('refused') ?? 0) - 50) < 21, String(shares.get('refused')));
  t.is(model.reloads, 0);
});

test('On one port TLS of some hosts is passed through, and that of others ended', async (t) => {
  const authority = await Authority.create(t);
  const texts = new CertificateTexts();
  const certificate = texts.pair('default/ended', await authority.issue({ names: ['ended.example.org'] }));
  const issued = await authority.issue({ names: ['passed.example.org'] });
  const member = await tlsMember(t, issued);
  const place = { address: '127.0.0.1', port: await freePort() };
  const gateway = (passed: string) =>
    gatewayOf(
      place,
      {
        kind: 'http',
        detectMisdirected: true,
        sections: [sectionOf('ended', '*.example.org', { '*.example.org': [entryOf('/', 'web')] })],
      },
      {
        tls: { ...TLS, certificates: [certificate] },
        dispatch: {
          kind: 'tls',
          hosts: [
            { host: patternOf('passed.example.org'), backends: forwardTo(passed).backends },
            { host: patternOf('none.example.org'), backends: [] },
            { host: patternOf('*.example.org'), backends: [], isEnded: true },
          ],
        },
      },
    );
  const model = await ModelHost.start(
    t,
    [gateway('raw'), poolOf('raw', [member], { mode: 'tcp' }), poolOf('web', [await startEcho(t, 'web')])],
    { pems: texts },
  );
  const nameFor = async (servername: string): Promise<string> => {
    const made = await handshake(place, { servername, rejectUnauthorized: false }).catch(() => undefined);
    const name = made?.socket.getPeerCertificate().subject.CN ?? 'refused';
    made?.socket.destroy();
    return String(name);
  };
  t.is(await nameFor('passed.example.org'), 'passed.example.org');
  t.is(await nameFor('none.example.org'), 'refused', 'no member');
  t.is(await nameFor('example.com'), 'refused', 'no listener');
  t.is(await askAs(place, 'ended.example.org', 'ended.example.org'), 'web ended.example.org');
  await model.serve(gateway('-'));
  t.is(await nameFor('passed.example.org'), 'refused', 'a change of routes');
  t.is(model.reloads, 0);
  await model.serve(gateway('raw'));
  await model.restartAgent();
  await model.settled();
  t.is(await nameFor('passed.example.org'), 'passed.example.org', 'after a restart of the agent');
  t.is(await askAs(place, 'ended.example.org', 'ended.example.org'), 'web ended.example.org');
  // As before a move to another HAProxy.
  const isServed = async (): Promise<readonly string[]> => [
    await nameFor('passed.example.org'),
    await nameFor('ended.example.org'),
  ];
  const { key, listeners } = gateway('raw');
  const continues = () => listeners.map(({ name }) => model.dataplane.continues(name));
  t.deepEqual(continues(), [true]);
  const unguarded = model.dataplane.worker?.running.unguarded;
  const serves = () => listeners.map(({ name }) => model.dataplane.serves(name));
  for (const { name } of listeners) unguarded?.add(name);
  t.deepEqual(serves(), [false], 'it is shut until the next worker, and does not count as served');
  unguarded?.clear();
  t.deepEqual(serves(), [true]);
  await model.dataplane.withdraw([key]);
  t.deepEqual(await isServed(), ['refused', 'refused']);
  t.deepEqual(continues(), [false]);
  model.dataplane.admit([key]);
  await model.serve(gateway('raw'));
  t.deepEqual(await isServed(), ['passed.example.org', 'ended.example.org']);
  await model.dataplane.withdraw([key]);
  await model.restartAgent();
  t.deepEqual(await isServed(), ['passed.example.org', 'ended.example.org']);
  t.is(model.reloads, 0);
});

test('TLS that is ended behind a dispatcher goes to members by the same name', async (t) => {
  const authority = await Authority.create(t);
  const texts = new CertificateTexts();
  const certificate = texts.pair('default/ended', await authority.issue({ names: ['ended.example.org'] }));
  const place = { address: '127.0.0.1', port: await freePort() };
  const host = patternOf('ended.example.org');
  const model = await ModelHost.start(
    t,
    [
      gatewayOf(
        place,
        { kind: 'tls', hosts: [{ host, backends: forwardTo('web').backends }] },
        {
          mode: 'tcp',
          tls: { ...TLS, alpn: [], certificates: [certificate] },
          dispatch: { kind: 'tls', hosts: [{ host, backends: [], isEnded: true }] },
        },
      ),
      poolOf('web', [await startEcho(t, 'web')], { mode: 'tcp' }),
    ],
    { pems: texts },
  );
  t.is(await askAs(place, 'ended.example.org', 'x'), 'web ended.example.org');
  t.is(await askAs(place, 'other.example.org', 'x'), 'refused');
  const other = { address: '127.0.0.1', port: await freePort() };
  await model.serve(gatewayOf(other, [sectionOf('http', '*')], { name: 'other' }));
  await model.settled();
  t.is((await request(other, '/')).status, 404, 'after a reload');
  t.is(await askAs(place, 'ended.example.org', 'x'), 'web ended.example.org', 'after a reload');
});
