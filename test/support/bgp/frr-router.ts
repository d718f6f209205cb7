// FRR in the namespace `router`, with the file that docs/bgp.md shows, instead of the world's own router.

import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { until } from '../basics/until.ts';
import type { BgpWorld } from './bgp-world.ts';

const FOLDER = '/usr/lib/frr';
/** In the order in which each needs the one before. */
const DAEMONS = ['zebra', 'bfdd', 'bgpd'];

export async function startFrr(
  t: ExecutionContext<unknown>,
  { network, router, hosts }: BgpWorld,
): Promise<void> {
  await router.stop('SIGTERM');
  const directory = join(hosts[0]?.host.directory ?? '', 'frr');
  await mkdir(directory);
  // The daemons have a user of their own.
  await chmod(directory, 0o777);
  const neighbours = hosts.map(({ name }) => ` neighbor ${network.v4(name)} peer-group headgate\n`);
  const texts: Readonly<Record<string, string>> = {
    bgpd: `ip prefix-list vips permit 198.51.100.0/24 ge 32
route-map vips permit 10
 match ip address prefix-list vips
router bgp 65000
 bgp router-id ${network.v4('router')}
 no bgp ebgp-requires-policy
 neighbor headgate peer-group
 neighbor headgate remote-as 65001
 neighbor headgate bfd
${neighbours.join('')} address-family ipv4 unicast
  neighbor headgate route-map vips in
  maximum-paths 16
`,
  };
  for (const daemon of DAEMONS) {
    const own = join(directory, daemon);
    await writeFile(`${own}.conf`, texts[daemon] ?? '');
    const files = ['-f', `${own}.conf`, '-i', `${own}.pid`, '-z', join(directory, 'zserv.sock')];
    const control = ['--vty_socket', directory, ...(daemon === 'bfdd' ? ['--bfdctl', `${own}.sock`] : [])];
    const child = network.start(
      'router',
      join(FOLDER, daemon),
      ...files,
      ...control,
      '-u',
      'frr',
      '-g',
      'frr',
    );
    t.teardown(() => child.kill('SIGKILL'));
    await until(`${daemon} runs`, async () => {
      const { exitCode } = await network.try('router', 'test', '-S', join(directory, `${daemon}.vty`));
      return exitCode === 0;
    });
  }
}
