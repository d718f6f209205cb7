import test from 'ava';
import { Cluster } from '../../../agent/kubernetes/cluster.ts';
import type { Vip } from '../../../agent/model/load-balancer.ts';
import { ageOf, precedenceOf } from '../../../agent/translate/precedence.ts';
import { service } from '../../support/values/build.ts';
import { gateway, gatewayClass } from '../../support/values/gateways.ts';
import { FollowedState } from '../../support/values/translated.ts';

const vip = (source: Vip['source']): Vip => ({ address: '192.0.2.1', family: 'v4', source });

for (const [what, source, statusIPs, isOfFolder, overrules, rank] of [
  ['An address of a pool', 'pool', [], false, false, 0],
  ['A named address that the status shows', 'annotation', ['192.0.2.1'], false, false, 0],
  ['An address that is only named', 'annotation', ['192.0.2.2'], false, false, 1],
  ['An address of a folder, whatever its status says', 'annotation', ['192.0.2.1'], true, true, 1],
] as const)
  test(`${what} has rank ${rank}${overrules ? ', and overrules the others' : ''}`, (t) => {
    t.deepEqual(precedenceOf(vip(source), { isOfFolder, statusIPs }), { overrules, rank });
  });

test('An owner of a folder counts as the youngest', (t) => {
  t.deepEqual([ageOf(5, false), ageOf(5, true)], [5, Number.POSITIVE_INFINITY]);
});

test('A Gateway of a folder overrules a Service of the cluster on one port of an address', (t) => {
  const state = new FollowedState(new Cluster());
  const address = '192.0.2.10';
  const addressesOf = (key: string) =>
    state.desired.loadBalancers.get(key)?.listeners.flatMap((listener) => listener.addresses);
  state.apply({ upserted: [gatewayClass(), service({ created: 1, loadBalancerIP: address })], removed: [] });
  t.deepEqual(addressesOf('default/web'), [address]);
  const named = (uid: string) =>
    gateway('edge', { addresses: [{ type: 'IPAddress', value: address }] }, { uid });
  state.apply({ upserted: [named('u-edge')], removed: [] });
  t.deepEqual([addressesOf('default/web'), addressesOf('gateway:default/edge')], [[address], []]);
  state.apply({ upserted: [named('')], removed: [] }, 'manifests');
  t.deepEqual([addressesOf('default/web'), addressesOf('gateway:default/edge')], [[], [address]]);
});
