import test from 'ava';
import { readIngressOptions } from '../../../../agent/translate/ingress/nginx-annotations.ts';
import { sessionCookieOf } from '../../../../agent/translate/ingress/session-cookie.ts';

const PREFIX = 'nginx.ingress.kubernetes.io/';
const read = (given: Readonly<Record<string, string>>) =>
  readIngressOptions(
    Object.fromEntries(Object.entries(given).map(([name, value]) => [PREFIX + name, value])),
  );

for (const [title, given, expected] of [
  ['without affinity there is none', { 'session-cookie-name': 'route' }, undefined],
  [
    'its name is that of ingress-nginx',
    { affinity: 'cookie' },
    { name: 'INGRESSCOOKIE', secure: 'https', attributes: ['Path=/', 'HttpOnly', 'SameSite=Lax'] },
  ],
  [
    'a name alone keeps the rest',
    { affinity: 'cookie', 'session-cookie-name': 'route' },
    { name: 'route', secure: 'https', attributes: ['Path=/', 'HttpOnly', 'SameSite=Lax'] },
  ],
  [
    'all of it',
    {
      affinity: 'cookie',
      'session-cookie-name': 'route',
      'session-cookie-path': '/shop',
      'session-cookie-domain': '.example.org',
      'session-cookie-max-age': '3600',
      'session-cookie-expires': '60',
      'session-cookie-samesite': 'None',
      'session-cookie-secure': 'true',
    },
    {
      name: 'route',
      secure: 'always',
      attributes: ['Path=/shop', 'Domain=.example.org', 'Max-Age=3600', 'HttpOnly', 'SameSite=None'],
    },
  ],
  [
    'it expires, and is not secure',
    { affinity: 'cookie', 'session-cookie-expires': '60', 'session-cookie-secure': 'false' },
    {
      name: 'INGRESSCOOKIE',
      secure: 'never',
      attributes: ['Path=/', 'Max-Age=60', 'HttpOnly', 'SameSite=Lax'],
    },
  ],
] as const)
  test(`The cookie of an Ingress: ${title}`, (t) => {
    const { options, faults } = read(given);
    t.deepEqual(faults, []);
    t.deepEqual(sessionCookieOf(options), expected);
  });

for (const [name, value] of [
  ['session-cookie-name', 'a;b'],
  ['session-cookie-name', 'a=b'],
  ['session-cookie-path', '/a;Secure'],
  ['session-cookie-path', '/\\1'],
  ['session-cookie-path', '/%[src]'],
  ['session-cookie-domain', 'a b'],
  ['session-cookie-max-age', '1h'],
  ['session-cookie-samesite', 'lax'],
] as const)
  test(`The cookie of an Ingress with ${name} ${value} is as without it, and its author is told`, (t) => {
    const { options, faults, isClosed } = read({ affinity: 'cookie', [name]: value });
    t.is(faults.length, 1);
    t.false(isClosed);
    t.deepEqual(sessionCookieOf(options), sessionCookieOf({ affinity: 'cookie' }));
  });
