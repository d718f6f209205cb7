// Who may be a client of an Ingress, at the real HAProxy: users with passwords, and certificates that are not revoked.

import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { Authority, askInTls, type IssuedCertificate, tlsSecret } from '../support/traffic/tls.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { backendObjects, ingressClassJson, ingressJson } from '../support/values/gateways.ts';
import { basic, HASHES, OTHER_HASHES } from '../support/values/users.ts';

// Ingresses have ports 80 and 443.
const test = requires(ava, { haproxy: true, programs: ['openssl'], root: true });

const NAME = 'shop.example.org';
const ALIAS = 'alias.example.org';
const PREFIX = 'nginx.ingress.kubernetes.io/';

/** What askInTls() says of an answer that is not 200, or of none. */
const statusOf = ({ message }: Error): string => /"HTTP\/1.1 (\d+)/.exec(message)?.[1] ?? 'refused';

const secret = (name: string, stringData: Readonly<Record<string, string>>) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { namespace: 'default', name },
  stringData,
});

const shop = (annotations: Readonly<Record<string, string>>, more: object = {}) => {
  const backend = { service: { name: 'web', port: { number: 80 } } };
  const rules = [{ host: NAME, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }];
  return ingressJson('shop', { rules, ...more }, annotations);
};

/** With this certificate, or {} without one. `own`: whose certificate the host has. */
function isServedTo(client: Partial<IssuedCertificate>, place: Place, own: Authority): Promise<boolean> {
  const question = `GET / HTTP/1.1\r\nhost: ${NAME}\r\nconnection: close\r\n\r\n`;
  return askInTls(place, { servername: NAME, ca: own.cert, ...client }, question).then(
    (text) => text.includes('"member":"web"'),
    () => false,
  );
}

test('A client of an Ingress needs a user and a password of its Secret', async (t) => {
  const host = await TestHost.create(t);
  const place = { address: host.address(1), port: 80 };
  const annotations = { [`${PREFIX}auth-type`]: 'basic', [`${PREFIX}auth-secret`]: 'users' };
  await host.write('objects.yaml', [
    ingressClassJson('edge', { 'headgate.io/load-balancer-ips': place.address }),
    ...backendObjects('web', await startEcho(t, 'web')),
    shop({ ...annotations, [`${PREFIX}auth-realm`]: 'The shop', 'headgate.io/auth-remove-header': 'true' }),
  ]);
  await host.start();
  const ask = (headers: Readonly<Record<string, string>> = {}) =>
    request(place, '/', { headers: { host: NAME, ...headers } });
  const status = async (user: string, password = 'open'): Promise<number | undefined> =>
    (await ask(basic(user, password)).catch(() => undefined))?.status;
  await host.until('without the Secret no client is let in', async () => (await status('ann')) === 403);

  const users = `ann:${HASHES.bcrypt}\nbob:${OTHER_HASHES['MD5 of Apache']}\n`;
  await host.write('users.yaml', [secret('users', { auth: users })]);
  await host.until('ann is let in', async () => (await status('ann')) === 200);
  t.is((await ask(basic('ann', 'open'))).echo?.headers.authorization, undefined);
  const refused = await ask();
  t.is(refused.status, 401);
  t.regex(refused.headers['www-authenticate'] ?? '', /^Basic realm="The shop"/);
  t.is(await status('ann', 'other'), 401);
  t.is(await status('bob'), 401);
  t.regex((await host.command('why', ['Ingress/default/shop'])).stdout, /password of user "bob"/);
  for (const [password, status, words] of [
    ['open', 0, /user +passed +with the password of user "ann"/],
    ['closed', 1, /user +refused +it is not the password of user "ann": status 401/],
  ] as const) {
    const header = `authorization: ${basic('ann', password).authorization}`;
    const why = await host.command('why', [`http://${NAME}/`, '--header', 'x-a: 1', '--header', header]);
    t.is(why.status, status, why.stdout);
    t.regex(why.stdout, words);
    t.false(why.stdout.includes(basic('ann', password).authorization.slice(6)));
  }
});

test('A client of an Ingress whose certificate is revoked is refused, and others are served', async (t) => {
  const host = await TestHost.create(t);
  const place = { address: host.address(1), port: 443 };
  const [own, clients] = [await Authority.create(t), await Authority.create(t, 'Clients')];
  const [ann, bob] = [await clients.issue({ names: ['ann'] }), await clients.issue({ names: ['bob'] })];
  const tls = [{ hosts: [NAME], secretName: 'web-tls' }];
  await host.write('objects.yaml', [
    ingressClassJson('edge', { 'headgate.io/load-balancer-ips': place.address }),
    ...backendObjects('web', await startEcho(t, 'web')),
    shop({ [`${PREFIX}auth-tls-secret`]: 'default/clients' }, { tls }),
    tlsSecret('web-tls', await own.issue({ names: [NAME] })),
  ]);
  const write = (crl: string): Promise<void> =>
    host.write('clients.yaml', [
      secret('clients', { 'ca.crt': clients.cert, ...(crl !== '' && { 'ca.crl': crl }) }),
    ]);
  const isServed = (client: Partial<IssuedCertificate>) => isServedTo(client, place, own);
  await write('');
  await host.start();
  await host.until('both are served', async () => (await isServed(ann)) && (await isServed(bob)));
  t.false(await isServed({}));

  await write(await clients.revoke([ann]));
  await host.until('ann is refused', async () => !(await isServed(ann)) && (await isServed(bob)));
  await write('rubbish');
  await host.until('the fault is told', async () =>
    /ca\.crl has no revocation list in PEM/.test(
      (await host.command('why', ['Ingress/default/shop'])).stdout,
    ),
  );
  t.deepEqual([await isServed(ann), await isServed(bob)], [false, true]);
});

test('A further host whose clients need a certificate of the same authority is served, too', async (t) => {
  const host = await TestHost.create(t);
  const place = { address: host.address(1), port: 443 };
  const [own, clients] = [await Authority.create(t), await Authority.create(t, 'Clients')];
  const ann = await clients.issue({ names: ['ann'] });
  const backends = backendObjects('web', await startEcho(t, 'web'));
  const web = tlsSecret('web-tls', await own.issue({ names: [NAME, ALIAS] }));
  const guarded = (name: string, hostname: string) => {
    const backend = { service: { name: 'web', port: { number: 80 } } };
    const rules = [{ host: hostname, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }];
    const tls = [{ hosts: [hostname], secretName: 'web-tls' }];
    return ingressJson(name, { rules, tls }, { [`${PREFIX}auth-tls-secret`]: 'default/clients' });
  };
  const write = (...more: readonly ReturnType<typeof ingressJson>[]): Promise<void> =>
    host.write('objects.yaml', [
      ingressClassJson('edge', { 'headgate.io/load-balancer-ips': place.address }),
      ...backends,
      web,
      secret('clients', { 'ca.crt': clients.cert }),
      guarded('shop', NAME),
      ...more,
    ]);
  const asked = (name: string, client: Partial<IssuedCertificate> = {}): Promise<string> => {
    const question = `GET / HTTP/1.1\r\nhost: ${name}\r\nconnection: close\r\n\r\n`;
    return askInTls(place, { servername: name, ca: own.cert, ...client }, question).then(
      () => '200',
      statusOf,
    );
  };
  await write();
  await host.start();
  await host.until('the first host is served', async () => (await asked(NAME, ann)) === '200');
  await write(guarded('alias', ALIAS));
  await host.soon('the further host is served', async () => (await asked(ALIAS, ann)) === '200');
  t.deepEqual([await asked(ALIAS), await asked(NAME), await asked(NAME, ann)], ['refused', 'refused', '200']);
});

test('Clients whose certificates have another name get 403, and who has none is refused', async (t) => {
  const host = await TestHost.create(t);
  const [plain, place] = [80, 443].map((port) => ({ address: host.address(1), port })) as [Place, Place];
  const [own, clients] = [await Authority.create(t), await Authority.create(t, 'Clients')];
  const [ann, annette, bob] = await Promise.all(
    ['ann', 'annette', 'bob'].map((name) => clients.issue({ names: [name] })),
  );
  const write = (annotations: Readonly<Record<string, string>>): Promise<void> =>
    host.write('objects.yaml', [
      ingressClassJson('edge', { 'headgate.io/load-balancer-ips': place.address }),
      ...backends,
      shop(
        {
          [`${PREFIX}auth-tls-secret`]: 'default/clients',
          [`${PREFIX}ssl-redirect`]: 'false',
          ...annotations,
        },
        { tls: [{ hosts: [NAME], secretName: 'web-tls' }] },
      ),
      secret('clients', { 'ca.crt': clients.cert }),
      web,
    ]);
  const backends = backendObjects('web', await startEcho(t, 'web'));
  const web = tlsSecret('web-tls', await own.issue({ names: [NAME] }));
  const question = `GET / HTTP/1.1\r\nhost: ${NAME}\r\nconnection: close\r\n\r\n`;
  const asked = (client: Partial<IssuedCertificate> = {}): Promise<string> =>
    askInTls(place, { servername: NAME, ca: own.cert, ...client }, question).then(() => '200', statusOf);
  await write({ [`${PREFIX}auth-tls-match-cn`]: 'CN=(ann|bob)(,|$)' });
  await host.start();
  await host.until('ann is served', async () => (await asked(ann)) === '200');
  t.deepEqual([await asked(annette), await asked(bob), await asked()], ['403', '200', 'refused']);
  const reloads = await host.reloads();

  // Another name is rows of maps.
  await write({ [`${PREFIX}auth-tls-match-cn`]: 'CN=ann' });
  await host.until('bob is not served', async () => (await asked(bob)) === '403');
  t.deepEqual([await asked(ann), await asked(annette)], ['200', '200']);
  t.is(await host.reloads(), reloads);

  await write({
    [`${PREFIX}auth-tls-match-cn`]: 'CN=ann',
    [`${PREFIX}auth-tls-verify-client`]: 'optional',
  });
  await host.until('who has no certificate gets an answer', async () => (await asked()) === '403');
  t.deepEqual([await asked(ann), await asked(bob)], ['200', '403']);
  t.is((await request(plain, '/', { headers: { host: NAME } })).status, 403);
});

test('Clients without a certificate that is accepted are sent to the error page of their host, and to nothing else of its port', async (t) => {
  const host = await TestHost.create(t);
  const place = { address: host.address(1), port: 443 };
  const [own, clients, others] = [
    await Authority.create(t),
    await Authority.create(t, 'Clients'),
    await Authority.create(t, 'Others'),
  ];
  const hosts = [NAME, ALIAS, 'optional.example.org', 'open.example.org'];
  const [ann, expired, stranger] = await Promise.all([
    clients.issue({ names: ['ann'] }),
    clients.issue({ names: ['ann'], days: -1 }),
    others.issue({ names: ['ann'] }),
  ]);
  const page = { [`${PREFIX}auth-tls-error-page`]: 'https://id.org$request_uri' };
  const guarded = { [`${PREFIX}auth-tls-secret`]: 'default/clients' };
  const optional = { ...guarded, ...page, [`${PREFIX}auth-tls-verify-client`]: 'optional' };
  const objects = (ofPage: Readonly<Record<string, string>>) => [
    ingressClassJson('edge', { 'headgate.io/load-balancer-ips': place.address }),
    ...backends,
    ...[{ ...guarded, ...ofPage }, guarded, optional, {}].map((annotations, at) => {
      const backend = { service: { name: 'web', port: { number: 80 } } };
      const rules = [{ host: hosts[at], http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }];
      return ingressJson(
        `web-${at}`,
        { rules, tls: [{ hosts: [hosts[at]], secretName: 'web-tls' }] },
        annotations,
      );
    }),
    secret('clients', { 'ca.crt': clients.cert }),
    web,
  ];
  const [backends, web] = [
    backendObjects('web', await startEcho(t, 'web')),
    tlsSecret('web-tls', await own.issue({ names: hosts })),
  ];
  const asked = async (client: Partial<IssuedCertificate>): Promise<string> => {
    const answers = hosts.map((name) =>
      askInTls(
        place,
        { servername: name, ca: own.cert, ...client },
        `GET /a?b=1 HTTP/1.1\r\nhost: ${name}\r\nconnection: close\r\n\r\n`,
      ).then(() => 'served', statusOf),
    );
    return (await Promise.all(answers)).join(' ');
  };
  await host.write('objects.yaml', objects(page));
  await host.start();
  await host.until('ann is served', async () => (await asked(ann)) === 'served served served served');
  t.is(await asked({}), '302 refused served served');
  t.is(await asked(stranger), '302 403 302 served');
  t.is(await asked(expired), '302 403 302 served');
  const answer = await askInTls(
    place,
    { servername: NAME, ca: own.cert },
    `GET /a?b=1 HTTP/1.1\r\nhost: ${NAME}\r\nconnection: close\r\n\r\n`,
  ).catch(({ message }: Error) => message);
  t.regex(answer, /location: https:\/\/id\.org\/a\?b=1/);
  const why = await host.command('why', [`https://${NAME}/`]);
  t.regex(why.stdout, /client certificate +asked +.*status 302 to https:\/\/id/);

  await host.write('objects.yaml', objects({}));
  await host.until(
    'without a page they are refused',
    async () => (await asked({})) === 'refused refused served served',
  );
  await host.until('so are strangers', async () => (await asked(stranger)) === '403 403 302 served');
  t.is(await asked(ann), 'served served served served');
});

test('Clients have at most as many intermediate certificates as their host allows', async (t) => {
  const host = await TestHost.create(t);
  const place = { address: host.address(1), port: 443 };
  const [own, root] = [await Authority.create(t), await Authority.create(t, 'Root')];
  const first = await root.authority(t, 'First');
  const second = await first.authority(t, 'Second');
  const issued = await Promise.all([root, first, second].map((each) => each.issue({ names: ['ann'] })));
  const above = ['', first.cert, second.cert + first.cert];
  const clients = issued.map(({ cert, key }, at) => ({ cert: cert + above[at], key }));
  const [backends, web] = [
    backendObjects('web', await startEcho(t, 'web')),
    tlsSecret('web-tls', await own.issue({ names: [NAME] })),
  ];
  const objects = (depth: Readonly<Record<string, string>>) => [
    ingressClassJson('edge', { 'headgate.io/load-balancer-ips': place.address }),
    ...backends,
    shop(
      { [`${PREFIX}auth-tls-secret`]: 'default/clients', ...depth },
      { tls: [{ hosts: [NAME], secretName: 'web-tls' }] },
    ),
    secret('clients', { 'ca.crt': root.cert }),
    web,
  ];
  const question = `GET / HTTP/1.1\r\nhost: ${NAME}\r\nconnection: close\r\n\r\n`;
  const asked = async (): Promise<string> => {
    const answers = clients.map((client) =>
      askInTls(place, { servername: NAME, ca: own.cert, ...client }, question).then(() => 'served', statusOf),
    );
    return (await Promise.all(answers)).join();
  };
  const chain = join(host.stateDir, 'ann.pem');
  await writeFile(chain, clients[2]?.cert ?? '');
  await host.write('objects.yaml', objects({}));
  await host.start();
  await host.until('without a depth all are served', async () => (await asked()) === 'served,served,served');
  for (const [depth, answers] of [
    ['1', 'served,served,refused'],
    ['0', 'served,refused,refused'],
    ['2', 'served,served,served'],
  ] as const) {
    await host.write('objects.yaml', objects({ [`${PREFIX}auth-tls-verify-depth`]: depth }));
    await host.until(`depth ${depth}`, async () => (await asked()) === answers);
    t.is(await asked(), answers, depth);
    if (depth !== '0') continue;
    const why = await host.command('why', [`https://${NAME}/`, '--cert', chain]);
    t.regex(why.stdout, /the client's has 2 intermediate certificates, and at most 0 are allowed/);
  }
});

test("Members get the client's certificate if the Ingress says so, and never one that the client claims", async (t) => {
  const host = await TestHost.create(t);
  const place = { address: host.address(1), port: 443 };
  const [own, clients] = [await Authority.create(t), await Authority.create(t, 'Clients')];
  const ann = await clients.issue({ names: ['ann'] });
  await host.write('objects.yaml', [
    ingressClassJson('edge', { 'headgate.io/load-balancer-ips': place.address }),
    ...backendObjects('web', await startEcho(t, 'web')),
    shop(
      {
        [`${PREFIX}auth-tls-secret`]: 'default/clients',
        [`${PREFIX}auth-tls-verify-client`]: 'optional',
        [`${PREFIX}auth-tls-pass-certificate-to-upstream`]: 'true',
      },
      { tls: [{ hosts: [NAME], secretName: 'web-tls' }] },
    ),
    secret('clients', { 'ca.crt': clients.cert }),
    tlsSecret('web-tls', await own.issue({ names: [NAME] })),
  ]);
  await host.start();
  const forged = 'ssl-client-cert: root\r\nssl_client_cert: root\r\n';
  const question = `GET / HTTP/1.1\r\nhost: ${NAME}\r\n${forged}connection: close\r\n\r\n`;
  const given = async (client: Partial<IssuedCertificate> = {}): Promise<unknown> => {
    const text = await askInTls(place, { servername: NAME, ca: own.cert, ...client }, question).catch(
      () => '',
    );
    const [, body] = /(\{.*\})/s.exec(text) ?? [];
    return body === undefined ? 'no answer' : JSON.parse(body).headers['ssl-client-cert'];
  };
  await host.until('ann is served', async () => /BEGIN/.test(String(await given(ann))));
  const pem = decodeURIComponent(String(await given(ann)));
  t.is(pem.trim(), new X509Certificate(ann.cert).toString().trim());
  t.is(await given(), undefined);
});

test('TLS of a host with ssl-passthrough ends in its member, and that of others here', async (t) => {
  const host = await TestHost.create(t);
  const [plain, place] = [80, 443].map((port) => ({ address: host.address(1), port })) as [Place, Place];
  const [ofMember, own] = [await Authority.create(t, 'Member'), await Authority.create(t)];
  const rules = (name: string, service: string) => ({
    rules: [
      {
        host: name,
        http: {
          paths: [
            { path: '/', pathType: 'Prefix', backend: { service: { name: service, port: { number: 80 } } } },
          ],
        },
      },
    ],
  });
  const passes = { [`${PREFIX}ssl-passthrough`]: 'true' };
  const objects = (annotations: Readonly<Record<string, string>>) => [
    ingressClassJson('edge', { 'headgate.io/load-balancer-ips': place.address }),
    ...backends,
    ingressJson('raw', rules(NAME, 'raw'), annotations),
    ingressJson('web', { ...rules(ALIAS, 'web'), tls: [{ hosts: [ALIAS], secretName: 'web-tls' }] }),
    web,
  ];
  const member = createServer(await ofMember.issue({ names: [NAME] }), (_, response) => {
    response.end(JSON.stringify({ member: 'raw' }));
  });
  member.listen(0, '127.0.0.1');
  await once(member, 'listening');
  t.teardown(() => member.close());
  const raw = `127.0.0.1:${(member.address() as AddressInfo).port}`;
  const backends = [...backendObjects('raw', raw), ...backendObjects('web', await startEcho(t, 'web'))];
  const web = tlsSecret('web-tls', await own.issue({ names: [ALIAS] }));
  const asked = (name: string, authority: Authority, header = name): Promise<string> =>
    askInTls(
      place,
      { servername: name, ca: authority.cert },
      `GET / HTTP/1.1\r\nhost: ${header}\r\nconnection: close\r\n\r\n`,
    ).then((text) => /"member":"(\w+)"/.exec(text)?.[1] ?? '', statusOf);
  /** What came meanwhile instead of the member. */
  const others = async (name: string, authority: Authority, member: string, during: () => Promise<void>) => {
    const answers = new Set<string>();
    const ended = during().then(() => true);
    while (!(await Promise.race([ended, setTimeout(5, false)]))) answers.add(await asked(name, authority));
    return [...answers].filter((each) => each !== member);
  };
  await host.write('objects.yaml', objects(passes).slice(0, -2));
  await host.start();
  await host.until('the member ends TLS', async () => (await asked(NAME, ofMember)) === 'raw');
  const refusedOfMember = await others(NAME, ofMember, 'raw', async () => {
    await host.write('objects.yaml', objects(passes));
    await host.until('TLS ends here, too', async () => (await asked(ALIAS, own)) === 'web');
  });
  t.deepEqual(refusedOfMember, []);
  t.is(await asked(ALIAS, own, NAME), '403', 'no way by another name');
  t.is((await request(plain, '/', { headers: { host: NAME } })).status, 308);

  // What must see requests closes it.
  const before = await host.reloads();
  const refused = await others(ALIAS, own, 'web', async () => {
    await host.write('objects.yaml', objects({ ...passes, [`${PREFIX}auth-type`]: 'basic' }));
    await host.until('it is closed', async () => (await asked(NAME, ofMember)) === 'refused');
    await host.until('HAProxy is reloaded', async () => (await host.reloads()) > before);
  });
  t.deepEqual(refused, []);
  t.is(await asked(ALIAS, own, NAME), '403');
});

test('A host that asks for client certificates is guarded without a certificate of its own, and on port 80', async (t) => {
  const host = await TestHost.create(t);
  const [plain, place] = [80, 443].map((port) => ({ address: host.address(1), port })) as [Place, Place];
  const [own, clients] = [await Authority.create(t), await Authority.create(t, 'Clients')];
  const ann = await clients.issue({ names: ['ann'] });
  const objects = (annotations: Readonly<Record<string, string>>) => [
    ingressClassJson('edge', {
      'headgate.io/load-balancer-ips': place.address,
      'headgate.io/tls-certificate': 'default/any-tls',
    }),
    ...backendObjects('web', echo),
    tlsSecret('any-tls', issued),
    secret('clients', { 'ca.crt': clients.cert }),
    shop(
      { [`${PREFIX}auth-tls-secret`]: 'default/clients', [`${PREFIX}server-alias`]: ALIAS, ...annotations },
      { tls: [{ hosts: [NAME] }] },
    ),
  ];
  const [echo, issued] = [await startEcho(t, 'web'), await own.issue({ names: [NAME, ALIAS] })];
  await host.write('objects.yaml', objects({ [`${PREFIX}ssl-redirect`]: 'false' }));
  await host.start();
  const asked = async (name: string, client: Partial<IssuedCertificate> = {}): Promise<string> => {
    const question = `GET / HTTP/1.1\r\nhost: ${name}\r\nssl-client-verify: root\r\nconnection: close\r\n\r\n`;
    const options = { servername: name, ca: own.cert, ...client };
    return askInTls(place, options, question).catch(() => 'refused');
  };
  for (const name of [NAME, ALIAS]) {
    await host.until(`${name} is served`, async () => /"member":"web"/.test(await asked(name, ann)));
    t.regex(await asked(name, ann), /"ssl-client-verify":"SUCCESS"/);
    t.is(await asked(name), 'refused', name);
    t.is((await request(plain, '/', { headers: { host: name } })).status, 403, `${name} on port 80`);
  }
  await host.write('objects.yaml', objects({ [`${PREFIX}auth-tls-secret`]: 'default/missing' }));
  await host.until(
    'without the authority no client is served',
    async () => (await asked(NAME, ann)) === 'refused',
  );
  t.is((await request(plain, '/', { headers: { host: NAME } })).status, 403);
  t.regex((await host.command('why', ['Ingress/default/shop'])).stdout, /default\/missing/);
});

for (const landing of [false, true])
  test(`A host whose authority appears lets no client in without a certificate, landing: ${landing}`, async (t) => {
    // The next reload of the main HAProxy is ten minutes later.
    const host = await TestHost.create(t, { landing, flags: ['--reload-interval', '10m'] });
    const place = { address: host.address(1), port: 443 };
    const [own, clients] = [await Authority.create(t), await Authority.create(t, 'Clients')];
    const ann = await clients.issue({ names: ['ann'] });
    const tls = [{ hosts: [NAME], secretName: 'web-tls' }];
    await host.write('objects.yaml', [
      ingressClassJson('edge', { 'headgate.io/load-balancer-ips': place.address }),
      ...backendObjects('web', await startEcho(t, 'web')),
      shop({ [`${PREFIX}auth-tls-secret`]: 'default/clients' }, { tls }),
      tlsSecret('web-tls', await own.issue({ names: [NAME] })),
    ]);
    const agent = await host.start();
    const isServed = (client: Partial<IssuedCertificate>) => isServedTo(client, place, own);
    t.false(await isServed({}));
    if (!landing) {
      // The first reload is at once.
      await host.serve({ name: 'other', address: host.address(2) });
      await host.until('HAProxy is reloaded', async () => (await host.reloads()) === 1);
    }
    await host.until('it is missing', async () => agent.hasLogged('Cannot use Secret'));
    await host.write('clients.yaml', [secret('clients', { 'ca.crt': clients.cert })]);
    await host.until('the authority is read', async () => agent.hasLogged('Solved: Cannot use Secret'));
    for (let request = 0; request < 40; request++) t.false(await isServed({}), `request ${request}`);
    if (landing) await host.until('the landing serves ann', () => isServed(ann));
    else t.false(await isServed(ann));
    t.false(await isServed({}));
  });

test('Between a change of authorities and the reload for it no client is let in without a certificate', async (t) => {
  const host = await TestHost.create(t, { flags: ['--reload-interval', '10m'] });
  const place = { address: host.address(1), port: 443 };
  const [own, clients] = [await Authority.create(t), await Authority.create(t, 'Clients')];
  const [other, ann] = [await Authority.create(t, 'Other'), await clients.issue({ names: ['ann'] })];
  const tls = [{ hosts: [NAME], secretName: 'web-tls' }];
  await host.write('clients.yaml', [secret('clients', { 'ca.crt': clients.cert })]);
  await host.write('objects.yaml', [
    ingressClassJson('edge', { 'headgate.io/load-balancer-ips': place.address }),
    ...backendObjects('web', await startEcho(t, 'web')),
    shop({ [`${PREFIX}auth-tls-secret`]: 'default/clients' }, { tls }),
    tlsSecret('web-tls', await own.issue({ names: [NAME] })),
  ]);
  const agent = await host.start();
  const isServed = (client: Partial<IssuedCertificate>) => isServedTo(client, place, own);
  await host.until('ann is served', () => isServed(ann));
  // The first reload is at once, and the next one ten minutes later.
  await host.serve({ name: 'other', address: host.address(2) });
  await host.until('HAProxy is reloaded', async () => agent.hasLogged('Reloaded HAProxy'));
  await host.write('clients.yaml', [secret('clients', { 'ca.crt': clients.cert + other.cert })]);
  await host.serve({ name: 'later', address: host.address(3) });
  await host.until('both changes are planned', async () => agent.text.includes('"service":"later"'));
  for (let request = 0; request < 20; request++) t.false(await isServed({}), `request ${request}`);
  t.true(await isServed(ann));
});
