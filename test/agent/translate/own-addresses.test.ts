import test from 'ava';
import { PortOwners } from '../../../agent/model/port-owners.ts';
import { ownAddresses } from '../../../agent/translate/own-addresses.ts';

const HTTPS = { protocol: 'TCP', port: 443 } as const;

/** The owners that have port 443 of an address. */
function owners(holders: Readonly<Record<string, string>>): PortOwners {
  const portOwners = new PortOwners();
  for (const [address, owner] of Object.entries(holders))
    portOwners.update(owner, 1, [{ address, ...HTTPS, overrules: false, rank: 0 }]);
  return portOwners;
}

test('ownAddresses() gives the addresses whose port the owner has, or nobody', (t) => {
  const portOwners = owners({ '192.0.2.1': 'gateway:default/edge' });
  const addresses = ['192.0.2.1', '192.0.2.2'];
  const { own, refused } = ownAddresses('gateway:default/edge', HTTPS, addresses, portOwners);
  t.deepEqual(own, addresses);
  t.deepEqual(refused, []);
});

for (const [key, object] of [
  ['default/web', 'Service default/web'],
  ['gateway:default/edge', 'Gateway default/edge'],
  ['ingress:-/edge', 'IngressClass edge'],
] as const)
  test(`ownAddresses() refuses ${object} an address whose port another owner has`, (t) => {
    const portOwners = owners({ '192.0.2.1': 'default/first', '192.0.2.2': key });
    const { own, refused } = ownAddresses(key, HTTPS, ['192.0.2.1', '192.0.2.2'], portOwners);
    t.deepEqual(own, ['192.0.2.2']);
    const message = 'Cannot listen on 192.0.2.1 TCP port 443: the Service "default/first" holds it';
    t.deepEqual(refused, [{ object, reason: 'AddressInUse', message, port: HTTPS }]);
  });
