// The reference agent's own code is the judge of what an interface needs.

import { fileURLToPath } from 'node:url';
import ava from 'ava';
import fc from 'fast-check';
import { runCommand } from '../../../../agent/host/run-command.ts';
import {
  type Plugged,
  type Topology,
  type WantedInterface,
  wantedInterface,
} from '../../../../agent/octavia/network/wanted-interface.ts';
import type { FixedAddress } from '../../../../agent/octavia/parts.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { VIP_MAC } from '../../../support/octavia/plugs.ts';

const test = requires(ava, { programs: ['octavia-worker'] });

const PROGRAM = fileURLToPath(new URL('../../../support/octavia/plug-files.py', import.meta.url));
/** Each costs the start of Octavia's modules. */
const RUNS = 8;

interface Needs {
  readonly addresses: readonly string[];
  readonly routes: readonly string[];
  readonly rules: readonly string[];
}

/** Subnets of both families, of which each address is in one. */
const fixed = (number: number): fc.Arbitrary<FixedAddress> =>
  fc
    .record({ isV6: fc.boolean(), hasGateway: fc.boolean(), routes: fc.integer({ min: 0, max: 2 }) })
    .map(({ isV6, hasGateway, routes }) => {
      const at = (host: number) => (isV6 ? `fd0${number}::${host}` : `10.${number}.0.${host}`);
      return {
        address: at(5 + number),
        subnet: isV6 ? `fd0${number}::/64` : `10.${number}.0.0/2${number}`,
        gateway: hasGateway ? at(1) : undefined,
        hostRoutes: Array.from({ length: routes }, (_, index) => ({
          destination: isV6 ? `fd77:${number}:${index + 1}::/48` : `10.7${number}.${index}.0/24`,
          nextHop: at(2 + index),
        })),
      };
    });

const plugged: fc.Arbitrary<Plugged> = fc
  .record({
    vip: fixed(1),
    additionalVips: fc.oneof(fc.constant([]), fc.tuple(fixed(2)), fc.tuple(fixed(2), fixed(3))),
    members: fc.oneof(fc.constant([]), fc.tuple(fixed(4)), fc.tuple(fixed(4), fixed(5))),
    hasVips: fc.boolean(),
  })
  .map(({ vip, additionalVips, members, hasVips }) => ({
    name: hasVips ? 'eth1' : 'eth2',
    mac: VIP_MAC,
    mtu: undefined,
    isSriov: false,
    vip: hasVips
      ? { vrrpAddress: vip.address.replace(/6$/, '16'), vip, additionalVips: [...additionalVips] }
      : undefined,
    fixed: [...members],
    rules: undefined,
  }));

test('wantedInterface() asks for what the reference agent sets', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      plugged.filter((each) => each.vip !== undefined || each.fixed.length > 0),
      fc.constantFrom<Topology>('SINGLE', 'ACTIVE_STANDBY'),
      async (value, topology) => {
        t.deepEqual(needsOf(wantedInterface(value, topology)), await reference(value, topology));
      },
    ),
    { numRuns: RUNS },
  );
});

function needsOf({ addresses, routes, rules = [] }: WantedInterface): Needs {
  return {
    addresses: addresses.map(({ address, prefix }) => `${address}/${prefix}`).toSorted(),
    routes: routes
      .map(({ table, destination, gateway, source }) =>
        [
          ...[String(table), destination],
          ...(gateway === undefined ? [] : ['via', gateway]),
          ...(source === undefined ? [] : ['src', source]),
        ].join(' '),
      )
      .toSorted(),
    rules: rules.map(({ from, table }) => `${from} ${table}`).toSorted(),
  };
}

async function reference({ vip, fixed: members }: Plugged, topology: Topology): Promise<Needs> {
  const subnet = ({ address, subnet: cidr, gateway, hostRoutes }: FixedAddress) => ({
    ip_address: address,
    subnet_cidr: cidr,
    gateway: gateway ?? null,
    host_routes: hostRoutes.map(({ destination, nextHop }) => ({ destination, nexthop: nextHop })),
  });
  const fixed_ips = members.map(subnet);
  const given =
    vip === undefined
      ? { topology, network: { fixed_ips } }
      : {
          topology,
          vip: {
            ...subnet(vip.vip),
            vip: vip.vip.address,
            vrrp_ip: vip.vrrpAddress,
            mtu: null,
            additional_vips: vip.additionalVips.map(subnet),
            fixed_ips,
          },
        };
  const input = JSON.stringify(given);
  const { stdout, stderr } = await runCommand('/usr/bin/python3', [PROGRAM], { timeout: 60_000, input });
  if (stdout === '') throw new Error(stderr);
  const { addresses, routes, rules } = JSON.parse(stdout) as Needs;
  // The kernel has one route to a destination in a table: the reference's second one is refused.
  const first = new Map<string, string>();
  for (const route of routes) {
    const place = route.split(' ', 2).join(' ');
    if (!first.has(place)) first.set(place, route);
  }
  return {
    addresses: [...new Set(addresses)].toSorted(),
    routes: [...first.values()].toSorted(),
    rules: [...new Set(rules)].toSorted(),
  };
}
