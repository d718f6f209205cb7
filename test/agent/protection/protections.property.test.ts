// What protects, on every kind of object: absent, it is open; good, it guards; wrong in any way, it closes, and its author is told.

import test from 'ava';
import fc from 'fast-check';
import { ANNOTATIONS_THAT_PROTECT } from '../../../agent/protection/protections.ts';
import {
  GIVEN,
  type Guard,
  type GuardedKind,
  KINDS,
  MISSING,
  NGINX,
  OWN,
  type Served,
  servedWith,
} from '../../support/values/guards.ts';
import { misspelt } from '../../support/values/misspelt.ts';

type Annotations = Readonly<Record<string, string>>;

const NAMES = [...GIVEN.map(({ name }) => name), ...Object.keys(MISSING)];
const absent = new Map(KINDS.map((kind) => [kind, servedWith(kind, {})]));

test('The tests know every annotation that protects, and the kinds that can have it', (t) => {
  t.deepEqual(ANNOTATIONS_THAT_PROTECT.map(({ name }) => name).sort(), [...NAMES].sort());
  for (const { name, kinds } of GIVEN)
    t.deepEqual(ANNOTATIONS_THAT_PROTECT.find((each) => each.name === name)?.kinds, kinds, name);
});

for (const kind of KINDS)
  test(`${kind}: without annotations it is open`, (t) => {
    const { isClosed, problems } = servedWith(kind, {});
    t.false(isClosed);
    t.deepEqual(problems, []);
  });

for (const { kind, guard } of placesOf(GIVEN))
  for (const value of guard.good)
    test(`${kind}: "${guard.name}" with value "${value}" guards`, (t) => {
      const { [guard.name]: _, ...others } = guard.with ?? {};
      const before = servedWith(kind, annotationsOf(kind, others));
      const after = servedWith(kind, annotationsOf(kind, { ...others, [guard.name]: value }));
      t.false(after.isClosed);
      t.not(after.guards, before.guards);
    });

for (const { kind, guard } of placesOf(GIVEN))
  for (const value of guard.wrong)
    test(`${kind}: "${guard.name}" with value "${value}" closes`, (t) => {
      const given = annotationsOf(kind, { ...guard.with, [guard.name]: value });
      closes(t, guard, servedWith(kind, given), guard.name, value === '' ? guard.name : value);
    });

function placesOf(
  guards: readonly Guard[],
): readonly { readonly kind: GuardedKind; readonly guard: Guard }[] {
  return guards.flatMap((guard) => guard.kinds.map((kind) => ({ kind, guard })));
}

/** Gateways and classes have no mode. */
function annotationsOf(kind: GuardedKind, named: Annotations): Annotations {
  const own = Object.entries(named).filter(([name]) => kind === 'Service' || name !== 'mode');
  return Object.fromEntries(own.map(([name, value]) => [OWN + name, value]));
}

function closes(
  t: {
    true(value: boolean, message?: string): void;
    deepEqual(a: unknown, b: unknown, message?: string): void;
  },
  { closes: what }: Pick<Guard, 'closes'>,
  served: Served,
  ...names: readonly string[]
): void {
  if (what === 'origins') t.deepEqual(served.cors, undefined, 'no other origin may read');
  else if (what === 'trust') t.deepEqual(served.trustedProxies, [], 'no proxy is trusted');
  else t.true(served.isClosed, 'no client is served');
  t.true(
    served.problems.some((each) => names.some((name) => each.includes(name))),
    `the author is told: ${JSON.stringify(served.problems)}`,
  );
}

/** Any of the names on any kind, with a prefix that tools of the field use. */
const anywhere = fc.record({
  kind: fc.constantFrom(...KINDS),
  name: fc.constantFrom(...NAMES),
  prefix: fc.constantFrom(OWN, NGINX),
});

test('On a kind that cannot have it, and where Headgate does not have it, an annotation that protects closes', (t) => {
  fc.assert(
    fc.property(anywhere, fc.nat(), ({ kind, name, prefix }, at) => {
      const guard = GIVEN.find((each) => each.name === name);
      fc.pre(guard?.kinds.includes(kind) !== true || (prefix === NGINX && kind !== 'Ingress'));
      // A class has a certificate for all other names.
      fc.pre(kind !== 'IngressClass' || name !== 'tls-certificate' || prefix === NGINX);
      const values = [...(guard?.good ?? []), ...(guard?.wrong ?? [])];
      const value = MISSING[name] ?? values[at % values.length] ?? '';
      const served = servedWith(kind, { [prefix + name]: value });
      closes(t, {}, served, prefix + name);
      t.false(absent.get(kind)?.isClosed);
    }),
    { numRuns: 300 },
  );
});

test('A name that is nearly one that protects closes, and the author is told what is meant', (t) => {
  fc.assert(
    fc.property(anywhere, fc.nat(), ({ kind, name, prefix }, at) => {
      const wrong = misspelt(name, at);
      fc.pre(wrong !== undefined);
      const served = servedWith(kind, { [`${prefix}${wrong}`]: 'x' });
      closes(t, {}, served, `${prefix}${wrong}`);
    }),
    { numRuns: 300 },
  );
});

for (const [name, value] of [
  ['enable-modsecurity', 'false'],
  ['enable-owasp-core-rules', 'false'],
  ['limit-rate', '0'],
  [
    'configuration-snippet',
    'more_set_headers "X-A: b";\n# deny all;\nproxy_set_header X-Real-IP $remote_addr;',
  ],
  ['server-snippet', 'if ($host = a) { return 301 https://b; }'],
] as const)
  test(`Ingress: "${name}" with value "${value}" asks for nothing, and is open`, (t) => {
    const { isClosed, problems } = servedWith('Ingress', { [NGINX + name]: value });
    t.false(isClosed);
    t.regex(problems.join(), /have no effect here/);
  });

for (const [title, kind] of [
  ['its own annotation', 'Ingress'],
  ['that of its class', 'IngressClass'],
] as const)
  test(`An Ingress is served without what it asks for only if ${title} names that`, (t) => {
    const asks = { [`${NGINX}auth-url`]: 'https://x', [`${NGINX}limit-rate`]: '5' };
    const consent = (names: string) => {
      const allows = { [`${OWN}serve-without`]: names };
      return kind === 'Ingress'
        ? servedWith('Ingress', { ...asks, ...allows })
        : servedWith('Ingress', asks, allows);
    };
    const open = consent('auth-url, limit-rate');
    t.false(open.isClosed);
    t.regex(open.problems.join(), /Serves without "nginx.ingress.kubernetes.io\/auth-url"/);
    for (const names of ['', 'auth-url', 'all', '*', 'auth-url limit-rate', 'auth-ur1,limit-rate'])
      t.true(consent(names).isClosed, names);
    // What Headgate has is never left out.
    const own = { [`${OWN}whitelist-source-range`]: 'x', [`${OWN}serve-without`]: 'whitelist-source-range' };
    t.true(servedWith('Ingress', own).isClosed);
  });
