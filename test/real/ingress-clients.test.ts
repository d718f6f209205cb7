// Who may be a client of an Ingress, at the real HAProxy: users with passwords, and certificates that are not revoked.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { Authority, askInTls, type IssuedCertificate, tlsSecret } from '../support/traffic/tls.ts';
import { backendObjects, ingressClassJson, ingressJson } from '../support/values/gateways.ts';
import { basic, HASHES, OTHER_HASHES } from '../support/values/users.ts';

// Ingresses have ports 80 and 443.
const test = requires(ava, { haproxy: true, programs: ['openssl'], root: true });

const NAME = 'shop.example.org';
const PREFIX = 'nginx.ingress.kubernetes.io/';

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

test.serial('A client of an Ingress needs a user and a password of its Secret', async (t) => {
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
});

test.serial(
  'A client of an Ingress whose certificate is revoked is refused, and others are served',
  async (t) => {
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
    const question = `GET / HTTP/1.1\r\nhost: ${NAME}\r\nconnection: close\r\n\r\n`;
    const isServed = (client: Partial<IssuedCertificate>): Promise<boolean> =>
      askInTls(place, { servername: NAME, ca: own.cert, ...client }, question).then(
        (text) => text.includes('"member":"web"'),
        () => false,
      );
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
  },
);
