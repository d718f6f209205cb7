import test from 'ava';
import type { StoredPeer } from '../../../agent/kubernetes/bgp-peer.ts';
import { parseObject } from '../../../agent/kubernetes/parse-object.ts';
import { hostPeers } from '../../../agent/wiring/bgp-peers.ts';
import { bgpPeer, bgpSettings } from '../../support/bgp/bgp-values.ts';

const HOST = { name: 'lb1', labels: { rack: 'r1' } };

function stored(
  name: string,
  address: string,
  more: object = {},
  created = '2026-01-01T00:00:00Z',
): StoredPeer {
  const metadata = { name, uid: name, creationTimestamp: created };
  const { objects, problems } = parseObject(
    {
      apiVersion: 'headgate.io/v1alpha1',
      kind: 'BGPPeer',
      metadata,
      spec: { address, asn: 65_000, ...more },
    },
    '',
  );
  const [object] = objects;
  if (object?.kind !== 'BGPPeer') throw new Error(JSON.stringify(problems));
  return object;
}

const peersOf = (objects: readonly StoredPeer[], own = [bgpPeer()]) =>
  hostPeers(bgpSettings({ peers: own }), objects, HOST);

test('hostPeers() adds the objects that select the host, by its name or its labels, or all', (t) => {
  const { peers, refused } = peersOf([
    stored('d', '192.0.2.5', { hosts: ['lb2'] }),
    stored('c', '192.0.2.4', { hosts: ['lb1'] }),
    stored('b', '192.0.2.3', { hostSelector: { matchLabels: { rack: 'r1' } } }),
    stored('e', '192.0.2.6', { hostSelector: { matchLabels: { rack: 'r2' } } }),
    stored('a', '192.0.2.2', { passwordSecret: { name: 'tor' }, bfd: {} }),
  ]);
  t.deepEqual(
    peers.map(({ name }) => name),
    ['tor-a', 'a', 'b', 'c'],
  );
  t.like(peers[1], {
    address: '192.0.2.2',
    families: ['v4'],
    bfd: { interval: 300, multiplier: 3 },
    passwordFile: '',
    object: { secret: { name: 'tor', key: 'password' } },
  });
  t.is(refused.size, 0);
});

test('hostPeers() lets the settings count, and of two objects the older one, and says so', (t) => {
  const { peers, refused } = peersOf([
    stored('tor-a', '192.0.2.9'),
    stored('copy', '192.0.2.1'),
    stored('a-new', '192.0.2.2', {}, '2026-02-01T00:00:00Z'),
    stored('old', '192.0.2.2'),
    stored('near', '192.0.2.3', { localPreference: 200 }),
  ]);
  t.deepEqual(
    peers.map(({ name }) => name),
    ['tor-a', 'old'],
  );
  t.regex(refused.get('tor-a') ?? '', /^metadata.name: "tor-a" is a peer of the setting bgp, which counts/);
  t.regex(
    refused.get('copy') ?? '',
    /^spec.address: 192.0.2.1 is the address of the peer "tor-a" of the setting/,
  );
  t.regex(refused.get('a-new') ?? '', /^spec.address: 192.0.2.2 is the address of the older BGPPeer "old"/);
  t.regex(refused.get('near') ?? '', /^spec.localPreference: 200 is only for a peer of this host's own ASN/);
});

test('hostPeers() has at most 16 peers, and a new object takes the place of none', (t) => {
  const many = Array.from({ length: 15 }, (_, at) => stored(`p${at}`, `192.0.2.${at + 10}`));
  const late = stored('a-late-one', '192.0.2.99', {}, '2026-02-01T00:00:00Z');
  const { peers, refused } = peersOf([late, ...many]);
  t.is(peers.length, 16);
  t.deepEqual([...refused.keys()], ['a-late-one']);
});
