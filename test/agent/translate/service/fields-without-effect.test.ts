import test from 'ava';
import { parsedObject, serviceJson, sliceJson } from '../../../support/values/kubernetes-json.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

const address = { loadBalancerClass: 'headgate.io/agent', loadBalancerIP: '192.0.2.10' };
const ports = (more: object = {}) => [{ port: 80, nodePort: 30_080, ...more }];

const noEffect = test.macro((t, spec: object) => {
  const plain = balancerOf({ ports: ports() });
  t.is(plain.listeners[0]?.pool.members.length, 1);
  t.deepEqual(balancerOf({ ports: ports(), ...spec }), plain);
});

// Conformance: spec.internalTrafficPolicy
test('internalTrafficPolicy has no effect', noEffect, { internalTrafficPolicy: 'Local' });
// Conformance: spec.healthCheckNodePort
test('healthCheckNodePort has no effect without a monitor by kube-proxy', noEffect, {
  healthCheckNodePort: 31_000,
});
// Conformance: spec.trafficDistribution
test('trafficDistribution has no effect', noEffect, { trafficDistribution: 'PreferClose' });
// Conformance: spec.ports[].appProtocol
test('appProtocol has no effect', noEffect, { ports: ports({ appProtocol: 'kubernetes.io/h2c' }) });

function balancerOf(spec: object) {
  const manifests = [serviceJson('web', { spec: { ...address, ...spec } }), sliceJson('web')];
  return loadBalancerOf(translated(manifests.map(parsedObject)));
}
