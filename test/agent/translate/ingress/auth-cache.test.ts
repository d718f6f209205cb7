import test from 'ava';
import { cacheDuration, cacheKey } from '../../../../agent/translate/ingress/auth-cache.ts';

for (const [text, variables, credentials] of [
  ['$remote_user$http_authorization', ['http_authorization'], ['http_authorization']],
  ['$cookie_session|$request_uri', ['cookie_session', 'request_uri'], ['cookie_session']],
  ['$http_x_api_key$host$host', ['http_x_api_key', 'host'], ['http_x_api_key']],
  ['$http_cookie$http_user_agent', ['http_cookie', 'http_user_agent'], ['http_cookie']],
] as const)
  test(`cacheKey() reads ${text}`, (t) => {
    t.deepEqual(cacheKey(text), { variables, credentials });
  });

for (const text of [
  ...['', 'all', '$host', '$remote_user', '$remote_addr', '$http_user_agent', '$http_sec_websocket_key'],
  ...['$http_authorization $host', '$http_authorization$', '$http_authorization$ssl_client_s_dn'],
  ...['$http_authorization\u00e9', `$http_authorization${'x'.repeat(300)}`, '$cookie_'],
])
  test(`cacheKey() refuses ${JSON.stringify(text.slice(0, 40))}`, (t) => {
    t.is(cacheKey(text), undefined);
  });

for (const [text, expected] of [
  [
    '200 202 401 5m',
    [
      [200, 300],
      [202, 300],
      [401, 300],
    ],
  ],
  [
    '200 10m, 401 1s',
    [
      [200, 600],
      [401, 1],
    ],
  ],
  ['30', [[200, 30]]],
  ['200', [[200, 200]]],
  ['1h', [[200, 3600]]],
  ['404 500 302 1m', []],
  ['200 0s', []],
  ['200 1m, 200 1h', [[200, 60]]],
] as const)
  test(`cacheDuration() reads ${text}`, (t) => {
    t.deepEqual(cacheDuration(text), expected);
  });

test('cacheDuration() takes every status that clients see as "any"', (t) => {
  t.deepEqual(
    cacheDuration('any 1m')?.map(([status]) => status),
    [200, 201, 202, 204, 206, 401, 403],
  );
});

for (const text of ['', 'ok', '200 5x', '200 2d', '200 5m;', '200 -1s', '2xx 5m', '200 5m,', '200 1m 30s'])
  test(`cacheDuration() refuses ${JSON.stringify(text)}`, (t) => {
    t.is(cacheDuration(text), undefined);
  });
