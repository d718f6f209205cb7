import test from 'ava';
import fc from 'fast-check';
import { parseObject } from '../../../agent/kubernetes/parse-object.ts';
import { renderBird } from '../../../agent/vips/bird/render.ts';
import { hostPeers } from '../../../agent/wiring/bgp-peers.ts';
import { bgpSettings } from '../../support/bgp/bgp-values.ts';

const read = (name: unknown, spec: object) =>
  parseObject(
    { apiVersion: 'headgate.io/v1alpha1', kind: 'BGPPeer', metadata: { name, uid: 'u' }, spec },
    '',
  );
const SPEC = { address: '192.0.2.1', asn: 65_000 };

const refuses = test.macro({
  exec: (t, change: object, expected: string) => {
    const { objects, problems } = read('tor-a', { ...SPEC, ...change });
    t.is(objects.length, 0);
    t.is(problems[0]?.message, `BGPPeer tor-a: spec.${expected}`);
    t.is(problems[0]?.object, 'BGPPeer tor-a');
  },
  title: (_, change: object) =>
    `A BGPPeer with ${JSON.stringify(change)} is refused with field, value and what is allowed`,
});

test(refuses, { asn: 23_456 }, 'asn: 23456 is a reserved ASN');
test(refuses, { address: 'router-1' }, 'address: "router-1" is not the IP address of a host');
test(refuses, { bfd: true }, 'bfd: true is not a mapping');
test(
  refuses,
  { bfd: { interval: '5m' } },
  'bfd.interval: "5m" is not a duration with its unit (ms or s) from 10ms to 10s',
);
test(
  refuses,
  { passwordSecret: { name: 'tor', key: 'a/b' } },
  'passwordSecret.key: "a/b" is not a key of a Secret (A-Z, a-z, 0-9, "-", "_" and ".")',
);

test('A BGPPeer whose name is no symbol of BIRD is refused', (t) => {
  for (const name of ['Tor', '1a', 'a.b', 'a_b', 'x'.repeat(31)]) {
    const { objects, problems } = read(name, SPEC);
    t.is(objects.length, 0, name);
    t.regex(problems[0]?.message ?? '', /metadata.name: .* is not a name of at most 30 lower-case letters/);
  }
});

/** Texts that would end a statement, a text, a block or a line of BIRD. */
const HOSTILE = [
  'x";\n}\nprotocol direct { }\n',
  '192.0.2.9; }',
  'eth0"; }',
  '\n',
  '65001:1));accept;bgp_community.add((1:1',
  'fe80::1%eth0',
  '{{asn}}',
  '# ',
  '"',
];

test('Whatever the author of a BGPPeer writes into any field, BIRD gets none of it that is not a plain value', (t) => {
  const text = fc.oneof(
    fc.constantFrom(...HOSTILE),
    fc.string(),
    fc
      .tuple(fc.constantFrom('192.0.2.9', 'eth0', '65001:1', 'tor', '300ms'), fc.constantFrom(...HOSTILE))
      .map((parts) => parts.join('')),
  );
  const value = fc.oneof(
    text,
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(text, { maxLength: 3 }),
  );
  const valid: Readonly<Record<string, unknown>> = {
    ...{ interface: 'eth0', source: '192.0.2.8', localPort: 1790, port: 1179, families: ['ipv4'] },
    ...{ multihop: 0, ttlSecurity: true, communities: ['65001:1'], largeCommunities: ['65001:1:2'] },
    ...{ prepends: 2, hosts: ['lb1'] },
  };
  const fields = fc.record(
    Object.fromEntries(
      Object.entries(valid).map(([name, right]) => [
        name,
        fc.oneof({ weight: 30, arbitrary: fc.constant(right) }, { weight: 1, arbitrary: value }),
      ]),
    ),
    { requiredKeys: [] },
  );
  const whole = fc.record({
    name: fc.oneof({ weight: 5, arbitrary: fc.constant('tor-b') }, text),
    address: fc.oneof(fc.constant('192.0.2.9'), fc.constant('fe80::9'), text),
    bfd: fc.option(
      fc.record({
        interval: fc.oneof({ weight: 5, arbitrary: fc.constant('100ms') }, text),
        multiplier: fc.oneof({ weight: 5, arbitrary: fc.constant(3) }, value),
      }),
    ),
    fields,
  });
  let rendered = 0;
  fc.assert(
    fc.property(whole, ({ name, address, bfd, fields: more }) => {
      // Of a tenant who can get past the API server's own checks.
      const { objects } = read(name, { asn: 65_000, address, bfd, ...more });
      const [object] = objects;
      if (object?.kind !== 'BGPPeer') return;
      const bgp = bgpSettings({ peers: [] });
      const { peers } = hostPeers(bgp, [object], { name: 'lb1', labels: {} });
      const out = renderBird({ ...bgp, peers }, { vips: { v4: '/v4', v6: '/v6' } }, new Map());
      if (peers.length > 0) rendered++;
      for (const line of out.split('\n'))
        if (!line.startsWith('#')) t.regex(line, /^[\w\s.:;{}()[\],=!~&"/*%+-]*$/, line);
      t.is(out.match(/^protocol /gm)?.length, 3 + peers.length + (out.includes('protocol bfd') ? 1 : 0));
      t.is(out.match(/accept;/g)?.length ?? 0, peers.length);
      for (const hostile of HOSTILE) if (hostile.trim().length > 2) t.false(out.includes(hostile));
    }),
    { numRuns: 2_000 },
  );
  t.true(rendered > 20, `${rendered} were peers`);
});
