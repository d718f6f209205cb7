// The rendered filter, judged by the real BIRD: nothing but the VIPs leaves, whatever else is in its tables, and nothing that a
// router sends comes in.

import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava from 'ava';
import fc from 'fast-check';
import { makeFolder } from '../../../../agent/host/make-directory.ts';
import type { VipRoute } from '../../../../agent/vips/bgp.ts';
import { BirdSocket } from '../../../../agent/vips/bird/bird-socket.ts';
import { birdPaths } from '../../../../agent/vips/bird/paths.ts';
import { renderBird, renderVips } from '../../../../agent/vips/bird/render.ts';
import { routesIn } from '../../../../agent/vips/bird/session-facts.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { until } from '../../../support/basics/until.ts';
import { bgpPeer, bgpSettings } from '../../../support/bgp/bgp-values.ts';
import { TestNetwork } from '../../../support/host/namespaces.ts';

const test = requires(ava, { root: true, programs: ['bird', 'ip', 'nsenter', 'sysctl'] });

const RUNS = 25;

const v4 = fc
  .tuple(fc.constantFrom(10, 172, 198, 203), fc.nat(255), fc.nat(255), fc.nat(255))
  .map((parts) => parts.join('.'));
const v6 = fc
  .integer({ min: 1, max: 0xffff })
  .map((number) => `2001:db8::${number.toString(16).padStart(4, '1')}`);
const vips = fc.uniqueArray(fc.oneof(v4, v6), { maxLength: 12 });
/** Routes of other protocols in the same tables, also with the length of a VIP, and others in the include file's protocol. */
const foreign = fc.uniqueArray(fc.tuple(v4, fc.constantFrom(8, 24, 31, 32)), {
  maxLength: 8,
  selector: String,
});

/** VIPs of these networks leave with aggregates, and those of 172 to no peer of this test. */
const AGGREGATES = { v4: ['10.0.0.0/8{16,16}', '198.0.0.0/8{24,24}'], v6: ['2001:db8::/64{120,120}'] };
const LENGTHS: Readonly<Record<string, number>> = { '10': 16, '198': 24 };

function routeSpec(address: string): VipRoute | undefined {
  const [first = ''] = address.split('.');
  const none = { whyNot: '', communities: ['65001:7'], largeCommunities: [], localPreference: 300 };
  if (first === '172') return { ...none, peers: ['elsewhere'], aggregate: '' };
  if (address.includes(':'))
    return { ...none, peers: ['over-v6'], aggregate: `${address.slice(0, -2).replace(/:$/, '::')}00/120` };
  const length = LENGTHS[first];
  return length === undefined
    ? undefined
    : { ...none, peers: [], aggregate: `${masked(address, length)}/${length}` };
}

test.serial(
  'Nothing but the VIPs and their aggregates leaves, to their peers only, and nothing comes in',
  async (t) => {
    t.timeout(180_000);
    const directory = await mkdtemp(join(tmpdir(), 'hg-'));
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    const network = await TestNetwork.create(t, ['host', 'router']);
    const paths = birdPaths(directory);
    await makeFolder(paths.directory, 0o700);
    const peers = [
      bgpPeer({ name: 'over-v4', address: network.v4('router') }),
      bgpPeer({ name: 'over-v6', address: network.v6('router'), families: ['v6'] }),
    ];
    const settings = bgpSettings({ peers, aggregates: Object.values(AGGREGATES).flat() });
    const write = async (
      given: readonly string[],
      others: readonly (readonly [string, number])[],
    ): Promise<void> => {
      const worn = given.map((address, at) => [address, at % 3 === 0 ? 'last' : 'first'] as const);
      await writeFile(paths.vips.v4, renderVips(worn, 'v4', routeSpec));
      await writeFile(paths.vips.v6, renderVips(worn, 'v6', routeSpec));
      const routes = others.map(
        ([address, length]) => `  route ${masked(address, length)}/${length} blackhole;`,
      );
      const more = `protocol static other4 { ipv4 { table announced4; preference 250; };\n${routes.join('\n')}\n}
protocol kernel { learn; ipv4 { table announced4; import all; export none; }; }
protocol direct { ipv4 { table announced4; import all; }; ipv6 { table announced6; import all; }; }\n`;
      await writeFile(paths.config, `${renderBird(settings, paths, new Map())}\n${more}`);
    };
    await write([], []);
    const router = join(directory, 'router');
    await writeFile(
      `${router}.conf`,
      `router id 192.0.2.1;
protocol device { }
protocol static sent { ipv4; route 203.0.113.0/24 blackhole; route 203.0.113.5/32 blackhole; }
protocol bgp v4 { local ${network.v4('router')} as 65000; neighbor ${network.v4('host')} as 65001; ipv4 { import all; export all; }; }
protocol bgp v6 { local ${network.v6('router')} as 65000; neighbor ${network.v6('host')} as 65001; ipv6 { import all; export all; }; }
`,
    );
    for (const [host, config, socket] of [
      ['host', paths.config, paths.socket],
      ['router', `${router}.conf`, `${router}.sock`],
    ] as const) {
      const child = network.start(host, 'sh', '-c', `exec bird -f -c ${config} -s ${socket} 2>/dev/null`);
      t.teardown(async () => {
        child.kill('SIGKILL');
        await once(child, 'exit');
      });
    }
    const own = new BirdSocket(paths.socket, { isRestricted: false });
    const theirs = new BirdSocket(`${router}.sock`, { isRestricted: true });
    const received = async (): Promise<readonly string[]> => {
      const lines = (
        await Promise.all(['v4', 'v6'].map((name) => theirs.ask(`show route protocol ${name}`)))
      ).flatMap((reply) => reply.lines);
      const shown = lines.flatMap((line) => /^(\S+\/\d+)\s/.exec(line)?.[1] ?? []);
      return shown.sort();
    };
    const isUp = () =>
      theirs.ask('show protocols').then(
        ({ lines }) => lines.filter((line) => /^v[46] .*Established/.test(line)).length === 2,
        () => false,
      );
    await until('both sessions are established', isUp);
    await fc.assert(
      fc.asyncProperty(vips, foreign, async (given, others) => {
        await write(given, others);
        await own.ask('configure');
        const expected = given.map((address) => `${address}/${address.includes(':') ? 128 : 32}`).sort();
        // A foreign route with the address of a VIP hides the VIP's own, and does not leave either.
        const hidden = new Set(
          others.filter(([, length]) => length === 32).map(([address]) => `${address}/32`),
        );
        const foreignNets = new Set(
          others.map(([address, length]) => `${masked(address, length)}/${length}`),
        );
        const aggregates = given.flatMap((each) => routeSpec(each)?.aggregate || []);
        const visible = [
          ...expected.filter((each) => !hidden.has(each) && !each.startsWith('172.')),
          ...new Set(aggregates.filter((each) => !foreignNets.has(each))),
        ].sort();
        await until(
          'the router has the VIPs alone',
          async () => (await received()).join() === visible.join(),
          {
            seconds: 10,
            seen: () => visible.join(),
          },
        );
      }),
      { numRuns: RUNS },
    );
    const inside = [...routesIn((await own.ask('show route table announced4')).lines).keys()];
    t.false(inside.includes('203.0.113.5'), 'nothing that the router sends comes in');
  },
);

function masked(address: string, length: number): string {
  const number = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const network = length === 32 ? number : number - (number % 2 ** (32 - length));
  return [24, 16, 8, 0].map((shift) => Math.floor(network / 2 ** shift) % 256).join('.');
}
