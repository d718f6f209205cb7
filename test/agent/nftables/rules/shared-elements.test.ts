import test from 'ava';
import fc from 'fast-check';
import type { Member } from '../../../../agent/model/load-balancer.ts';
import type { Element } from '../../../../agent/nftables/rules/elements.ts';
import type { KernelListener } from '../../../../agent/nftables/rules/kernel-listener.ts';
import { SharedElements } from '../../../../agent/nftables/rules/shared-elements.ts';

const groupOf = (vip: string): number => (vip === '192.0.2.3' ? 0 : 51);

function member(address: string): Member {
  return { name: `${address}:53`, id: 1, address, port: 53, weight: 1, state: 'ready', target: '' };
}

function listener(
  port: number,
  addresses: readonly string[],
  members: readonly string[],
  rest: Partial<KernelListener> = {},
): KernelListener {
  return {
    name: `default:web:tcp:${port}:v4`,
    family: 'v4',
    protocol: 'TCP',
    port,
    addresses,
    clients: undefined,
    by: 'flow',
    affinitySeconds: 0,
    sourceAddress: 'client',
    slots: [],
    members: members.map(member),
    down: [],
    ...rest,
  };
}

/** As short texts. */
function inWords(elements: readonly Element[]): readonly string[] {
  return elements.map((element) => {
    if (element.map === 'sources') return `${element.vip} from ${element.group}`;
    if (element.map === 'endpoints') return `endpoint ${element.place.address} ${element.place.protocol}`;
    if (element.map === 'neighbours') return `neighbour ${element.address}`;
    if (element.map === 'answers')
      return `${element.member.name} as ${element.place.address}:${element.place.port}`;
    return element.map === 'unclear' ? `${element.member.name} as any` : element.map;
  });
}

test('A member answers as the VIP, unless it is a member of two ports, and until one of them goes', (t) => {
  const shared = new SharedElements(groupOf);
  const [web, other] = [listener(80, ['192.0.2.1'], ['10.0.0.1']), listener(81, ['192.0.2.1'], ['10.0.0.1'])];
  const first = shared.change([{ before: undefined, after: web }]);
  t.deepEqual(inWords(first.added), [
    'endpoint 10.0.0.1 TCP',
    '192.0.2.1 from 51',
    'neighbour 10.0.0.1',
    '10.0.0.1:53 as 192.0.2.1:80',
  ]);
  const second = shared.change([{ before: undefined, after: other }]);
  t.deepEqual(inWords(second.removed), ['10.0.0.1:53 as 192.0.2.1:80']);
  t.deepEqual(inWords(second.added), ['10.0.0.1:53 as any']);
  const third = shared.change([{ before: web, after: undefined }]);
  t.deepEqual(inWords(third.removed), ['10.0.0.1:53 as any']);
  t.deepEqual(inWords(third.added), ['10.0.0.1:53 as 192.0.2.1:81']);
});

test('A listener whose members see the load balancer needs only the sources of its VIPs, and its members', (t) => {
  const own = listener(80, ['192.0.2.1', '192.0.2.3'], ['10.0.0.1'], { sourceAddress: 'load-balancer' });
  const { added } = new SharedElements(groupOf).change([{ before: undefined, after: own }]);
  t.deepEqual(inWords(added), ['endpoint 10.0.0.1 TCP', '192.0.2.1 from 51']);
});

const listeners = fc
  .record({
    port: fc.constantFrom(80, 81, 82),
    addresses: fc.subarray(['192.0.2.1', '192.0.2.2', '192.0.2.3']),
    members: fc.subarray(['10.0.0.1', '10.0.0.2', '10.0.0.3']),
    protocol: fc.constantFrom('TCP', 'UDP'),
    sourceAddress: fc.constantFrom('client', 'load-balancer'),
  })
  .map(({ port, addresses, members, ...rest }) => listener(port, addresses, members, rest));

test('Changes one after the other give the elements that one change of all gives', (t) => {
  const steps = fc.array(fc.tuple(listeners, fc.boolean()), { maxLength: 12 });
  fc.assert(
    fc.property(steps, (all) => {
      const shared = new SharedElements(groupOf);
      const now = new Map<string, KernelListener>();
      const kernel = new Set<string>();
      for (const [each, isThere] of all) {
        const change = { before: now.get(each.name), after: isThere ? each : undefined };
        if (isThere) now.set(each.name, each);
        else now.delete(each.name);
        const { removed, added } = shared.change([change]);
        for (const word of inWords(removed)) if (!kernel.delete(word)) return false;
        for (const word of inWords(added)) {
          if (kernel.has(word)) return false;
          kernel.add(word);
        }
      }
      const fresh = new SharedElements(groupOf);
      const { added } = fresh.change(Array.from(now.values(), (after) => ({ before: undefined, after })));
      return JSON.stringify([...kernel].sort()) === JSON.stringify([...inWords(added)].sort());
    }),
  );
  t.pass();
});
