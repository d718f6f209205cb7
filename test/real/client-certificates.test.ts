// Listeners that ask for client certificates: a TLS session that began elsewhere is no way in.

import ava, { type ExecutionContext } from 'ava';
import type { LoadBalancer, Tls } from '../../agent/model/load-balancer.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { ModelHost } from '../support/haproxy/model-host.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { type Client, ResumingClients, WAYS_TO_RESUME } from '../support/traffic/resumption.ts';
import { Authority, askInTls, handshake, type IssuedCertificate } from '../support/traffic/tls.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { CertificateTexts } from '../support/values/certificate-texts.ts';
import { entryOf, gatewayOf, patternOf, poolOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true, programs: ['openssl'] });

const TLS = { minVersion: '1.2', ciphers: [], alpn: ['http/1.1'], clients: undefined } as const;

/** Three authorities, a certificate of each of two for a client, and a host that serves what a test makes of them. */
async function prepared(t: ExecutionContext) {
  const authority = await Authority.create(t);
  const [owners, strangers] = [await Authority.create(t, 'Owners'), await Authority.create(t, 'Strangers')];
  const [owner, stranger] = [
    await owners.issue({ names: ['owner'] }),
    await strangers.issue({ names: ['root'] }),
  ];
  const texts = new CertificateTexts();
  const certificate = texts.pair('default/web', await authority.issue({ names: ['*.example.org'] }));
  const ofOwners = texts.clients('configmap default/owners', owners.cert);
  const ofStrangers = texts.clients('configmap other/strangers', strangers.cert);
  const pool = poolOf('web', [await startEcho(t, 'web')]);
  const place = async (): Promise<Place> => ({ address: '127.0.0.1', port: await freePort() });
  const serve = (loadBalancers: readonly LoadBalancer[]) =>
    ModelHost.start(t, [pool, ...loadBalancers], { pems: texts });
  return { certificate, owner, stranger, ofOwners, ofStrangers, place, serve };
}

/** A Gateway's load balancer whose hosts have sections; `clients` by host. */
function gatewayWith(
  name: string,
  place: Place,
  certificate: Tls['certificates'][number],
  clients: Readonly<Record<string, Tls['clients']>>,
): LoadBalancer {
  const hosts = Object.keys(clients);
  return gatewayOf(
    place,
    {
      kind: 'http',
      detectMisdirected: true,
      sections: hosts.map((host) => sectionOf(host, host, { [host]: [entryOf('/', 'web')] })),
    },
    {
      name,
      tls: {
        ...TLS,
        certificates: [certificate],
        clients: clients['*'],
        sections: Object.entries(clients)
          .filter(([host]) => host !== '*')
          .map(([host, whose]) => ({
            hostname: patternOf(host),
            certificates: [certificate],
            clients: whose,
          })),
      },
    },
  );
}

/** The status, or `refused`, for a client with a new session. */
async function asked(place: Place, host: string, shows?: IssuedCertificate): Promise<string> {
  const kept = await keptConnection(place, host, shows).catch(() => undefined);
  return kept === undefined ? 'refused' : kept.status();
}

/** A connection for several requests. */
async function keptConnection(place: Place, host: string, shows?: IssuedCertificate) {
  const { socket } = await handshake(place, { rejectUnauthorized: false, servername: host, ...shows });
  socket.on('error', () => undefined);
  return {
    status(): Promise<string> {
      return new Promise((resolve) => {
        socket.once('data', (chunk) => resolve(String(chunk).split(' ')[1] ?? ''));
        socket.once('close', () => resolve('refused'));
        socket.write(`GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
      });
    },
  };
}

/** No way to resume a session that began there opens the other place to a client without a certificate. */
async function isClosedTo(t: ExecutionContext, began: Client, guarded: Client): Promise<void> {
  const clients = await ResumingClients.create(t);
  for (const way of WAYS_TO_RESUME) {
    const session = await clients.session(began, way);
    if (session === '') continue;
    const { answer, isResumed } = await clients.resume(guarded, way, session);
    t.notRegex(answer, /^HTTP\/1.1 200/, `${way}: ${answer}`);
    t.false(isResumed, way);
  }
}

test('A session of another listener does not count where clients need a certificate', async (t) => {
  const { certificate, owner, stranger, ofOwners, ofStrangers, place, serve } = await prepared(t);
  const [open, guarded, foreign] = [await place(), await place(), await place()];
  await serve([
    gatewayWith('open', open, certificate, { '*': undefined }),
    gatewayWith('guarded', guarded, certificate, { '*': ofOwners }),
    gatewayWith('foreign', foreign, certificate, { '*': ofStrangers }),
  ]);
  const host = 'a.example.org';
  t.is(await asked(open, host), '200');
  t.is(await asked(guarded, host, owner), '200');
  t.is(await asked(guarded, host), 'refused');
  const target = { place: guarded, host };
  await isClosedTo(t, { place: open, host }, target);
  await isClosedTo(t, { place: foreign, host, shows: stranger }, target);
  // At a listener that asks for no certificate, clients with tickets resume their sessions as before.
  const clients = await ResumingClients.create(t);
  for (const way of ['-tls1_2', '-tls1_3']) {
    const session = await clients.session({ place: open, host }, way);
    t.true((await clients.resume({ place: open, host }, way, session)).isResumed, way);
  }
});

test('Of two hosts of one port that ask for certificates of different authorities neither opens the other', async (t) => {
  const { certificate, owner, stranger, ofOwners, ofStrangers, place, serve } = await prepared(t);
  const shared = await place();
  await serve([
    gatewayWith('shared', shared, certificate, {
      '*': undefined,
      'a.example.org': ofOwners,
      'b.example.org': ofStrangers,
      'c.example.org': undefined,
    }),
  ]);
  const at = (host: string, shows?: IssuedCertificate): Client => ({
    place: shared,
    host,
    ...(shows && { shows }),
  });
  t.is(await asked(shared, 'a.example.org', owner), '200');
  t.is(await asked(shared, 'b.example.org', stranger), '200');
  t.is(await asked(shared, 'c.example.org'), '200');
  await isClosedTo(t, at('c.example.org'), at('a.example.org'));
  await isClosedTo(t, at('b.example.org', stranger), at('a.example.org'));
  await isClosedTo(t, at('a.example.org', owner), at('b.example.org'));
});

test('What began before a listener asks for certificates, or for others, does not count afterwards', async (t) => {
  const { certificate, owner, stranger, ofOwners, ofStrangers, place, serve } = await prepared(t);
  const shared = await place();
  const made = (whose: Tls['clients'], other: Tls['clients'] = undefined) =>
    gatewayWith('shared', shared, certificate, {
      '*': undefined,
      'a.example.org': whose,
      'b.example.org': other,
    });
  const model = await serve([made(undefined)]);
  const host = 'a.example.org';
  const clients = await ResumingClients.create(t);
  const sessions = new Map<string, string>();
  for (const way of WAYS_TO_RESUME) {
    sessions.set(way, await clients.session({ place: shared, host }, way));
    t.not(sessions.get(way), '', `Without a guard there are sessions: ${way}`);
  }
  await model.serve(made(ofOwners, ofStrangers));
  await model.settled();
  for (const [way, session] of sessions)
    t.is((await clients.resume({ place: shared, host }, way, session)).answer, '', way);
  // Authorities that HAProxy has change places without a reload.
  const { reloads } = model;
  const kept = await keptConnection(shared, host, owner);
  t.is(await kept.status(), '200');
  await model.serve(made(ofStrangers, ofOwners));
  await model.settled();
  t.is(model.reloads, reloads, 'Both authorities are there');
  t.is(await kept.status(), '421', 'The connection has shown a certificate of another authority');
  t.is(await asked(shared, host, owner), 'refused');
  t.is(await asked(shared, host, stranger), '200');
  t.is(await asked(shared, host), 'refused');
});

test('Sessions do not count at hosts beside those whose TLS is passed through', async (t) => {
  const { certificate, owner, ofOwners, place, serve } = await prepared(t);
  const [open, guarded] = [await place(), await place()];
  const host = 'a.example.org';
  const { listeners, ...made } = gatewayWith('guarded', guarded, certificate, { '*': ofOwners });
  const dispatch = {
    kind: 'tls',
    hosts: [
      { host: patternOf('passed.example.org'), backends: [] },
      { host: patternOf('*'), backends: [], isEnded: true },
    ],
  } as const;
  await serve([
    gatewayWith('open', open, certificate, { '*': undefined }),
    { ...made, listeners: listeners.map((each) => ({ ...each, dispatch })) },
  ]);
  t.is(await asked(guarded, host, owner), '200');
  t.is(await asked(guarded, host), 'refused');
  await isClosedTo(t, { place: open, host }, { place: guarded, host });
});

test('Members get the names of a client certificate only from HAProxy', async (t) => {
  const { certificate, owner, ofOwners, place, serve } = await prepared(t);
  const [plain, open, guarded] = [await place(), await place(), await place()];
  const routes = [sectionOf('any', '*', { '*': [entryOf('/', 'web')] })];
  await serve([
    gatewayOf(plain, routes, { name: 'plain' }),
    gatewayWith('open', open, certificate, { '*': undefined }),
    gatewayWith('guarded', guarded, certificate, { '*': undefined, 'a.example.org': ofOwners }),
  ]);
  const names = [
    ...['X-SSL-Client-CN', 'x_ssl_client_cn', 'X-SSL_Client_Verify', 'X_SSL-Client-DN', 'X-SSL-Client-Other'],
    ...['ssl-client-verify', 'SSL_CLIENT_VERIFY', 'ssl-client_cert', 'ssl-client-subject-dn'],
  ];
  const spoofed = Object.fromEntries(names.map((name) => [name, 'root']));
  const headers = { host: 'a.example.org', ...spoofed };
  const inTls = (to: Place, shows: object) => ({
    ...to,
    options: { servername: 'a.example.org', rejectUnauthorized: false, ...shows },
  });
  const seen = (got: Readonly<Record<string, string>> | undefined) =>
    Object.fromEntries(Object.entries(got ?? { none: 'ssl' }).filter(([name]) => /ssl/i.test(name)));
  const inClear = await request(plain, '/', { headers });
  t.deepEqual(seen(inClear.echo?.headers), {}, 'without TLS');
  t.deepEqual(seen(await echoed(inTls(open, {}), headers)), {}, 'without a certificate');
  const own = seen(await echoed(inTls(guarded, owner), headers));
  t.regex(own['x-ssl-client-sha1'] ?? '', /^[0-9A-F]{40}$/);
  t.deepEqual(
    { ...own, 'x-ssl-client-sha1': '' },
    {
      'x-ssl-client-verify': '0',
      'x-ssl-client-dn': '/CN=owner',
      'x-ssl-client-cn': 'owner',
      'x-ssl-client-sha1': '',
      'ssl-client-verify': 'SUCCESS',
      'ssl-client-subject-dn': 'CN=owner',
      'ssl-client-issuer-dn': 'CN=Owners',
    },
  );
});

/** The headers that the member got. */
async function echoed(
  { options, ...place }: Place & { readonly options: object },
  headers: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, string>>> {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const text = await askInTls(place, options, `GET / HTTP/1.1\r\n${lines.join('')}connection: close\r\n\r\n`);
  return JSON.parse(text.slice(text.indexOf('{"member"'), text.lastIndexOf('}') + 1)).headers;
}
