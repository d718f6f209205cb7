import { deepStrictEqual } from 'node:assert/strict';
import test from 'ava';
import fc from 'fast-check';
import { hostKey, hostPattern } from '../../../../agent/translate/routes/host-pattern.ts';
import { type HostedRoute, SectionHosts } from '../../../../agent/translate/routes/section-hosts.ts';
import { matchOf, ruleOf } from '../../../support/values/routes.ts';

const HOSTS = ['a.org', 'b.org', '*.org'];
const ANSWER = { kind: 'answer', status: 404 } as const;

/** The routes that there may be: each is on some of the hosts. */
const ROUTES = Array.from({ length: 12 }, (_, at): HostedRoute => {
  const key = `default/r${at}`;
  const match = matchOf(`/${'x/'.repeat(at % 3)}`);
  return {
    entries: { created: at % 4, key, entries: [{ match, rule: ruleOf(ANSWER, { name: key }) }] },
    hosts: HOSTS.filter((_each, host) => (at + 1) & (1 << host))
      .map((hostname) => hostPattern(hostname, 'labels'))
      .map((host) => ({ host, key: hostKey(host) })),
  };
});

const sorted = (hosts: ReturnType<SectionHosts['update']>) =>
  hosts.toSorted((a, b) => (hostKey(a.host) < hostKey(b.host) ? -1 : 1));

test('SectionHosts gives after any updates what it gives for the last one alone', (t) => {
  fc.assert(
    fc.property(fc.array(fc.subarray(ROUTES), { minLength: 1, maxLength: 6 }), (updates) => {
      const section = new SectionHosts();
      const results = updates.map((routes) => section.update(routes));
      const alone = new SectionHosts().update(updates.at(-1) ?? []);
      deepStrictEqual(sorted(results.at(-1) ?? []), sorted(alone));
    }),
  );
  t.pass();
});

test('SectionHosts keeps the values of hosts whose routes did not change', (t) => {
  const section = new SectionHosts();
  const [onA, onB, onBoth] = ROUTES as [HostedRoute, HostedRoute, HostedRoute];
  const before = section.update([onA, onB, onBoth]);
  t.is(section.update([onBoth, onA, onB]), before, 'another order');
  const after = section.update([onA, onBoth]);
  const of = (hosts: typeof before, name: string) => hosts.find(({ host }) => host.suffix === name);
  t.is(of(after, 'a.org'), of(before, 'a.org'));
  t.not(of(after, 'b.org'), of(before, 'b.org'));
  const again = { ...onA };
  t.is(section.update([again, onBoth]), after, 'the same entries');
});
