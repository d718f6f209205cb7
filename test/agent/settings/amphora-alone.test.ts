import test from 'ava';
import { checkAmphora } from '../../../agent/settings/amphora-alone.ts';
import { readSettings } from '../../../agent/settings/settings.ts';

const read = (...argv: readonly string[]) => readSettings({ argv, env: {}, readFile: () => '' });

test('checkAmphora() refuses sources of objects beside an amphora', (t) => {
  t.notThrows(() => checkAmphora(read('--amphora', '/a.conf', '--netns', 'x')));
  t.notThrows(() => checkAmphora(read('--manifests', '/m')));
  t.throws(() => checkAmphora(read('--amphora', '/a.conf', '--manifests', '/m', '--in-cluster')), {
    message: /^Cannot use "amphora" together with "manifests", "inCluster": /,
  });
});
