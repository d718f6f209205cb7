import test from 'ava';
import type { PairReport } from '../../../../agent/pair/peers/report.ts';
import { VipQuestions, type VipSeen } from '../../../../agent/pair/peers/vip-questions.ts';
import { FakeClock, settled } from '../../../support/basics/fake-clock.ts';
import { pairReport } from '../../../support/vrrp/pair-report.ts';

const seen = (address: string, why: string): VipSeen => ({
  ...{ address, worn: 'first', count: 1, of: 1, routers: 'tor-a', why },
});

/** Hosts whose reports reach each other at once. */
function world(...names: readonly string[]) {
  const clock = new FakeClock();
  const hosts = new Map<string, VipQuestions>();
  const silent = new Set<string>();
  const reportsFor = (own: string): ReadonlyMap<string, PairReport> =>
    new Map(
      [...hosts]
        .filter(([name]) => name !== own)
        .map(([name, host]) => [name, { ...pairReport, ...(silent.has(name) ? {} : { vips: host.report }) }]),
    );
  for (const name of names)
    hosts.set(
      name,
      new VipQuestions({
        announcement: (address) => seen(address, `of ${name}`),
        send: () =>
          queueMicrotask(() => {
            for (const [other, host] of hosts) if (other !== name) host.heard(reportsFor(other));
          }),
        clock,
      }),
    );
  const ask = (name: string, address: string) =>
    (hosts.get(name) as VipQuestions).ask(address, () => reportsFor(name));
  return { clock, hosts, silent, ask };
}

test('VipQuestions gives the answer of each other host, two questions after one another', async (t) => {
  const { ask, clock, hosts } = world('a', 'b', 'c');
  const first = ask('a', '198.51.100.1');
  const second = ask('a', '198.51.100.2');
  t.deepEqual(
    [...(await first)],
    [
      ['b', seen('198.51.100.1', 'of b')],
      ['c', seen('198.51.100.1', 'of c')],
    ],
  );
  t.deepEqual([...(await second).keys()], ['b', 'c']);
  await clock.advance(600);
  hosts.get('b')?.heard(new Map());
  t.deepEqual(hosts.get('b')?.report, { asks: '', answers: [] });
});

test('VipQuestions leaves a host out that does not answer in time, and answers a few questions at once', async (t) => {
  const { ask, clock, silent, hosts } = world('a', 'b', 'c');
  silent.add('c');
  const asked = ask('a', '198.51.100.1');
  await settled();
  await clock.advance(1_000);
  t.deepEqual([...(await asked).keys()], ['b']);
  const many = new Map(
    [1, 2, 3].map((at) => [`x${at}`, { ...pairReport, vips: { asks: `198.51.100.${at}`, answers: [] } }]),
  );
  hosts.get('b')?.heard(many);
  t.is(hosts.get('b')?.report.answers.length, 2);
});
