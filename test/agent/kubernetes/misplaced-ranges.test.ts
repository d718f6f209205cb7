import test from 'ava';
import { parseManifest } from '../../../agent/kubernetes/manifests/manifest-file.ts';
import { type Json, listJson, serviceJson } from '../../support/values/kubernetes-json.ts';

const ranges = ['192.0.2.0/24'];
const parse = (json: Json, more = '') =>
  parseManifest('/m/a.json', Buffer.from(`${JSON.stringify(json)}${more}\n`));

for (const [place, json] of [
  ...[
    'loadBalancerSourceRange',
    'loadbalancerSourceRanges',
    'LoadBalancerSourceRanges',
    'loadBalancerSourcesRanges',
    'loadBalancerSourceRagnes',
    'load-balancer-source-ranges',
  ].map((name) => {
    const place = name.includes('-') ? `spec["${name}"]` : `spec.${name}`;
    return [place, serviceJson('web', { spec: { [name]: ranges } })] as const;
  }),
  [
    'metadata.loadBalancerSourceRanges',
    serviceJson('web', { metadata: { loadBalancerSourceRanges: ranges } }),
  ],
  ['loadBalancerSourceRanges', { ...serviceJson(), loadBalancerSourceRanges: ranges }],
  [
    'spec.loadBalancerSourceRange',
    serviceJson('web', {
      spec: { loadBalancerSourceRanges: ranges, loadBalancerSourceRange: ['0.0.0.0/0'] },
    }),
  ],
] as const)
  test(`A Service with its ranges in ${place} (${JSON.stringify(json).length}) is refused, and nobody is served without them`, (t) => {
    const message = `/m/a.json: Service default/web: ${place}: the field is unknown, the nearest is "spec.loadBalancerSourceRanges", which protects`;
    const long = { ...json, status: { text: 'x'.repeat(300_000) } };
    for (const given of [json, listJson([json]), long]) {
      const { objects, problems, broken } = parse(given);
      t.is(objects.size, 0);
      t.deepEqual(
        problems.map((each) => [each.object, each.reason, each.message.replace('items[0]: ', '')]),
        [['Service default/web', 'InvalidObject', message]],
      );
      t.true(broken, 'The object of before stays in use');
    }
  });

test('A Service without ranges, with them in their place or with other fields is not refused', (t) => {
  for (const spec of [
    {},
    { loadBalancerSourceRanges: ranges },
    { loadBalancerIP: '192.0.2.1', loadBalancerClass: 'a/b', externalTrafficPolicy: 'Local' },
  ])
    t.is(parse(serviceJson('web', { spec })).objects.size, 1);
});
