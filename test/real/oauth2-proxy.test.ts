// The real oauth2-proxy in front of a member: a client signs in and out, by `auth-url` of an Ingress and by ExternalAuth of an
// HTTPRoute. test/support/kube/kube-assets.sh builds it.

import ava, { type ExecutionContext } from 'ava';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { kubeNeeds } from '../support/kube/kube.ts';
import { externalAuth } from '../support/traffic/authorizer.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { CLIENT_ID, startOauth2Proxy, Visitor } from '../support/traffic/oauth2-proxy.ts';
import { startOidcProvider, USER } from '../support/traffic/oidc-provider.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { entryOf, gatewayOf, poolOf, sectionOf } from '../support/values/routes.ts';

const needs = kubeNeeds('oauth2-proxy');
const test = requires(ava, { ...needs, haproxy: true });

const HOSTS = { ingress: 'ingress.example.org', route: 'route.example.org' } as const;

async function served(t: ExecutionContext): Promise<Place> {
  const issuer = await startOidcProvider(t, CLIENT_ID);
  const proxy = await startOauth2Proxy(t, issuer, `127.0.0.1:${await freePort()}`);
  const place = { address: '127.0.0.1', port: await freePort() };
  const ofIngress = externalAuth({
    ...{ host: '$host', path: '/oauth2/auth', responseHeaders: ['X-Auth-Request-Email'] },
    refusal: {
      ...externalAuth().refusal,
      signIn: 'http://$http_host/oauth2/start?rd=$escaped_request_uri',
    },
  });
  const ofRoute = externalAuth({
    ...{ host: '', path: '', isPrefix: true, letsIn: '200', method: 'of-request' },
    requestHeaders: ['cookie', 'x-forwarded-proto'],
    responseHeaders: ['X-Auth-Request-Email'],
    refusal: { signIn: '', redirect: '', passesRedirects: true, alwaysSetsCookies: true },
  });
  const hosts = Object.entries(HOSTS).map(([kind, host]) => [
    host,
    [
      entryOf('/oauth2', 'auth'),
      entryOf('/', 'web', { externalAuth: kind === 'ingress' ? ofIngress : ofRoute }),
    ],
  ]);
  await startRendered(t, [
    gatewayOf(place, [sectionOf('http', '*', Object.fromEntries(hosts))], { asksServers: true }),
    poolOf('web', [await startEcho(t, 'web')]),
    poolOf('auth', [proxy.place]),
  ]);
  return place;
}

for (const [kind, host] of Object.entries(HOSTS))
  test.serial(`A client signs in at oauth2-proxy and out again (${kind})`, async (t) => {
    const place = await served(t);
    const visitor = new Visitor(place);
    const forged = await request(place, '/a', { headers: { host, 'x-auth-request-email': 'root' } });
    t.is(forged.status, 302);
    t.is(forged.echo, undefined);
    const first = await visitor.visit(`http://${host}/a?b=1&c=%2F`);
    t.deepEqual([first.status, first.echo?.url], [200, '/a?b=1&c=%2F']);
    t.is(first.echo?.headers['x-auth-request-email'], USER);
    const again = await visitor.visit(`http://${host}/again`);
    t.deepEqual([again.status, again.hops.length, again.echo?.url], [200, 1, '/again']);
    await visitor.visit(`http://${host}/oauth2/sign_out`, 1);
    t.deepEqual(
      [...visitor.cookies.keys()].filter((name) => name === '_oauth2_proxy'),
      [],
    );
    const out = await visitor.visit(`http://${host}/again`, 1);
    t.deepEqual([out.status, out.echo], [302, undefined]);
    const stolen = await request(place, '/', { headers: { host, cookie: '_oauth2_proxy=forged' } });
    t.deepEqual([stolen.status, stolen.echo], [302, undefined]);
  });
