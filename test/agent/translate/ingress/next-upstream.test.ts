import test from 'ava';
import { nextUpstreamOf } from '../../../../agent/translate/ingress/next-upstream.ts';
import { readIngressOptions } from '../../../../agent/translate/ingress/nginx-annotations.ts';

const PREFIX = 'nginx.ingress.kubernetes.io/';

const read = (words: string | undefined, tries?: string) =>
  readIngressOptions({
    ...(words !== undefined && { [`${PREFIX}proxy-next-upstream`]: words }),
    ...(tries !== undefined && { [`${PREFIX}proxy-next-upstream-tries`]: tries }),
  });

for (const [words, tries, expected] of [
  [undefined, undefined, undefined],
  [undefined, '5', undefined],
  ['off', undefined, undefined],
  ['error', '1', undefined],
  ['error timeout', undefined, { retry: { attempts: 2, codes: [] }, idempotentOnly: true }],
  ['timeout http_503  http_502', '2', { retry: { attempts: 1, codes: [502, 503] }, idempotentOnly: true }],
  ['error non_idempotent', '0', { retry: { attempts: 9, codes: [] }, idempotentOnly: false }],
] as const)
  test(`proxy-next-upstream ${words} with ${tries} tries`, (t) => {
    const { options, faults } = read(words, tries);
    t.deepEqual(faults, []);
    t.deepEqual(nextUpstreamOf(options), expected);
  });

for (const [words, tries] of [
  ['error http_429', undefined],
  ['', undefined],
  ['off error', undefined],
  ['error', '11'],
] as const)
  test(`proxy-next-upstream "${words}" with ${tries} tries has a fault`, (t) => {
    t.is(read(words, tries).faults.length, 1);
  });
