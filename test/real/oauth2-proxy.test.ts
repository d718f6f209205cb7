// The real oauth2-proxy in front of a member: a client signs in and out, by `auth-url` of an Ingress and by ExternalAuth of an
// HTTPRoute. test/support/kube/kube-assets.sh builds it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import ava, { type ExecutionContext } from 'ava';
import { eventually } from '../support/basics/eventually.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { kubeNeeds, kubePrograms } from '../support/kube/kube.ts';
import { externalAuth } from '../support/traffic/authorizer.ts';
import { type Answer, request, startEcho } from '../support/traffic/echo.ts';
import { startOidcProvider, USER } from '../support/traffic/oidc-provider.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { entryOf, gatewayOf, poolOf, sectionOf } from '../support/values/routes.ts';

const needs = kubeNeeds('oauth2-proxy');
const test = requires(ava, { ...needs, haproxy: true });

const CLIENT_ID = 'headgate';
const HOSTS = { ingress: 'ingress.example.org', route: 'route.example.org' } as const;

async function startOauth2Proxy(t: ExecutionContext): Promise<string> {
  const { 'oauth2-proxy': program = '' } = await kubePrograms(['oauth2-proxy']);
  const issuer = await startOidcProvider(t, CLIENT_ID);
  const place = `127.0.0.1:${await freePort()}`;
  const child = spawn(
    program,
    [
      ...[`--http-address=${place}`, '--provider=oidc', `--oidc-issuer-url=${issuer}`],
      ...[`--client-id=${CLIENT_ID}`, '--client-secret=secret', `--cookie-secret=${'c'.repeat(32)}`],
      ...['--cookie-secure=false', '--email-domain=*', '--reverse-proxy=true', '--upstream=static://200'],
      ...['--set-xauthrequest=true', '--skip-provider-button=true'],
    ],
    { stdio: 'ignore' },
  );
  const ended = once(child, 'close');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const [address = '', port] = place.split(':');
  await eventually(
    async () =>
      request({ address, port: Number(port) }, '/ping', { headers: { host: 'auth' } }).catch(() => undefined),
    (answer) => answer?.status === 200,
  );
  return place;
}

async function served(t: ExecutionContext): Promise<Place> {
  const proxy = await startOauth2Proxy(t);
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
    poolOf('auth', [proxy]),
  ]);
  return place;
}

/** Follows redirects, and keeps cookies by host, as a browser. */
class Visitor {
  readonly cookies = new Map<string, string>();
  readonly #place: Place;

  constructor(place: Place) {
    this.#place = place;
  }

  async visit(from: string, most = 10): Promise<Answer & { readonly hops: readonly string[] }> {
    const hops: string[] = [];
    for (let url = new URL(from); ; ) {
      hops.push(`${url.host}${url.pathname}`);
      const isOurs = url.hostname.endsWith('.example.org');
      const place = isOurs ? this.#place : { address: url.hostname, port: Number(url.port) };
      const cookie = isOurs ? [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ') : '';
      const headers = { host: url.host, ...(cookie !== '' && { cookie }) };
      const answer = await request(place, url.pathname + url.search, { headers });
      for (const [, name = '', value = ''] of (answer.headers['set-cookie'] ?? '').matchAll(
        /(?:^|, )(_oauth2[^=]*)=([^;]*)/g,
      ))
        if (value === '') this.cookies.delete(name);
        else this.cookies.set(name, value);
      if (answer.headers.location === undefined || hops.length === most) return { ...answer, hops };
      url = new URL(answer.headers.location, url);
    }
  }
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
