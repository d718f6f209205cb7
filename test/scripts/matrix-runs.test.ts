import test from 'ava';
import { matrixRuns, type Program } from '../../scripts/matrix-runs.ts';

const INSTALLED = { haproxy: program('2.6.12'), keepalived: program('2.2.7'), nft: program('1.0.6') };
const OTHERS = {
  haproxy: [program('3.0.11'), program('3.2.26')],
  keepalived: [program('2.3.3')],
  nft: [program('1.1.3'), program('1.1.7')],
};

function program(version: string): Program {
  return { version, path: `/${version}` };
}

/** Each run as `HAPROXY KEEPALIVED NFT: daemons`. */
function told(...given: Parameters<typeof matrixRuns>): readonly string[] {
  return matrixRuns(...given).map(
    ({ host: { haproxy, keepalived, nft }, daemons }) =>
      `${haproxy.version} ${keepalived.version} ${nft.version}: ${daemons.join(' ')}`,
  );
}

test('matrixRuns() runs the tests of each version of each daemon once', (t) => {
  t.deepEqual(told(INSTALLED, OTHERS), [
    '2.6.12 2.2.7 1.0.6: haproxy keepalived nft',
    '3.0.11 2.3.3 1.0.6: haproxy keepalived',
    '3.2.26 2.3.3 1.0.6: haproxy',
    '2.6.12 2.2.7 1.1.3: nft',
    '2.6.12 2.2.7 1.1.7: nft',
  ]);
});

test('matrixRuns() does not repeat the installed version if Debian has the same', (t) => {
  const newer = { haproxy: program('3.0.11'), keepalived: program('2.3.3'), nft: program('1.1.7') };
  t.deepEqual(told(newer, OTHERS), [
    '3.0.11 2.3.3 1.1.7: haproxy keepalived nft',
    '3.2.26 2.3.3 1.1.7: haproxy',
    '3.0.11 2.3.3 1.1.3: nft',
  ]);
});

test('matrixRuns() selects one daemon, or one version of it', (t) => {
  t.deepEqual(told(INSTALLED, OTHERS, 'keepalived'), [
    '2.6.12 2.2.7 1.0.6: keepalived',
    '3.0.11 2.3.3 1.0.6: keepalived',
  ]);
  t.deepEqual(told(INSTALLED, OTHERS, 'haproxy', '3.2'), ['3.2.26 2.3.3 1.0.6: haproxy']);
  t.deepEqual(told(INSTALLED, OTHERS, 'haproxy', '2.6.12'), ['2.6.12 2.2.7 1.0.6: haproxy']);
  t.deepEqual(told(INSTALLED, OTHERS, 'haproxy', '3'), [
    '3.0.11 2.3.3 1.0.6: haproxy',
    '3.2.26 2.3.3 1.0.6: haproxy',
  ]);
  t.deepEqual(told(INSTALLED, OTHERS, 'haproxy', '2'), ['2.6.12 2.2.7 1.0.6: haproxy']);
  t.deepEqual(told(INSTALLED, OTHERS, 'haproxy', '2.60'), []);
  t.deepEqual(told(INSTALLED, OTHERS, 'nft', '1.1.7'), ['2.6.12 2.2.7 1.1.7: nft']);
});

test('matrixRuns() combines each HAProxy with the installed keepalived if Debian has no other', (t) => {
  t.deepEqual(told(INSTALLED, { ...OTHERS, keepalived: [] }), [
    '2.6.12 2.2.7 1.0.6: haproxy keepalived nft',
    '3.0.11 2.2.7 1.0.6: haproxy',
    '3.2.26 2.2.7 1.0.6: haproxy',
    '2.6.12 2.2.7 1.1.3: nft',
    '2.6.12 2.2.7 1.1.7: nft',
  ]);
});

test('matrixRuns() runs all other tests if one version is not available', (t) => {
  const gone = (version: string): Program => ({ version, path: undefined });
  t.deepEqual(told(INSTALLED, { ...OTHERS, keepalived: [gone('2.3')] }), [
    '2.6.12 2.2.7 1.0.6: haproxy keepalived nft',
    '3.0.11 2.2.7 1.0.6: haproxy',
    '3.2.26 2.2.7 1.0.6: haproxy',
    '2.6.12 2.3 1.0.6: keepalived',
    '2.6.12 2.2.7 1.1.3: nft',
    '2.6.12 2.2.7 1.1.7: nft',
  ]);
  t.deepEqual(told(INSTALLED, { ...OTHERS, haproxy: [gone('3.0'), program('3.2.26')] }), [
    '2.6.12 2.2.7 1.0.6: haproxy keepalived nft',
    '3.0 2.3.3 1.0.6: haproxy',
    '3.2.26 2.3.3 1.0.6: haproxy keepalived',
    '2.6.12 2.2.7 1.1.3: nft',
    '2.6.12 2.2.7 1.1.7: nft',
  ]);
  t.deepEqual(told(INSTALLED, { ...OTHERS, haproxy: [] }), [
    '2.6.12 2.2.7 1.0.6: haproxy keepalived nft',
    '2.6.12 2.3.3 1.0.6: keepalived',
    '2.6.12 2.2.7 1.1.3: nft',
    '2.6.12 2.2.7 1.1.7: nft',
  ]);
});
