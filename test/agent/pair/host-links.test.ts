import { randomInt } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import type { LbHost } from '../../../agent/model/host-group.ts';
import { HostLinks, type OwnReport } from '../../../agent/pair/host-links.ts';
import { noArrivals } from '../../../agent/pair/peers/report.ts';
import { nothingReleased } from '../../../agent/state/release-mark.ts';
import { requires } from '../../support/basics/requirements.ts';
import { until } from '../../support/basics/until.ts';
import { ownNetwork } from '../../support/host/own-network.ts';
import { silentLog } from '../../support/values/silent-log.ts';
import { makeCredentials } from '../../support/vrrp/pair-credentials.ts';

const test = requires(ava, { programs: ['openssl'] });

const same = 'a'.repeat(32);

async function threeHosts(t: ExecutionContext) {
  const network = await ownNetwork(t);
  const folder = await mkdtemp(join(tmpdir(), 'headgate-hosts-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const credentials = await makeCredentials(folder);
  const port = randomInt(20_000, 30_000);
  const hosts = [1, 2, 3].map(
    (at): LbHost => ({
      name: `lb${at}`,
      address: `${network}.${at}`,
      back: [`10.9.9.${at}`],
      anchors: [],
    }),
  );
  const alive = new Set(hosts.map(({ name }) => name));
  const groups = hosts.map((self) => ({ self, hosts: hosts as readonly LbHost[] }));
  const own: OwnReport[] = [];
  const proved: string[] = [];
  const links = groups.map((_, at) => {
    own[at] = {
      ...{ version: `1.0.${at + 1}`, lowered: [], synced: true, loadBalancers: 1, pending: 0 },
      ...{
        model: same,
        running: same,
        arrivals: noArrivals,
        announcesAll: false,
        isBlind: false,
        released: nothingReleased,
      },
    };
    return new HostLinks({
      group: () => groups[at] as (typeof groups)[number],
      link: { port, credentials, tables: () => '' },
      own: () => own[at] as OwnReport,
      living: { isKnown: true, living: () => alive, follow: () => () => undefined },
      announcement: (address) => ({
        ...{ address, worn: 'first', count: 2, of: 2, routers: 'tor-a, tor-b', why: '' },
      }),
      hooks: {
        onReport: () => undefined,
        onProved: async () => void proved.push(`lb${at + 1}`),
        onRefused: () => undefined,
      },
      log: silentLog(),
    });
  });
  t.teardown(() => {
    for (const each of links) each.close();
  });
  const [a, b, c] = links as [HostLinks, HostLinks, HostLinks];
  return { a, b, c, links, own, groups, hosts, alive, proved };
}

test('HostLinks connects all hosts with one another, and shows what each is beside this one', async (t) => {
  const { a, b, c, links, own, alive, proved } = await threeHosts(t);
  await Promise.all(links.map((each) => each.renew()));
  await until('all are connected', () => links.every((each) => each.status().fault === ''));
  t.deepEqual(proved.toSorted(), ['lb1', 'lb2', 'lb3']);
  t.like(a.status().hosts[1], { name: 'lb2', version: '1.0.2', fault: '', bfd: 'up' });
  own[1] = { ...(own[1] as OwnReport), lowered: ['maintenance'], running: '', model: 'b'.repeat(32) };
  b.send();
  await until('it is lowered', () => a.status().hosts[1]?.lowered.join() === 'maintenance');
  t.deepEqual(a.status().hosts[1]?.parity, { model: 'differs', running: 'unknown' });
  t.deepEqual(a.status().hosts[0]?.parity, { model: 'same', running: 'same' });
  t.false(a.isAnnouncedElsewhere);
  own[2] = { ...(own[2] as OwnReport), announcesAll: true };
  c.send();
  await until('lb3 announces all', () => a.isAnnouncedElsewhere);
  alive.delete('lb3');
  t.regex(a.status().fault, /^No BFD over the back network with lb3: check/);
});

test('HostLinks asks each host how it announces a VIP', async (t) => {
  const { a, c, links } = await threeHosts(t);
  await Promise.all(links.map((each) => each.renew()));
  await until('all are connected', () => links.every((each) => each.status().fault === ''));
  const answers = await a.announcements('198.51.100.7');
  t.deepEqual([...answers.keys()], ['lb1', 'lb2', 'lb3']);
  t.true([...answers.values()].every((each) => each?.count === 2));
  c.close();
  await until('lb3 is away', () => a.status().fault !== '');
  t.is((await a.announcements('198.51.100.8')).get('lb3'), undefined);
  t.regex(a.status().fault, /^Host lb3: it/);
});

test('HostLinks follows another list of hosts, and refuses one that is not in it', async (t) => {
  const { a, c, links, groups, hosts } = await threeHosts(t);
  const without = hosts.slice(0, 2);
  for (const at of [0, 1]) groups[at] = { self: hosts[at] as LbHost, hosts: without };
  await Promise.all(links.map((each) => each.renew()));
  await until('two are connected', () => a.status().fault === '');
  t.deepEqual([...a.reports().keys()], ['lb2']);
  t.regex(c.status().fault, /Host lb1: it is not heard/);
  groups[0] = { self: hosts[0] as LbHost, hosts };
  await Promise.all(links.map((each) => each.renew()));
  await until('the lists differ', () =>
    /^Host lb2: its setting "hosts" is another than/.test(a.status().fault),
  );
  t.deepEqual([...a.differing], ['lb2']);
  groups[1] = { self: hosts[1] as LbHost, hosts };
  await Promise.all(links.map((each) => each.renew()));
  await until('all are connected', () => links.every((each) => each.status().fault === ''));
  t.deepEqual([...a.reports().keys()], ['lb2', 'lb3']);
  t.deepEqual([...a.differing], []);
  links[1]?.close();
  await until('lb2 is away', () => !a.reports().has('lb2'));
  groups[0] = { self: hosts[0] as LbHost, hosts: without };
  t.deepEqual([...a.differing].sort(), ['lb2', 'lb3'], 'also one whose agent has ended: its tables stay');
});
