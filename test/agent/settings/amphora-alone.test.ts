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

test('checkAmphora() refuses a runtimeDir with no room for the sockets of a load balancer', (t) => {
  const folder = (length: number) => `/${'r'.repeat(length - 1)}`;
  t.notThrows(() => checkAmphora(read('--amphora', '/a.conf', '--runtime-dir', folder(38))));
  t.notThrows(() => checkAmphora(read('--runtime-dir', folder(39))));
  t.throws(() => checkAmphora(read('--amphora', '/a.conf', '--runtime-dir', folder(39))), {
    message: /^Cannot use the runtimeDir "\/r+" for an amphora: its path may have at most 38 bytes/,
  });
});
