// What hosts of an Ingress class ask of their clients, and to which namespace they belong.

import test from 'ava';
import type { HttpRouting } from '../../../../agent/model/routes.ts';
import type { TranslateSettings } from '../../../../agent/translate/translate-settings.ts';
import { secret } from '../../../support/values/certificates.ts';
import { GatewayWorld } from '../../../support/values/gateway-world.ts';
import { ingressClassJson, ingressJson } from '../../../support/values/gateways.ts';

type Json = Readonly<Record<string, unknown>>;
const KEY = 'ingress:-/edge';
const PREFIX = 'nginx.ingress.kubernetes.io/';
const ASKS = { [`${PREFIX}auth-tls-secret`]: 'clients' };

/** A Secret with an authority that has this fingerprint. */
const authority = (name: string, fingerprint: string, namespace = 'default') => {
  const made = secret(name);
  const content = { fingerprint, depthFault: '' } as never;
  const none = { content: undefined, fault: '' };
  return { ...made, namespace, key: `${namespace}/${name}`, authority: { content, fault: '' }, crl: none };
};
const missing = (name: string) => ({
  ...authority(name, ''),
  authority: { content: undefined, fault: 'it has no ca.crt' },
});
const certificate = (name: string, namespace = 'default') => ({
  ...secret(name),
  namespace,
  key: `${namespace}/${name}`,
});

interface Given {
  readonly name: string;
  readonly hosts?: readonly string[];
  readonly paths?: readonly string[];
  readonly namespace?: string;
  readonly tls?: readonly Json[];
  readonly annotations?: Json;
  readonly more?: Json;
}

/** The first is the oldest. */
function ingresses(...given: readonly Given[]): readonly Json[] {
  return given.map(
    ({ name, hosts = ['a.org'], paths = ['/'], namespace, tls = [], annotations, more }, at) => {
      const backend = { service: { name: 'web', port: { number: 80 } } };
      const http = { paths: paths.map((path) => ({ path, pathType: 'Prefix', backend })) };
      const rules = hosts.map((host) => ({ ...(host !== '' && { host }), http }));
      const json = ingressJson(name, { rules, tls, ...more }, annotations);
      const creationTimestamp = `2026-11-${String(at + 1).padStart(2, '0')}T00:00:00Z`;
      const metadata = { ...(json.metadata as Json), creationTimestamp, ...(namespace && { namespace }) };
      return { ...json, metadata };
    },
  );
}

function world(
  objects: readonly (Json | ReturnType<typeof authority>)[],
  settings: Partial<TranslateSettings> = {},
): GatewayWorld {
  return new GatewayWorld(
    [ingressClassJson(), authority('clients', 'ours'), certificate('any-tls'), ...objects] as never,
    settings,
  );
}

const problems = (given: GatewayWorld) =>
  given.loadBalancer(KEY).problems.map(({ object, message }) => `${object}: ${message}`);
/** `host/path → what` on port 80. */
const plain = (given: GatewayWorld) =>
  given.routes(80, undefined, KEY).map((text) => text.replace(/ \(.*/, '').replace(/web:.*/, 'web'));
const secure = (given: GatewayWorld) =>
  (given.listener(443, 'tcp', KEY).routing as HttpRouting).sections.map(({ name }) => name);
/** What clients of a name must prove, and the Secret of its certificate. */
const handshake = (given: GatewayWorld, host: string): string => {
  const { tls } = given.listener(443, 'tcp', KEY);
  const line = tls?.sections?.find(({ hostname }) => hostname.suffix === host.replace('*.', ''));
  const { clients, certificates } = line ?? { clients: tls?.clients, certificates: tls?.certificates ?? [] };
  return `${clients?.verify ?? 'none'} ${clients?.authority.fingerprint ?? '-'} ${certificates[0]?.name}`;
};
const ANY_TLS = { tls: [{ secretName: 'any-tls' }], hosts: ['other.org'], name: 'other' };

for (const [title, asking] of [
  ['a tls entry without a Secret', { tls: [{ hosts: ['a.org'] }] }],
  ['no tls', {}],
  ['a Secret that is not there yet', { tls: [{ hosts: ['a.org'], secretName: 'later' }] }],
  ['ssl-redirect off', { annotations: { ...ASKS, [`${PREFIX}ssl-redirect`]: 'false' } }],
] as const)
  test(`A host that asks for client certificates is guarded with ${title}`, (t) => {
    const given = world(ingresses({ name: 'shop', annotations: ASKS, ...asking }, ANY_TLS));
    t.is(handshake(given, 'a.org'), 'required ours default/any-tls');
    t.deepEqual(secure(given), ['all', 'a.org']);
    t.false(plain(given).includes('a.org/ → web'), String(plain(given)));
    t.true(plain(given).some((text) => /^a.org\/ → (403|redirect 308)/.test(text)));
  });

test('Guarded are aliases, the other name with www, and names in tls', (t) => {
  const annotations = {
    ...ASKS,
    [`${PREFIX}server-alias`]: 'alias.org',
    [`${PREFIX}from-to-www-redirect`]: 'true',
  };
  const given = world(ingresses({ name: 'shop', annotations, tls: [{ hosts: ['tls.org'] }] }, ANY_TLS));
  for (const host of ['a.org', 'alias.org', 'www.a.org', 'tls.org'])
    t.is(handshake(given, host), 'required ours default/any-tls', host);
  t.true(plain(given).includes('alias.org/ → 403'));
  t.is(handshake(given, 'other.org'), 'none - default/any-tls');
});

test('Rules for all hosts are guarded for all names, and other hosts keep theirs open', (t) => {
  const given = world(ingresses({ name: 'shop', hosts: [''], annotations: ASKS }, ANY_TLS));
  t.is(handshake(given, 'anything.org'), 'required ours default/any-tls');
  t.is(handshake(given, 'other.org'), 'none - default/any-tls');
  t.deepEqual(secure(given).toSorted(), ['*', 'other.org']);
  const wild = world(
    ingresses({ name: 'shop', hosts: ['*.a.org'], annotations: ASKS }, { ...ANY_TLS, hosts: ['x.a.org'] }),
  );
  t.is(handshake(wild, '*.a.org'), 'required ours default/any-tls');
  t.is(handshake(wild, 'x.a.org'), 'none - default/any-tls');
});

/** `host/path NAME` of the rules on port 443. */
const names = (given: GatewayWorld) =>
  (given.listener(443, 'tcp', KEY).routing as HttpRouting).sections.flatMap(({ hosts }) =>
    hosts.flatMap(({ host, entries }) =>
      entries.map(({ match, rule }) => `${host.suffix}${match.path.value} ${rule.certificateName}`),
    ),
  );

test('A name in certificates holds for all paths of its host, also of Ingresses that do not ask', (t) => {
  const named = {
    ...ASKS,
    [`${PREFIX}auth-tls-match-cn`]: 'CN=shop',
    [`${PREFIX}server-alias`]: 'alias.org',
  };
  const others = { ...ASKS, [`${PREFIX}auth-tls-match-cn`]: 'CN=two' };
  const given = world(
    ingresses(
      { name: 'one', annotations: named, paths: ['/one'] },
      { name: 'two', annotations: others, paths: ['/two'] },
      { name: 'open', paths: ['/open'] },
      ANY_TLS,
    ),
  );
  t.deepEqual(names(given).sort(), [
    'a.org/one CN=shop',
    'a.org/open CN=shop',
    'a.org/two CN=two',
    'alias.org/one CN=shop',
    'other.org undefined',
  ]);
});

for (const [title, annotations] of [
  ['without an authority', { [`${PREFIX}auth-tls-match-cn`]: 'CN=shop' }],
  [
    'whose authority verifies no client',
    { ...ASKS, [`${PREFIX}auth-tls-verify-client`]: 'off', [`${PREFIX}auth-tls-match-cn`]: 'CN=shop' },
  ],
  ['that is no expression', { ...ASKS, [`${PREFIX}auth-tls-match-cn`]: 'CN=(' }],
] as const)
  test(`A name in certificates ${title} closes`, (t) => {
    const given = world(ingresses({ name: 'shop', annotations }, ANY_TLS));
    t.true(plain(given).includes('a.org/ → 403'), String(plain(given)));
  });

test('A default backend of an Ingress that asks is no way around', (t) => {
  const defaultBackend = { service: { name: 'web', port: { number: 80 } } };
  const given = world(ingresses({ name: 'shop', annotations: ASKS, more: { defaultBackend } }, ANY_TLS));
  t.is(handshake(given, 'anything.org'), 'required ours default/any-tls');
  t.true(plain(given).includes('*/ → 403'));
});

test('Of two depths of chains the smaller one counts, and the error page is that of the oldest Ingress', (t) => {
  const asks = (depth: string, page: string) => ({
    ...ASKS,
    [`${PREFIX}auth-tls-verify-depth`]: depth,
    ...(page && { [`${PREFIX}auth-tls-error-page`]: page }),
  });
  const page = 'https://id.org/why';
  for (const [first, second, expected] of [
    [asks('1', page), asks('2', 'https://evil.org/'), page],
    [asks('2', ''), asks('1', 'https://evil.org/'), undefined],
  ] as const) {
    const given = world(
      ingresses({ name: 'one', annotations: first }, { name: 'two', annotations: second }, ANY_TLS),
    );
    const section = given.listener(443, 'tcp', KEY).tls?.sections?.find(({ clients }) => clients);
    t.is(section?.clients?.authority.depth, 1);
    t.is(section?.clients?.errorPage, expected);
    t.regex(problems(given).join(), /Ingress .*two.*the stricter values count/);
  }
});

test('Of two Ingresses of a host the stricter one counts, and the author of the other is told', (t) => {
  const optional = { ...ASKS, [`${PREFIX}auth-tls-verify-client`]: 'optional' };
  const both = world(
    ingresses(
      { name: 'one', annotations: optional },
      { name: 'two', annotations: ASKS, paths: ['/two'] },
      { name: 'open', paths: ['/open'] },
      ANY_TLS,
    ),
  );
  t.is(handshake(both, 'a.org'), 'required ours default/any-tls');
  t.deepEqual(
    plain(both).filter((text) => text.startsWith('a.org')),
    ['a.org/open → 403', 'a.org/two → 403', 'a.org/ → 403'],
  );
  t.true(
    problems(both).some((text) =>
      text.startsWith('Ingress default/two: Host "a.org" needs client certificates: of'),
    ),
  );
  t.true(
    problems(both).includes(
      'Ingress default/open: Host "a.org" needs client certificates, and serves nothing on port 80, because Ingress "default/one" asks for them',
    ),
  );
});

test('Of two authorities of a host the older one counts, and the paths of the other answer 403', (t) => {
  const given = world([
    authority('others', 'theirs'),
    ...ingresses(
      { name: 'one', annotations: ASKS },
      { name: 'two', annotations: { [`${PREFIX}auth-tls-secret`]: 'others' }, paths: ['/two'] },
      ANY_TLS,
    ),
  ]);
  t.is(handshake(given, 'a.org'), 'required ours default/any-tls');
  t.deepEqual(
    given.routes(443, 'a.org', KEY).map((text) => text.replace(/ \(.*/, '').replace(/web:.*/, 'web')),
    ['a.org/two → 403', 'a.org/ → web'],
  );
  t.true(
    problems(given).some((text) =>
      /^Ingress default\/two: Requests of Host "a.org" get status 403/.test(text),
    ),
  );
});

for (const [title, secretName] of [
  ['is missing', 'absent'],
  ['is of another namespace', 'elsewhere/clients'],
  ['has a name that is not allowed', 'Not/A/Name!'],
  ['has no certificate', 'empty'],
] as const)
  test(`A host whose authority ${title} is closed on both ports, also for other Ingresses`, (t) => {
    const given = world([
      missing('empty'),
      ...ingresses(
        { name: 'shop', annotations: { [`${PREFIX}auth-tls-secret`]: secretName } },
        { name: 'open', paths: ['/open'] },
        ANY_TLS,
      ),
    ]);
    for (const port of [80, 443])
      t.deepEqual(
        given
          .routes(port, undefined, KEY)
          .filter((text) => text.startsWith('a.org'))
          .map((text) => text.replace(/ \(.*/, '')),
        ['a.org/open → 403', 'a.org/ → 403'],
        String(port),
      );
    t.true(problems(given).some((text) => text.startsWith('Ingress default/shop: ')));
    t.true(problems(given).some((text) => /^Ingress default\/open: Host "a.org" answers 403/.test(text)));
  });

test('Clients are sent to https only if a certificate for the host is served', (t) => {
  const tls = [{ hosts: ['a.org'], secretName: 'a-tls' }];
  const given = world(ingresses({ name: 'shop', tls }));
  t.deepEqual(plain(given), ['a.org/ → web'], 'port 443 is closed');
  given.apply([certificate('b-tls')] as never);
  given.apply(
    ingresses(
      { name: 'shop', tls },
      { name: 'b', hosts: ['b.org'], tls: [{ hosts: ['b.org'], secretName: 'b-tls' }] },
    ) as never,
  );
  t.deepEqual(plain(given), ['a.org/ → web', 'b.org/ → redirect 308'], 'with a certificate of another host');
  given.apply([certificate('a-tls')] as never);
  t.deepEqual(plain(given), ['a.org/ → redirect 308', 'b.org/ → redirect 308']);
});

test('A challenge of ACME is answered on port 80, also of a host with a guard', (t) => {
  const challenge = '/.well-known/acme-challenge/token';
  const tls = [{ hosts: ['a.org'], secretName: 'any-tls' }];
  for (const annotations of [{}, ASKS]) {
    const given = world(
      ingresses({ name: 'shop', tls, annotations, paths: ['/', challenge, '/.well-known'] }),
    );
    t.deepEqual(plain(given), [
      `a.org${challenge} → web`,
      'a.org/.well-known → redirect 308',
      'a.org/ → redirect 308',
    ]);
  }
});

test('A canary takes requests of Ingresses of its own namespace only, and its author is told', (t) => {
  const canary = { [`${PREFIX}canary`]: 'true', [`${PREFIX}canary-weight`]: '100' };
  const given = world(
    ingresses({ name: 'shop' }, { name: 'thief', namespace: 'other', annotations: canary }),
  );
  t.deepEqual(plain(given), ['a.org/ → web']);
  t.is(given.routes(80, undefined, KEY)[0]?.includes('*100'), false);
  t.true(
    problems(given).some((text) =>
      text.startsWith('Ingress other/thief: The canary gets no request of host "a.org"'),
    ),
  );
});

const OWNED = { hostsOfOneNamespace: true };
const withoutText = (texts: readonly string[], namespace: string) =>
  texts.filter((text) => text.startsWith(`Ingress ${namespace}/`) && /setting hostsOfOneNamespace/.test(text))
    .length;

test('With hostsOfOneNamespace another namespace has no part in a host by a certificate or an authority', (t) => {
  const theirs = { name: 'thief', namespace: 'other', hosts: ['b.org'], annotations: ASKS };
  for (const tls of [[{ hosts: ['a.org'], secretName: 'other-tls' }], [{ hosts: ['a.org'] }]]) {
    const given = world(
      [
        authority('clients', 'theirs', 'other'),
        certificate('other-tls', 'other'),
        // Older than the Ingress with the rule.
        ...ingresses({ ...theirs, tls }, { name: 'shop' }, ANY_TLS),
      ],
      OWNED,
    );
    t.is(handshake(given, 'a.org'), 'none - default/any-tls');
    t.is(handshake(given, 'b.org'), 'required theirs default/any-tls');
    t.is(withoutText(problems(given), 'other'), 1);
  }
  const wild = world(
    [
      authority('clients', 'theirs', 'other'),
      certificate('other-tls', 'other'),
      ...ingresses(
        { ...theirs, hosts: ['*.org'], tls: [{ hosts: ['*.org'], secretName: 'other-tls' }] },
        { name: 'shop' },
        ANY_TLS,
      ),
    ],
    OWNED,
  );
  t.is(handshake(wild, 'a.org'), 'none - default/any-tls', 'nor by a wildcard');
});

test('With hostsOfOneNamespace what the paths of the owner do not match gets no other backend', (t) => {
  const defaultBackend = { service: { name: 'web', port: { number: 80 } } };
  const given = world(
    ingresses(
      { name: 'wild', namespace: 'other', hosts: ['*.org'] },
      { name: 'rest', namespace: 'third', hosts: ['x.net'], more: { defaultBackend } },
      { name: 'shop', paths: ['/shop'] },
    ),
    OWNED,
  );
  t.deepEqual(
    plain(given).filter((text) => text.startsWith('a.org')),
    ['a.org/shop → web', 'a.org/ → 404'],
  );
  t.deepEqual(
    plain(given).filter((text) => text.startsWith('*.org')),
    ['*.org/ → 503*1', '*.org/ → 404'],
  );
  const shared = world(
    ingresses({ name: 'wild', namespace: 'other', hosts: ['*.org'] }, { name: 'shop', paths: ['/shop'] }),
  );
  t.false(plain(shared).includes('a.org/ → 404'));
});

test('With hostsOfOneNamespace a newer default backend does not get what the rules for all hosts leave', (t) => {
  const defaultBackend = { service: { name: 'web', port: { number: 80 } } };
  const given = world(
    ingresses(
      { name: 'all', hosts: [''], paths: ['/all'] },
      { name: 'rest', namespace: 'other', hosts: ['x.net'], more: { defaultBackend } },
    ),
    OWNED,
  );
  t.deepEqual(
    plain(given).filter((text) => text.startsWith('*')),
    ['*/all → web'],
  );
  t.is(withoutText(problems(given), 'other'), 1);
});
