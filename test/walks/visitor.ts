// Does what docs/external-auth.md says, and then what its clients do: a real browser signs in and out, by an Ingress and by a
// Gateway, at the real oauth2-proxy with the provider of its own tests; visitor.test.ts starts it.

import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { kubePrograms } from '../support/kube/kube.ts';
import { Browser, type Page } from '../support/report/browser.ts';
import { blocksOf } from '../support/repository/markdown.ts';
import { Reader, textOf } from './reader.ts';
import { type Names, visitorObjects } from './visitor-objects.ts';

const { 'oauth2-proxy': proxy = '', mockoidc = '' } = await kubePrograms(['oauth2-proxy', 'mockoidc']);
const reader = new Reader(process.argv[2] ?? '');
const say = (sentence: string): void => console.log(`\n${sentence}`);

/** The user of mockoidc. */
const USER = '1234567890';
const SHOP: Names = { host: 'shop.example.org', address: '127.0.0.20' };
const DESK: Names = { host: 'desk.example.org', address: '127.0.0.21' };
/** A page with a query that must come back as it was. */
const PAGE = '/orders?item=%2F&sort=price&note=a%20b';

// A member whose page is what it got.
const got: { readonly url: string; readonly headers: IncomingHttpHeaders }[] = [];
createServer(({ url = '', headers }, response) => {
  got.push({ url, headers });
  response.setHeader('content-type', 'text/html; charset=utf-8');
  // Without this line the browser asks for an icon, and the provider signs it in for that.
  response.end(
    `<title>A member</title><link rel=icon href=data:,><p>${url.replaceAll('&', '&amp;')} of ${headers.host}`,
  );
}).listen(8080, '127.0.0.30');

say('The provider and oauth2-proxy start, and a certificate is made for both hosts.');
const [id, secret] = ['headgate', 'not-secret'];
await reader.start(`${mockoidc} 127.0.0.50:5556 ${id} ${secret}`).printed(/^http:/m);
const issuer = 'http://127.0.0.50:5556/oidc';
const ofProvider = `--provider=oidc --oidc-issuer-url=${issuer} --client-id=${id} --client-secret=${secret}`;
const ofCookies = `--cookie-secret=${'c'.repeat(32)} --whitelist-domain=.example.org --email-domain='*'`;
const asService = '--reverse-proxy --set-xauthrequest --upstream=static://200 --skip-provider-button';
reader.start(`${proxy} --http-address=127.0.0.40:4180 ${ofProvider} ${ofCookies} ${asService} 2>&1`);
await reader.until('curl -s http://127.0.0.40:4180/ping', /^OK$/);
const pem = (end: string) => readFileSync(`/etc/tls.${end}`, 'utf8');
await reader.run(
  `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3 -subj /CN=walk -addext subjectAltName=DNS:${SHOP.host},DNS:${DESK.host} -keyout /etc/tls.key -out /etc/tls.crt 2>/dev/null`,
);

say('The objects of docs/external-auth.md are written, and the agent starts.');
const [annotations = '', filters = ''] = blocksOf(textOf('docs/external-auth.md'), 'yaml');
const objects = visitorObjects({
  shop: SHOP,
  desk: DESK,
  annotations,
  filters,
  key: pem('key'),
  cert: pem('crt'),
});
mkdirSync('/etc/headgate/manifests', { recursive: true });
writeFileSync('/etc/headgate/manifests/all.yaml', objects);
await reader.run('bin/headgate render --strict --manifests /etc/headgate/manifests >/dev/null');
const [, start = ''] = reader.blocks('docs/operations.md', 4);
const agent = reader.start(start);
for (const { host, address } of [SHOP, DESK])
  await reader.until(
    `curl -sk -o /dev/null -w '%{http_code}' --resolve ${host}:443:${address} https://${host}/orders`,
    /^302$/,
  );
assert.equal(got.length, 0);

const key = new X509Certificate(pem('crt')).publicKey.export({ type: 'spki', format: 'der' });
const trusted = createHash('sha256').update(key).digest('base64');
const browser = await Browser.start([
  `--ignore-certificate-errors-spki-list=${trusted}`,
  `--host-resolver-rules=${[SHOP, DESK].map(({ host, address }) => `MAP ${host} ${address}`).join(',')}`,
]);

for (const [names, way, first] of [
  [SHOP, 'an Ingress', 'http'],
  [DESK, 'a Gateway', 'https'],
] as const)
  await visit(await browser.open(), names, { way, first });
await browser.close();

assert.equal(await agent.interrupt(), 0);
assert.doesNotMatch(agent.output(), /"level":"error"/);
say('A browser has signed in and out through an Ingress and through a Gateway.');
console.log('The walk is complete');
process.exit(0);

interface How {
  readonly way: string;
  /** The scheme of the first page. */
  readonly first: string;
}

async function visit(page: Page, { host }: Names, { way, first }: How): Promise<void> {
  const home = `https://${host}`;
  await page.send('Network.setExtraHTTPHeaders', {
    headers: { 'X-Auth-Request-User': 'root', X_Auth_Request_User: 'root' },
  });
  say(`A browser with a forged header asks for ${first}://${host}${PAGE}, which ${way} guards.`);
  const before = got.length;
  await page.go(`${first}://${host}${PAGE}`);
  await page.until(`location.href === ${JSON.stringify(home + PAGE)} && document.title === 'A member'`);
  const hops = page.visited.map((each) => each.replace(/\?.*/, ''));
  console.log(hops.map((each) => `  it asked for ${each}`).join('\n'));
  assert.ok(hops.includes(`${issuer}/authorize`), 'It was sent to the provider');
  assert.ok(hops.includes(`${home}/oauth2/callback`), 'It came back');
  say('It is signed in, and on the page that it has asked for, with its query.');
  const [question, ...more] = got.slice(before);
  assert.deepEqual([question?.url, more.length], [PAGE, 0], 'The member got this one request');
  assert.equal(question?.headers['x-auth-request-user'], USER);
  assert.equal(question?.headers.x_auth_request_user, undefined);
  say(`The member got X-Auth-Request-User: ${USER}, and not what the browser has forged.`);

  const { cookies } = (await page.send('Network.getCookies', { urls: [home] })) as {
    readonly cookies: readonly {
      readonly name: string;
      readonly secure: boolean;
      readonly httpOnly: boolean;
    }[];
  };
  const own = cookies.filter(({ name }) => name === '_oauth2_proxy');
  assert.deepEqual(
    own.map(({ secure, httpOnly }) => [secure, httpOnly]),
    [[true, true]],
  );
  say('Its cookie is Secure and HttpOnly. The next page needs no sign-in.');
  await page.go(`${home}/next`);
  await page.until(`location.href === '${home}/next' && document.title === 'A member'`);
  assert.equal(page.visited.at(-1), `${home}/next`);
  const status = "fetch('/data', {method: 'POST', body: 'x'.repeat(100000)}).then(({status}) => status)";
  assert.equal(await page.value(status), 200);

  say('It signs out, and lands on a page that is open to everybody.');
  await page.go(`${home}/oauth2/sign_out?rd=%2Fpublic`);
  await page.until(`location.href === '${home}/public' && document.title === 'A member'`);
  const last = got.length;
  const refused = await page.value(
    "fetch('/orders', {redirect: 'manual'}).then(async (answer) => [answer.type, answer.status, await answer.text()])",
  );
  assert.deepEqual(refused, ['opaqueredirect', 0, '']);
  assert.equal(got.length, last);
  say('The first page is closed again: the browser is sent to sign in, and the member gets nothing.');
  page.close();
}
