import test from 'ava';
import { proxyOf, throughProxy } from '../../../../agent/kubernetes/access/proxy.ts';

const PROXY = 'http://proxy.example.org:3128/';

const goes = test.macro({
  exec(t, server: string, env: Record<string, string>, proxy: string | undefined) {
    t.is(proxyOf(new URL(server), env), proxy);
  },
  title: (what) => `By the environment ${what}`,
});

const https = { HTTPS_PROXY: PROXY };

test('no proxy is used if none is named', goes, 'https://192.0.2.1', {}, undefined);
test('a server with TLS has that of HTTPS_PROXY', goes, 'https://192.0.2.1:6443', https, PROXY);
test('a server without TLS has that of HTTP_PROXY', goes, 'http://192.0.2.1', https, undefined);
test('lower case counts', goes, 'https://192.0.2.1', { https_proxy: PROXY }, PROXY);
test(
  'upper case counts first',
  goes,
  'https://192.0.2.1',
  { https_proxy: 'http://192.0.2.9', HTTPS_PROXY: PROXY },
  PROXY,
);
test('a proxy needs no scheme', goes, 'https://192.0.2.1', { HTTPS_PROXY: 'proxy.example.org:3128' }, PROXY);
test('a proxy keeps its password', goes, 'https://a.b', { HTTPS_PROXY: 'http://a:b@c:1' }, 'http://a:b@c:1/');

for (const server of ['localhost', '127.0.0.1', '127.9.9.9', '[::1]'])
  test(`${server} is reached without a proxy`, goes, `https://${server}:6443`, https, undefined);

for (const [entry, server, isDirect] of [
  ['*', 'https://api.example.org', true],
  ['192.0.2.1', 'https://192.0.2.1:6443', true],
  ['192.0.2.1', 'https://192.0.2.10:6443', false],
  ['192.0.2.0/24', 'https://192.0.2.10:6443', true],
  ['192.0.2.7/24', 'https://192.0.2.10:6443', true],
  ['192.0.2.0/24', 'https://198.51.100.1:6443', false],
  ['192.0.2.0/24', 'https://api.example.org', false],
  ['2001:db8::/32', 'https://[2001:db8::7]:6443', true],
  ['2001:db8::7', 'https://[2001:db8::7]:6443', true],
  ['[2001:db8::7]:6443', 'https://[2001:db8::7]:6443', true],
  ['[2001:db8::7]:443', 'https://[2001:db8::7]:6443', false],
  ['192.0.2.1:443', 'https://192.0.2.1', true],
  ['192.0.2.1:443', 'https://192.0.2.1:6443', false],
  ['example.org', 'https://example.org', true],
  ['example.org', 'https://api.example.org', true],
  ['EXAMPLE.org', 'https://API.example.org', true],
  ['example.org', 'https://badexample.org', false],
  ['.example.org', 'https://api.example.org', true],
  ['.example.org', 'https://example.org', false],
  ['*.example.org', 'https://api.example.org', true],
  ['example.org:6443', 'https://api.example.org:6443', true],
  ['example.org:6443', 'https://api.example.org', false],
  [' a , ,192.0.2.1 ', 'https://192.0.2.1', true],
  ['', 'https://192.0.2.1', false],
] as const)
  test(
    `"${entry}" in NO_PROXY ${isDirect ? 'spares' : 'does not spare'} ${server}`,
    goes,
    server,
    { ...https, NO_PROXY: entry },
    isDirect ? undefined : PROXY,
  );

for (const text of ['socks5://192.0.2.1:1080', 'http://', 'ftp://a:secret@b'])
  test(`proxyOf() refuses "${text}" without its password in the message`, (t) => {
    const error = t.throws(() => proxyOf(new URL('https://192.0.2.1'), { HTTPS_PROXY: text }));
    t.is(error?.message, 'HTTPS_PROXY is not the URL of an HTTP proxy');
  });

test('throughProxy() allows only the given proxy, or none', (t) => {
  t.deepEqual(throughProxy(PROXY), { proxyEnv: { http_proxy: PROXY, https_proxy: PROXY, no_proxy: '' } });
  t.deepEqual(throughProxy(''), { proxyEnv: {} });
});
