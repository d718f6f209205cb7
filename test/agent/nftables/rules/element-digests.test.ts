import test from 'ava';
import {
  addListed,
  type Digests,
  differences,
  digestsOf,
  placesOf,
} from '../../../../agent/nftables/rules/element-digests.ts';
import { kernelListener } from '../../../../agent/nftables/rules/kernel-listener.ts';
import { ListedElements } from '../../../../agent/nftables/table/read-elements.ts';
import { service, slice } from '../../../support/values/build.ts';
import { listenerOf, translated } from '../../../support/values/translated.ts';

const PORT = { name: 'dns', port: 53, protocol: 'UDP' as const };
const PLACE = '192.0.2.10 . 17 . 53';
const NONE: ReadonlySet<string> = new Set();

function kernel(endpoints: readonly string[]) {
  const objects = [service({ ports: [PORT] }), slice({ endpoints, ports: [{ ...PORT, port: 5353 }] })];
  return kernelListener(listenerOf(translated(objects), 'default:web:udp:53:v4'));
}

test('The elements of a listener are at its place, and the same listener has the same digests', (t) => {
  const listener = kernel(['10.0.0.1']);
  t.deepEqual([...digestsOf(listener).keys()], [PLACE]);
  t.is(digestsOf(listener).get(PLACE)?.count, 61 + 5);
  t.deepEqual(placesOf(listener), [PLACE, '192.0.2.10', '10.0.0.1 . 17 . 5353']);
});

test('differences() tells removed elements from others', (t) => {
  const wanted = digestsOf(kernel(['10.0.0.1']));
  const { count, sum } = wanted.get(PLACE) ?? { count: 0, sum: 0 };
  const found = (digest: { count: number; sum: number }): Digests => new Map([[PLACE, digest]]);
  t.deepEqual(differences(wanted, found({ count, sum }), NONE), {
    lacking: new Set(),
    missing: 0,
    wrong: undefined,
  });
  t.like(differences(wanted, found({ count: count - 2, sum: 1 }), NONE), { missing: 2, wrong: undefined });
  t.like(differences(wanted, new Map(), NONE), { missing: count, wrong: undefined });
  t.is(differences(wanted, found({ count, sum: sum + 1 }), NONE).wrong, PLACE);
  t.is(differences(wanted, found({ count: count + 1, sum }), NONE).wrong, PLACE);
  t.is(differences(new Map(), found({ count, sum }), NONE).wrong, PLACE);
  t.like(differences(wanted, found({ count: 0, sum: 0 }), new Set([PLACE])), {
    missing: 0,
    wrong: undefined,
  });
});

test('ListedElements reads what nft prints', (t) => {
  const read: string[] = [];
  const list = new ListedElements((map, text) => read.push(`${map}: ${text}`));
  const lines = [
    'table ip headgate {',
    '\tmap slots {',
    '\t\ttype ipv4_addr . inet_proto . inet_service . mark : ipv4_addr . inet_service',
    '\t\telements = { 10.9.0.1 . 17 . 53 . 0x4c420000 : 10.1.0.24 . 53,',
    '\t\t\t     10.9.0.1 . 17 . 53 . 0x4c420001 : 10.1.0.25 . 53 }',
    '\t}',
    '',
    '\tset anchors {',
    '\t\ttype ipv4_addr',
    '\t\telements = { 10.9.0.1, 10.9.0.2 }',
    '\t}',
    '\tchain pre {',
    '\t\ttype nat hook prerouting priority -100; policy accept;',
    '\t}',
    '}',
  ];
  for (const line of lines) list.read(line);
  t.deepEqual(read, [
    'slots: 10.9.0.1 . 17 . 53 . 0x4c420000 : 10.1.0.24 . 53',
    'slots: 10.9.0.1 . 17 . 53 . 0x4c420001 : 10.1.0.25 . 53',
    'anchors: 10.9.0.1',
    'anchors: 10.9.0.2',
  ]);
});

test('addListed() gives an element without a place one of its own', (t) => {
  const digests: Digests = new Map();
  addListed(digests, ' sources', '10.9.0.1 : 10.9.0.2');
  addListed(digests, ' anchors', '10.9.0.2');
  t.deepEqual([...digests.keys()], ['10.9.0.1', '10.9.0.2']);
});
