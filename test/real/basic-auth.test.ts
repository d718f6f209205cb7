// Basic authentication of routes at the real HAProxy: who is let in, what members get, and that hashes stay secret.

import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { checkUserLines } from '../../agent/certificates/users.ts';
import type { Listener } from '../../agent/model/load-balancer.ts';
import type { RouteAuth } from '../../agent/model/routes.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { TestHost } from '../support/host/agent.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';
import { entryOf, gatewayOf, poolOf, sectionOf } from '../support/values/routes.ts';
import { VIP_PORT, webObjects } from '../support/values/service-objects.ts';
import { basic, HASHES, OTHER_HASHES } from '../support/values/users.ts';

const test = requires(ava, { haproxy: true });

const HOST = 'shop.example.org';

/** A listener with the users `bcrypt`, `sha256` and `sha512`, whose password is `open`. */
async function guarded(
  t: ExecutionContext,
  more: Partial<RouteAuth> = {},
  ofListener: Partial<Listener> = {},
): Promise<Place> {
  const lines = Object.entries(HASHES).map(([name, hash]) => `${name}:${hash}`);
  const users = checkUserLines(lines.join('\n'));
  if (typeof users === 'string') throw new Error(users);
  const list = { name: 'secret default/users', fingerprint: users.fingerprint };
  const place = { address: '127.0.0.1', port: await freePort() };
  const auth = { secret: 'default/users', realm: 'Shop of A. B.', removesHeader: false, ...more };
  const routes = { [HOST]: [entryOf('/open', 'web'), entryOf('/', 'web', { auth })] };
  const gateway = gatewayOf(place, [sectionOf('http', '*', routes)], {
    userLists: [list],
    ...ofListener,
  });
  const none = () => undefined;
  const pems = { certificate: none, authority: none, crl: none, users: () => users.pem.reveal() };
  await startRendered(t, [gateway, poolOf('web', [await startEcho(t, 'web')])], { pems });
  return place;
}

const ask = (place: Place, headers: Readonly<Record<string, string>> = {}, path = '/') =>
  request(place, path, { headers: { host: HOST, ...headers } });

test('A client with a right password is let in, again and again, and no other', async (t) => {
  const place = await guarded(t);
  for (const user of Object.keys(HASHES))
    for (const turn of [1, 2]) {
      const { status, echo } = await ask(place, basic(user, 'open'));
      t.is(status, 200, `${user}, request ${turn}`);
      t.is(echo?.headers.authorization, basic(user, 'open').authorization);
    }
  const { status, headers } = await ask(place);
  t.deepEqual([status, headers['www-authenticate']], [401, 'Basic realm="Shop of A. B."']);
  t.is((await ask(place, {}, '/open')).status, 200);
  const wrong = [
    basic('sha512', 'Open'),
    basic('sha51', 'open'),
    basic('', ''),
    { authorization: 'Basic' },
    { authorization: 'Bearer x' },
  ];
  for (const each of wrong) t.is((await ask(place, each)).status, 401, each.authorization);
  const twice = { Authorization: basic('sha512', 'wrong').authorization, ...basic('sha512', 'open') };
  t.is((await ask(place, twice)).status, 401, 'two headers');
});

test('Members do not get the password if the route says so', async (t) => {
  const { status, echo } = await ask(await guarded(t, { removesHeader: true }), basic('sha256', 'open'));
  t.deepEqual([status, echo?.headers.authorization], [200, undefined]);
});

test('A route whose users HAProxy does not have lets no client in', async (t) => {
  const place = await guarded(t, { secret: 'default/others' });
  t.is((await ask(place, basic('sha512', 'open'))).status, 403);
  t.is((await ask(place)).status, 403);
});

test('A client with many wrong passwords must wait, while others are let in', async (t) => {
  const place = await guarded(t);
  const guesses = Array.from({ length: 30 }, (_, at) =>
    ask({ ...place, from: '127.0.0.9' }, basic('sha512', String(at))),
  );
  const statuses = new Set((await Promise.all(guesses)).map(({ status }) => status));
  t.true(statuses.has(429), [...statuses].join());
  t.false(statuses.has(200));
  t.is((await ask(place, basic('sha512', 'open'))).status, 200);
});

/** The statuses of 40 wrong passwords at once. */
async function guess(
  place: Place,
  client: (at: number) => { readonly from?: string; readonly headers?: Readonly<Record<string, string>> },
  user: (at: number) => string,
): Promise<ReadonlySet<number>> {
  const guesses = Array.from({ length: 40 }, (_, at) => {
    const { from, headers } = client(at);
    return ask({ ...place, ...(from && { from }) }, { ...headers, ...basic(user(at), String(at)) });
  });
  return new Set((await Promise.all(guesses)).map(({ status }) => status));
}

test('Wrong passwords count against the address of the connection, whatever client a trusted proxy names', async (t) => {
  const place = await guarded(t, {}, { trustedProxies: ['127.0.0.0/8'] });
  const forged = (at: number) => ({ headers: { 'x-forwarded-for': `192.0.2.${at}` } });
  t.deepEqual([...(await guess(place, forged, (at) => `user${at}`))].sort(), [401, 429]);
});

test('Wrong passwords count against the user, whatever the client', async (t) => {
  const place = await guarded(t);
  const client = (at: number) => ({ from: `127.0.0.${at + 10}` });
  t.deepEqual([...(await guess(place, client, () => 'sha512'))].sort(), [401, 429]);
  // As many users and clients as passwords.
  t.deepEqual([...(await guess(await guarded(t), client, (at) => `user${at}`))], [401]);
});

test.serial('The users of a Secret are followed, and no hash is where others can read it', async (t) => {
  const host = await TestHost.create(t);
  const place = { address: host.address(1), port: VIP_PORT };
  const member = await startEcho(t, 'web');
  const spec = {
    addresses: [{ type: 'IPAddress', value: place.address }],
    listeners: [{ name: 'http', port: place.port, protocol: 'HTTP' }],
  };
  const [, slice = {}] = webObjects({ address: '', members: ['127.0.0.1'], portName: 'http' });
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'default', name: 'web' },
    spec: { type: 'ClusterIP', clusterIP: '10.96.0.1', ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
  };
  const annotations = { 'headgate.io/auth-type': 'basic', 'headgate.io/auth-secret': 'users' };
  const route = routeJson('shop', [{ name: 'edge' }]);
  await host.write('objects.yaml', [
    gatewayClassJson(),
    gatewayJson('edge', spec),
    { ...route, metadata: { ...(route.metadata as object), annotations } },
    service,
    { ...slice, ports: [{ name: 'http', port: Number(member.split(':')[1]), protocol: 'TCP' }] },
  ]);
  const secret = (stringData: Readonly<Record<string, string>>) =>
    host.write('users.yaml', [
      { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'default', name: 'users' }, stringData },
    ]);
  const agent = await host.start();
  const statusOf = async (user: string): Promise<number> => (await ask(place, basic(user, 'open'))).status;
  await host.until('without the Secret it is closed', async () => (await statusOf('ann')) === 403);
  t.is((await agent.metrics())('headgate_problems', { reason: 'InvalidUsers' }), 1);

  await secret({ auth: `ann:${HASHES.bcrypt}\nbob:${OTHER_HASHES['MD5 of Apache']}\n` });
  await host.until('its user is let in', async () => (await statusOf('ann')) === 200);
  t.is(await statusOf('bob'), 401);
  const why = await host.command('why', ['HTTPRoute/default/shop']);
  t.regex(why.stdout, /HAProxy cannot verify the password of user "bob"/);

  await secret({ carl: HASHES.sha512 });
  await host.until('a map has other users', async () => (await statusOf('carl')) === 200);
  t.is(await statusOf('ann'), 401);

  const url = `http://${place.address}:${place.port}/`;
  const whyFor = (...client: readonly string[]) => host.command('why', [url, ...client]);
  const answers = [
    await whyFor(),
    await whyFor('--from', '127.0.0.1'),
    await whyFor('--user', 'carl'),
    await whyFor('--user', 'ann'),
    await whyFor('--from', 'any'),
  ];
  t.deepEqual(
    answers.map(({ status }) => status),
    [0, 4, 0, 1, 1],
  );
  t.regex(
    answers[1]?.stdout ?? '',
    /Open to 127\.0\.0\.1 only with the password of a user of Secret default\/users/,
  );
  t.regex(answers[3]?.stdout ?? '', /user +refused +Secret default\/users has no user "ann": status 401/);

  const render = join(host.directory, 'rendered');
  const outputs = [
    why.stdout,
    ...answers.map(({ stdout }) => stdout),
    (await host.command('render', ['--output', render])).stdout,
  ];
  const files = await readdir(render, { recursive: true, withFileTypes: true });
  for (const file of files.filter((each) => each.isFile()))
    outputs.push(await readFile(join(file.parentPath, file.name), 'utf8'));
  outputs.push((await host.command('status', ['--json'])).stdout);
  t.notRegex(outputs.join('\n'), /LUcRp|Hht\.eX4c|BcHDpi/);
  t.regex(outputs.join('\n'), /userlist u[0-9a-f]{20}:/);

  const config = await stat(host.paths.config);
  t.is(config.mode & 0o077, 0);
  const [file = ''] = (await readdir(host.paths.certificates)).filter((name) => name.startsWith('users_'));
  t.is((await stat(join(host.paths.certificates, file))).mode & 0o077, 0);
  t.notRegex(JSON.stringify(agent.log), /LUcRp|Hht\.eX4c|BcHDpi/);

  await host.write('users.yaml', []);
  await host.until('it is closed again', async () => (await statusOf('carl')) === 403);
});
