import test from 'ava';
import {
  authUrl,
  EXTERNAL_AUTH_ANNOTATIONS,
  signInUrl,
} from '../../../../agent/translate/ingress/external-auth-annotations.ts';

for (const [text, ...expected] of [
  [
    'http://auth.sso.svc.cluster.local:4180/oauth2/auth',
    'http',
    'auth.sso.svc.cluster.local',
    4180,
    '/oauth2/auth',
  ],
  ['https://$host/oauth2/auth', 'https', '$host', 443, '/oauth2/auth'],
  ['https://$http_host/oauth2/auth', 'https', '$host', 443, '/oauth2/auth'],
  ['$scheme://$best_http_host/auth?a=b', 'https', '$host', 443, '/auth?a=b'],
  ['http://Auth.example.org', 'http', 'auth.example.org', 80, '/'],
  ['http://a.b.svc/x?rd=$escaped_request_uri', 'http', 'a.b.svc', 80, '/x?rd=$escaped_request_uri'],
] as const)
  test(`authUrl() reads ${text}`, (t) => {
    const [scheme, host, port, path] = expected;
    t.deepEqual(authUrl(text), { scheme, host, port, path });
  });

for (const text of [
  ...[
    '',
    'auth',
    '/auth',
    'ftp://a.b.svc/',
    'http:///auth',
    'http://a b/',
    'http://user@a.b.svc/',
    'http://a:0/',
  ],
  ...[
    'http://$arg_host/',
    'http://$host.evil/',
    'http://a.b.svc$request_uri',
    'http://a.b.svc/$uri',
    'http://a/#x',
  ],
  ...[
    'http://a.b.svc/../x',
    'http://a.b.svc/%2e%2e/x',
    'http://a:70000/',
    'http://a/?b=$http_cookie',
    'http://a/?$',
  ],
  ...['http://a/\nx', 'http://a/"', 'http://[::1]/', `http://a/${'x'.repeat(1_100)}`],
])
  test(`authUrl() refuses ${JSON.stringify(text.slice(0, 40))}`, (t) => {
    t.is(authUrl(text), undefined);
  });

const ASKED_FOR = '$scheme://$http_host$escaped_request_uri';
for (const [url, expected, parameter] of [
  ['https://a/start', `https://a/start?rd=${ASKED_FOR}`],
  ['https://a/start?x=1', `https://a/start?x=1&rd=${ASKED_FOR}`],
  ['https://a/start?rd=$escaped_request_uri', 'https://a/start?rd=$escaped_request_uri'],
  ['https://a/start?rd=/x', `https://a/start?rd=/x&url=${ASKED_FOR}`, 'url'],
  ['https://a/start?', `https://a/start?rd=${ASKED_FOR}`],
] as const)
  test(`signInUrl() of ${url} tells what the client has asked for`, (t) => {
    t.is(signInUrl(url, parameter), expected);
  });

test('A header of a connection or body cannot come from an authorization server', (t) => {
  const { parse } = EXTERNAL_AUTH_ANNOTATIONS['auth-response-headers'];
  t.deepEqual(parse('X-User, Authorization'), ['X-User', 'Authorization']);
  for (const name of [
    'Host',
    'connection',
    'Content-Length',
    'content-type',
    'Transfer-Encoding',
    'TE',
    'Upgrade',
  ])
    t.is(parse(`X-User,${name}`), undefined, name);
});
