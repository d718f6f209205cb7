import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import fc from 'fast-check';
import { sharedClaimName, wholeClaimName } from '../../../agent/addresses/claim-book.ts';
import { subdomain } from '../../../agent/base/name-forms.ts';
import { parseYamlDocuments } from '../../../agent/base/yaml.ts';
import { type AddressClaim, claimManifest, sortedPorts } from '../../../agent/kubernetes/address-claim.ts';
import { poolStatusManifest } from '../../../agent/kubernetes/address-pool.ts';
import { parseObject } from '../../../agent/kubernetes/parse-object.ts';
import { crdFiles } from '../../../scripts/crds.ts';
import { claim, pool } from '../../support/values/address-requests.ts';

const apiVersion = 'headgate.io/v1alpha1';

test('parseObject() reads a pool like the settings, with its source', (t) => {
  const spec = { blocks: ['192.0.2.0/24'], priority: 3 };
  const json = {
    apiVersion,
    kind: 'AddressPool',
    metadata: { name: 'a', uid: 'u', resourceVersion: '7' },
    spec,
  };
  const object = { ...pool('a', spec.blocks, { priority: 3 }), source: 'api' as const, uid: 'u' };
  t.deepEqual(parseObject(json, ''), { objects: [object], problems: [] });
});

test('parseObject() names the pool and its fault', (t) => {
  const json = { apiVersion, kind: 'AddressPool', metadata: { name: 'a' }, spec: { blocks: ['x'] } };
  t.deepEqual(parseObject(json, '').problems[0], {
    object: 'AddressPool a',
    reason: 'InvalidObject',
    message:
      'AddressPool a: spec.blocks[0]: "x" is not a CIDR without host bits (192.0.2.0/24), a range (192.0.2.10-192.0.2.20) or an address, of unicast addresses',
  });
});

for (const [what, json, message] of [
  ['a claim without a spec', { metadata: { name: 'a' } }, 'AddressClaim a: spec: missing, must be a mapping'],
  [
    'a claim without a Service',
    { metadata: { name: 'a' }, spec: { address: '192.0.2.1' } },
    'AddressClaim a: spec.service: missing, which is allowed only with "reserved: true"',
  ],
  [
    'a claim for what is no Service',
    { metadata: { name: 'a' }, spec: { address: '192.0.2.1', service: 'web' } },
    'AddressClaim a: spec.service: "web" is not "NAMESPACE/NAME" of a Service, "gateway:NAMESPACE/NAME" or "ingress:-/CLASS"',
  ],
] as const) {
  test(`parseObject() refuses ${what}`, (t) => {
    const { problems } = parseObject({ apiVersion, kind: 'AddressClaim', ...json }, '');
    t.is(problems[0]?.message, message);
  });
}

test('A reservation needs an address and nothing else', (t) => {
  t.deepEqual(claim('mine', { address: '2001:DB8::1', reserved: true }), {
    kind: 'AddressClaim',
    name: 'mine',
    address: '2001:db8::1',
    family: 'v6',
    pool: '',
    service: '',
    serviceUID: '',
    sharingKey: '',
    ports: [],
    granted: undefined,
    publicAddress: '',
    since: 0,
    heldUntil: 0,
    reserved: true,
    namespace: '',
  });
});

const claims: fc.Arbitrary<AddressClaim> = fc
  .record({
    place: fc.constantFrom(
      { address: '192.0.2.1', family: 'v4' } as const,
      { address: '2001:db8::1', family: 'v6' } as const,
    ),
    pool: fc.constantFrom('', 'a.b'),
    service: fc.constantFrom('default/web', 'a/b-c'),
    serviceUID: fc.constantFrom('', 'c0ffee'),
    sharingKey: fc.constantFrom('', 'k'),
    ports: fc.array(
      fc.record({
        protocol: fc.constantFrom('TCP', 'UDP', 'SCTP' as const),
        port: fc.integer({ min: 1, max: 65535 }),
      }),
      { maxLength: 5 },
    ),
    granted: fc.constantFrom(undefined, [], [{ protocol: 'UDP' as const, port: 53 }]),
    publicAddress: fc.constantFrom('', '203.0.113.9'),
    since: fc.integer({ min: 0, max: 4e12 }),
    heldUntil: fc.integer({ min: 0, max: 4e12 }),
    reserved: fc.boolean(),
    namespace: fc.constantFrom('', 'prod'),
  })
  .map(({ place, ports, ...rest }) => ({
    kind: 'AddressClaim' as const,
    name: wholeClaimName(place.address, place.family),
    ...place,
    ...rest,
    ports: sortedPorts(ports),
  }));

test('A claim is unchanged after it was written and read', (t) => {
  fc.assert(
    fc.property(claims, (claim) => {
      const written = JSON.parse(JSON.stringify(claimManifest(claim, '12'))) as unknown;
      const { name: key } = claim;
      const stored = { kind: 'AddressClaim', key, uid: '', resourceVersion: '12', claim } as const;
      t.deepEqual(parseObject(written, ''), { objects: [stored], problems: [] });
    }),
  );
});

test('claimManifest() leaves out empty fields', (t) => {
  const spec = { address: '192.0.2.1', service: 'default/web', since: '2026-01-01T00:00:00Z' };
  t.deepEqual(claimManifest(claim('192-0-2-1', spec)), {
    apiVersion,
    kind: 'AddressClaim',
    metadata: { name: '192-0-2-1' },
    spec: { address: '192.0.2.1', family: 'IPv4', service: 'default/web', since: '2026-01-01T00:00:00.000Z' },
  });
});

test('Names of claims are valid Kubernetes names, even for the longest address and Service', (t) => {
  t.is(wholeClaimName('192.0.2.10', 'v4'), '192-0-2-10');
  t.is(wholeClaimName('2001:db8::10', 'v6'), '2001-0db8-0000-0000-0000-0000-0000-0010');
  const longest = 'x'.repeat(63);
  const name = sharedClaimName('2001:db8::10', 'v6', `${longest}/${longest}`);
  t.is(name, `2001-0db8-0000-0000-0000-0000-0000-0010.${longest}.${longest}`);
  t.true(subdomain.check(name));
});

test('poolStatusManifest() counts beyond what a JSON number holds', (t) => {
  const many = { total: 1n << 64n, free: (1n << 64n) - 1n, used: 1n, held: 0n, conflicting: 0n };
  const none = { total: 0n, free: 0n, used: 0n, held: 0n, conflicting: 0n };
  const given = pool('a', ['2001:db8::/64'], { draining: true });
  const since = '2026-01-01T00:00:00Z';
  const { status } = poolStatusManifest(given, { v4: none, v6: many }, undefined, since) as {
    status: Record<string, unknown>;
  };
  t.is(status.state, 'Draining');
  t.deepEqual(status.ipv6, {
    total: '18446744073709551616',
    free: '18446744073709551615',
    used: '1',
    held: '0',
    conflicting: '0',
  });
});

for (const [what, fault, more, condition] of [
  ['works', undefined, {}, { status: 'True', reason: 'Active', observedGeneration: 3 }],
  [
    'is draining',
    undefined,
    { draining: true },
    { status: 'True', reason: 'Draining', observedGeneration: 3 },
  ],
  [
    'overlaps with another',
    { state: 'Conflicting', message: 'Overlaps' },
    {},
    { status: 'False', reason: 'Conflicting', message: 'Overlaps', observedGeneration: 3 },
  ],
  [
    'cannot be read in its present version',
    { state: 'Invalid', message: 'blocks' },
    {},
    { status: 'False', reason: 'Invalid', message: 'blocks' },
  ],
] as const)
  test(`poolStatusManifest() has the condition Ready of a pool that ${what}`, (t) => {
    const count = { total: 1n, free: 1n, used: 0n, held: 0n, conflicting: 0n };
    const given = { ...pool('a', ['192.0.2.1'], more), generation: 3 };
    const since = '2026-01-01T00:00:00Z';
    const { status } = poolStatusManifest(given, { v4: count, v6: count }, fault, since) as {
      status: { conditions: readonly object[] };
    };
    t.is(status.conditions.length, 1);
    t.like(status.conditions[0], { type: 'Ready', lastTransitionTime: since, ...condition });
    t.is('observedGeneration' in (status.conditions[0] ?? {}), 'observedGeneration' in condition);
  });

test('parseObject() reads the generation of a pool and its condition Ready', (t) => {
  const ready = { status: 'True', reason: 'Active', lastTransitionTime: '2026-01-01T00:00:00Z' };
  const json = {
    apiVersion,
    kind: 'AddressPool',
    metadata: { name: 'a', generation: 7 },
    spec: { blocks: ['192.0.2.0/24'] },
    status: {
      conditions: [
        { type: 'Other', status: 'False' },
        { type: 'Ready', message: 'x', ...ready },
      ],
    },
  };
  t.like(parseObject(json, '').objects[0], { generation: 7, ready });
});

test('The definitions in deploy/kubernetes are what scripts/write-crds.ts writes, and YAML', (t) => {
  for (const [path, text] of crdFiles()) {
    t.is(readFileSync(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), 'utf8'), text, path);
    const { documents, errors } = parseYamlDocuments(text);
    t.deepEqual([documents.length, errors.length], [1, 0]);
  }
});
