// A canary is no way around what the Ingress asks of its clients; what the canary asks for besides comes on top.

import test from 'ava';
import type { HttpRouting, RouteEntry } from '../../../../agent/model/routes.ts';
import { asksForMore, bothGuards } from '../../../../agent/translate/ingress/canary-guards.ts';
import { service } from '../../../support/values/build.ts';
import { GatewayWorld } from '../../../support/values/gateway-world.ts';
import { ingressClassJson, ingressJson } from '../../../support/values/gateways.ts';

type Annotations = Readonly<Record<string, string>>;
const KEY = 'ingress:-/edge';
const PREFIX = 'nginx.ingress.kubernetes.io/';
const HEADER = { canary: 'true', 'canary-by-header': 'X-Canary' };

function world(main: Annotations, canary: Annotations): GatewayWorld {
  const annotated = (given: Annotations): Annotations =>
    Object.fromEntries(Object.entries(given).map(([name, value]) => [PREFIX + name, value]));
  const to = (name: string) => ({
    rules: [
      {
        host: 'example.org',
        http: {
          paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name, port: { number: 80 } } } }],
        },
      },
    ],
  });
  return new GatewayWorld([
    ingressClassJson(),
    service({ name: 'next', key: 'default/next', type: 'ClusterIP' }),
    ingressJson('web', to('web'), annotated(main)),
    ingressJson('next', to('next'), annotated({ ...HEADER, ...canary })),
  ]);
}

function entriesOf(given: GatewayWorld): readonly RouteEntry[] {
  const { sections } = given.listener(80, 'tcp', KEY).routing as HttpRouting;
  return sections[0]?.hosts[0]?.entries ?? [];
}

const told = (given: GatewayWorld) =>
  given
    .loadBalancer(KEY)
    .problems.filter(({ message }) => /The canary asks its clients for more/.test(message));

const NONE = { allowedCidrs: [], deniedCidrs: [], requestRate: 0, bodyBytes: 0 };
const USERS = { 'auth-type': 'basic', 'auth-secret': 'users' };

for (const [title, main, canary, expected] of [
  [
    'none',
    { 'whitelist-source-range': '10.0.0.0/8' },
    {},
    { limits: { ...NONE, allowedCidrs: ['10.0.0.0/8'] } },
  ],
  [
    'a limit',
    { 'whitelist-source-range': '10.0.0.0/8', 'limit-rps': '5' },
    { 'limit-rps': '9', 'proxy-body-size': '10' },
    { limits: { ...NONE, allowedCidrs: ['10.0.0.0/8'], requestRate: 5, bodyBytes: 10 } },
  ],
  [
    'a limit per minute',
    { 'limit-rps': '5', 'limit-connections': '4' },
    { 'limit-rpm': '60', 'limit-connections': '3' },
    { limits: { ...NONE, requestRate: 5, minuteRate: 60, requestsAtOnce: 3 } },
  ],
  [
    'narrower and wider ranges',
    { 'whitelist-source-range': '10.0.0.0/8,192.0.2.0/25,2001:db8::/32' },
    { 'whitelist-source-range': '10.1.0.0/16,192.0.2.0/24,2001:db8:1::/48,198.51.100.0/24' },
    { limits: { ...NONE, allowedCidrs: ['192.0.2.0/25', '10.1.0.0/16', '2001:db8:1::/48'] } },
  ],
  [
    'ranges that are refused',
    { 'denylist-source-range': '10.0.0.0/8' },
    { 'denylist-source-range': '192.0.2.0/24' },
    { limits: { ...NONE, deniedCidrs: ['10.0.0.0/8', '192.0.2.0/24'] } },
  ],
  [
    'ranges and no users',
    USERS,
    { 'whitelist-source-range': '10.0.0.0/8' },
    {
      limits: { ...NONE, allowedCidrs: ['10.0.0.0/8'] },
      auth: { secret: 'default/users', realm: 'Authentication required', removesHeader: false },
    },
  ],
  [
    'ranges that do not meet those',
    { 'whitelist-source-range': '10.0.0.0/8' },
    { 'whitelist-source-range': '192.0.2.0/24' },
    { action: { kind: 'answer', status: 403 } },
  ],
  ['other users', USERS, { ...USERS, 'auth-secret': 'others' }, { action: { kind: 'answer', status: 403 } }],
] as const satisfies readonly (readonly [string, Annotations, Annotations, object])[])
  test(`Requests with the header of a canary that asks for ${title} keep what the Ingress asks for`, (t) => {
    const entries = entriesOf(world(main, canary));
    const [byHeader] = entries;
    t.is(byHeader?.match.headers.length, 1);
    t.like(byHeader?.rule, expected);
    t.is(entries.at(-1)?.match.headers.length, 0);
  });

for (const [title, main, canary, count] of [
  ['asks for no more', { 'limit-rps': '5' }, {}, 2],
  ['asks for the same', { 'limit-rps': '5' }, { 'limit-rps': '5' }, 2],
  ['asks for ranges', {}, { 'whitelist-source-range': '10.0.0.0/8' }, 1],
  ['asks for users', { 'limit-rps': '5' }, USERS, 1],
] as const satisfies readonly (readonly [string, Annotations, Annotations, number])[])
  test(`A canary that ${title} has ${count - 1} part by weight`, (t) => {
    const given = world(main, { ...canary, 'canary-weight': '20' });
    const last = entriesOf(given).at(-1)?.rule;
    t.is(last?.action.kind === 'forward' ? last.action.backends.length : 0, count);
    t.is(told(given).length, 2 - count);
    t.is(last?.limits?.requestRate, 'limit-rps' in main ? 5 : undefined);
  });

test('A canary with force-ssl-redirect gets no request of port 80', (t) => {
  t.is(entriesOf(world({}, { 'canary-weight': '20' })).length, 3);
  t.is(entriesOf(world({}, { 'canary-weight': '20', 'force-ssl-redirect': 'true' })).length, 1);
});

test('Of two names in certificates a canary has none that both match', (t) => {
  const none = { limits: undefined };
  const [one, two] = [
    { ...none, certificateName: 'CN=one' },
    { ...none, certificateName: 'CN=two' },
  ];
  t.is(bothGuards(one, two), undefined);
  t.is(bothGuards(one, none)?.certificateName, 'CN=one');
  t.is(bothGuards(none, two)?.certificateName, 'CN=two');
  t.true(asksForMore(one, two));
  t.true(asksForMore(none, two));
  t.false(asksForMore(one, none));
});
