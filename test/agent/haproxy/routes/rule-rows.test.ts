import test from 'ava';
import fc from 'fast-check';
import { expressionOf, isMatch } from '../../../../agent/base/expression/expression.ts';
import { subjectExpression } from '../../../../agent/base/expression/subject.ts';
import type { MapRow } from '../../../../agent/haproxy/routes/maps.ts';
import { cidrsOf, ruleTarget, weightedTarget } from '../../../../agent/haproxy/routes/rule-rows.ts';
import { commandText } from '../../../../agent/haproxy/socket/command-text.ts';
import { capabilitiesOf, parseVersion } from '../../../../agent/haproxy/socket/version.ts';
import type { RouteRule } from '../../../../agent/model/routes.ts';
import { forwardTo, poolName, ruleOf } from '../../../support/values/routes.ts';

const A = poolName('a');

/** `MAP VALUE` of each row, without the ids. */
const valuesOf = (rows: readonly MapRow[]): readonly string[] =>
  rows.map(({ map, value }) => `${map} ${value.replace(/fd[0-9a-f:]+::/, 'BLOCK')}`).sort();

for (const [what, rule, target, rows] of [
  ['one pool', ruleOf('a'), A, []],
  ['one pool and others without a weight', ruleOf({ a: 3, b: 0 }), A, []],
  ['a Service that does not exist', ruleOf('-'), 'e500', []],
  ['no backend', ruleOf({}), 'e500', []],
  ['no backend of gRPC', ruleOf(forwardTo('-', { failure: 503 })), 'e503', []],
  ['an answer', ruleOf({ kind: 'answer', status: 403 }), 'e403', []],
  [
    'a timeout',
    ruleOf(forwardTo('a', { timeout: 500 })),
    'r:',
    ['backend pool:default:a:tcp:80:v4', 'timeout 500'],
  ],
  [
    'weights',
    ruleOf({ a: 70, b: 30 }),
    'r:',
    [
      'shares pool:default:a:tcp:80:v4',
      'shares pool:default:a:tcp:80:v4',
      'shares pool:default:a:tcp:80:v4',
      'shares pool:default:b:tcp:80:v4',
      'shares pool:default:b:tcp:80:v4',
      'weights 10|BLOCK',
    ],
  ],
  [
    'a rewritten prefix',
    ruleOf(forwardTo('a', { rewrite: { hostname: 'B.example', path: { kind: 'prefix', value: '/x y' } } })),
    'r:',
    ['backend pool:default:a:tcp:80:v4', 'host b.example', 'path 2/x%20y'],
  ],
  [
    'groups',
    ruleOf(
      forwardTo('a', {
        rewrite: { hostname: '', path: { kind: 'groups', value: '/b $1', pattern: '/x/?(.*)' } },
      }),
    ),
    'r:',
    ['backend pool:default:a:tcp:80:v4', 'path ~/b%20$1 c47 c120 s4,5 c47 g2 a g3 m'],
  ],
  [
    'a certificate for members',
    ruleOf(
      forwardTo('a', {
        passesCertificate: true,
        requestHeaders: { set: [{ name: 'X-A', value: 'b' }], add: [], remove: [] },
      }),
    ),
    'r:',
    ['backend pool:default:a:tcp:80:v4', 'request-headers sX-A=b&cssl-client-cert'],
  ],
  [
    'a cookie',
    ruleOf(
      forwardTo('a', { cookie: { name: 'rt;x', secure: 'https', attributes: ['Path=/\\;a', 'HttpOnly'] } }),
    ),
    'r:',
    ['backend pool:default:a:tcp:80:v4', 'cookie rtx|https|; Path=/a; HttpOnly'],
  ],
  [
    'retries of some methods only',
    ruleOf(forwardTo('a', { retriesIdempotentOnly: true })),
    'r:',
    ['backend pool:default:a:tcp:80:v4', 'retry idempotent'],
  ],
  [
    'a default backend',
    ruleOf(forwardTo('a', { fallback: poolName('b') })),
    'r:',
    ['backend pool:default:a:tcp:80:v4', 'fallback pool:default:b:tcp:80:v4'],
  ],
  [
    'a choice by a key',
    ruleOf(forwardTo('a', { hashBy: '$request_uri|$host;' })),
    'r:',
    ['backend pool:default:a:tcp:80:v4', 'hash-by $request_uri%7C$host%3B'],
  ],
  [
    'a redirect',
    ruleOf({
      kind: 'redirect',
      status: 301,
      scheme: 'https',
      hostname: 'b.example',
      port: 8443,
      path: { kind: 'full', value: '/x' },
    }),
    'r:',
    ['path =/x', 'redirect 301|https://|b.example|:8443'],
  ],
  [
    'CORS',
    ruleOf('a', {
      cors: {
        origins: ['https://a.example', 'https://*.b.example', '*'],
        methods: ['GET', 'PUT'],
        allowHeaders: ['X-A;\r\n'],
        exposeHeaders: [],
        maxAge: 5,
        credentials: true,
      },
    }),
    'r:',
    ['backend pool:default:a:tcp:80:v4', 'cors GET, PUT;X-A;;5;true', 'origins *', 'origins 1', 'origins 1'],
  ],
] as const satisfies readonly (readonly [string, RouteRule, string, readonly string[]])[])
  test(`ruleTarget() gives the target and rows of ${what}`, (t) => {
    const made = ruleTarget(rule, 'S.host', '/a/b');
    t.true(made.target === target || (target === 'r:' && /^r:[0-9a-f]{24}$/.test(made.target)), made.target);
    t.deepEqual(valuesOf(made.rows), rows);
  });

test('ruleTarget() gives rules of other tables and with other contents other ids', (t) => {
  const idOf = (rule: RouteRule, table = 'S.host'): string => ruleTarget(rule, table, '').target;
  const ids = [
    idOf(ruleOf({ a: 1, b: 2 })),
    idOf(ruleOf({ a: 2, b: 1 })),
    idOf(ruleOf({ a: 1, b: 2 }), 'S.other'),
    idOf(ruleOf(forwardTo({ a: 1, b: 2 }, { timeout: 5 }))),
  ];
  t.is(new Set(ids).size, ids.length);
  t.is(idOf(ruleOf({ a: 1, b: 2 })), idOf(ruleOf({ a: 100, b: 200 })));
});

test('weightedTarget() gives each backend its exact share of the numbers below the sum', (t) => {
  const weights = fc.array(fc.integer({ min: 0, max: 1_000_000 }), { minLength: 2, maxLength: 6 });
  const property = fc.property(weights, (some) => {
    const backends = some.map((weight, at) => ({ ...forwardTo(`s${at}`).backends[0], weight }));
    const made = weightedTarget(backends as Parameters<typeof weightedTarget>[0], 'T');
    const used = some.filter((weight) => weight > 0);
    if (used.length < 2) return made.rows.length === 0;
    const total = Number(made.rows.find(({ map }) => map === 'weights')?.value.split('|')[0]);
    const sum = used.reduce((a, b) => a + b, 0);
    return some.every((weight, at) => {
      const own = made.rows.filter(({ map, value }) => map === 'shares' && value === poolName(`s${at}`));
      const size = own.reduce((count, { key }) => count + 2 ** (128 - Number(key.split('/')[1])), 0);
      return size * sum === weight * total;
    });
  });
  t.notThrows(() => fc.assert(property, { numRuns: 200 }));
});

test('cidrsOf() covers exactly the numbers of a range, with aligned blocks', (t) => {
  const property = fc.property(
    fc.integer({ min: 0, max: 300 }),
    fc.integer({ min: 0, max: 300 }),
    (from, length) => {
      const numbers = cidrsOf(from, from + length).flatMap((cidr) => {
        const [address = '', bits] = cidr.split('/');
        const first = address.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0);
        const size = 2 ** (128 - Number(bits));
        if (first % size !== 0) return [-1];
        return Array.from({ length: size }, (_, at) => first + at);
      });
      return JSON.stringify(numbers) === JSON.stringify(Array.from({ length }, (_, at) => from + at));
    },
  );
  t.notThrows(() => fc.assert(property, { numRuns: 200 }));
});

const text = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('\r\nX: 1', 'a b;c|d', '<<', '#', '\\', ' '),
);
const changes = fc.record({
  set: fc.array(fc.record({ name: text, value: text }), { maxLength: 2 }),
  add: fc.array(fc.record({ name: text, value: text }), { maxLength: 2 }),
  remove: fc.array(text, { maxLength: 2 }),
});
const path = fc.record({ kind: fc.constantFrom<'full' | 'prefix'>('full', 'prefix'), value: text });
const rules = fc
  .record({
    forward: fc.boolean(),
    changes,
    path,
    host: text,
    cors: fc.record({
      origins: fc.array(text),
      methods: fc.array(text),
      allowHeaders: fc.array(text),
      exposeHeaders: fc.array(text),
      maxAge: fc.nat(),
      credentials: fc.boolean(),
    }),
  })
  .map(({ forward, changes, path, host, cors }) =>
    ruleOf(
      forward
        ? forwardTo({ a: 1, b: 2 }, { requestHeaders: changes, rewrite: { hostname: host, path } })
        : { kind: 'redirect', status: 302, scheme: '', hostname: host, port: 0, path },
      { cors, responseHeaders: changes },
    ),
  );

test('ruleTarget() makes rows that fit into commands and lines of files, whatever texts a rule has', (t) => {
  const capabilities = capabilitiesOf(parseVersion('2.6.12'));
  const property = fc.property(rules, (rule) => {
    for (const { key, value } of ruleTarget(rule, 'T', '/a').rows) {
      const line = commandText({ kind: 'AddMapEntry', map: '/m', key, value }, capabilities);
      if (line !== `add map /m <<\n${key} ${value}\n` || line.split('\n').length !== 3) return false;
      commandText({ kind: 'DeleteMapEntry', map: '/m', key, value }, capabilities);
    }
    return true;
  });
  t.notThrows(() => fc.assert(property, { numRuns: 300 }));
});

test('A name in certificates is an expression of the subject', (t) => {
  const { target, rows } = ruleTarget(ruleOf('a', { certificateName: 'CN=a' }), 'table', '');
  const [expression, name] = rows.slice(-3);
  t.deepEqual(
    rows.map(({ map }) => map),
    ['expressions', 'certificate-name', 'backend'],
  );
  t.deepEqual([name?.key, name?.value], [target, expression?.key]);
  const made = expressionOf(subjectExpression('CN=a'), 'start');
  t.is(expression?.value, typeof made === 'string' ? '' : made.text);
});

for (const [name, subject, expected] of [
  ['CN=shop', 'CN=shop,O=Headgate', true],
  ['CN=shop', 'CN=shop-test', true],
  ['CN=shop(,|$)', 'CN=shop-test', false],
  ['CN=shop(,|$)', 'emailAddress=a@b.c,CN=shop', true],
  ['CN=shop(,|$)', 'O=Headgate\\,CN=shop', false],
  ['CN=shop(,|$)', 'O=Headgate CN=shop', false],
  ['CN=a|CN=b', 'O=x,CN=b', true],
  ['CN=shop', '', false],
  ['CN=.*,OU=admins', 'CN=ann,OU=admins,O=x', true],
] as const)
  test(`A subject "${subject}" is ${expected ? '' : 'not '}matched by ${name}`, (t) => {
    t.is(isMatch(subjectExpression(name), 'start', subject), expected);
  });
