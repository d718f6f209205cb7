// Who asks the pools for an address; above all what a manifest that was copied from a cluster, with its UID, asks for.

import test from 'ava';
import { askedAddress, type PoolsView } from '../../../agent/address-keeper/asked-address.ts';
import { service } from '../../support/values/build.ts';
import { SETTINGS } from '../../support/values/translated.ts';

const POOLS: PoolsView = {
  isAny: true,
  isOfCluster: false,
  isOfFolder: () => true,
  ingressesOf: () => [],
  namespaceLabels: () => undefined,
  localOf: (address) => address,
  hasFamilyOf: () => false,
  owns: (address) => address.startsWith('192.0.2.'),
  hasAddress: () => false,
  hasClaimOn: () => false,
};
const OUTSIDE = '10.9.9.9';
const asks = (loadBalancerIP: string, pools: Partial<PoolsView>, uid = '5e6a') =>
  askedAddress(service({ uid, loadBalancerIP }), SETTINGS, { ...POOLS, ...pools }) !== undefined;

for (const uid of ['', '5e6a'])
  test(`A manifest ${uid === '' ? 'without' : 'with'} a UID has the address outside the pools that it names`, (t) => {
    t.false(asks(OUTSIDE, {}, uid));
    t.true(asks('192.0.2.10', {}, uid));
    t.true(asks('', {}, uid));
  });

test('A Service of the cluster also requests an address outside the pools that it names', (t) => {
  t.true(asks(OUTSIDE, { isOfFolder: () => false }));
});

test('A Service of the cluster keeps an address outside the pools that it had before the first pool', (t) => {
  const asking = (statusIPs: readonly string[], pools: Partial<PoolsView> = {}) =>
    askedAddress(service({ uid: '5e6a', loadBalancerIP: OUTSIDE, statusIPs }), SETTINGS, {
      ...POOLS,
      isOfFolder: () => false,
      ...pools,
    }) !== undefined;
  t.false(asking([OUTSIDE]));
  t.true(asking(['10.9.9.8']));
  t.true(asking([OUTSIDE], { hasClaimOn: () => true }));
  t.true(asking([OUTSIDE], { owns: () => true }));
});

test('A manifest gets no address if claims are in the cluster, unless it has one', (t) => {
  t.false(asks('', { isOfCluster: true }));
  t.true(asks('', { isOfCluster: true, hasAddress: () => true }));
  t.true(asks('', { isOfCluster: true, isOfFolder: () => false }));
});

test('A Service of another controller asks for an address only if a pool has the one that it shows', (t) => {
  const asking = (statusIPs: readonly string[], pools: Partial<PoolsView> = {}) =>
    askedAddress(
      service({
        uid: '5e6a',
        loadBalancerClass: undefined,
        loadBalancerIP: undefined,
        statusIPs,
        hasForeignStatus: true,
      }),
      { ...SETTINGS, handleUnclassed: true },
      { ...POOLS, isOfFolder: () => false, ...pools },
    ) !== undefined;
  t.false(asking([OUTSIDE]));
  t.false(asking([]), 'It shows a name');
  t.true(asking(['192.0.2.10']));
  t.true(asking([OUTSIDE], { hasAddress: () => true, hasClaimOn: () => true }));
});
