// A host that gets its settings and credentials by cloud-init at its first boot, as examples/cloud-init has them.
// HEADGATE_DEB names the package; `make test-image` builds it.

import { execFileSync } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { copyRoot, MachineLab, VIP } from '../support/host/machine-lab.ts';
import { filledIn } from '../support/values/user-data.ts';

const test = requires(ava, { root: true, programs: ['debootstrap', 'dpkg-deb', 'setpriv', 'unshare'] });
const SEED = 'var/lib/cloud/seed/nocloud';
const UNITS = ['headgate', 'headgate-haproxy', 'headgate-keepalived'];

test('A host of a pair serves after its first boot with the user data of the example', async (t) => {
  const deb = process.env.HEADGATE_DEB;
  if (deb === undefined) return t.fail('HEADGATE_DEB names no package: "make test-image" builds one');
  const script = fileURLToPath(new URL('../../scripts/image/debian-root.sh', import.meta.url));
  const base = execFileSync('sh', [script, '--offline'], { encoding: 'utf8' }).trim();
  const lab = await MachineLab.create(t, (root) => copyRoot(base, root));
  const { machine, network } = lab;
  await rm(join(machine.root, 'usr/sbin/policy-rc.d'));
  await lab.bring(deb, 'opt/headgate.deb');
  // What an image has before its first boot.
  await lab.boot();
  const install = ['-y', '--no-install-recommends', 'install'];
  await machine.run('apt-get', ...install, '/opt/headgate.deb', 'keepalived', 'cloud-init');
  await machine.run('systemctl', 'disable', '--now', 'haproxy', 'keepalived');
  await machine.run('systemctl', 'enable', ...UNITS);
  await machine.powerOff();

  const text = await readFile('examples/cloud-init/pair-a.yaml', 'utf8');
  const own = network.v4('lb');
  // No cluster is here: a folder has the Services instead.
  const userData = filledIn(text, { HOST_A_ADDRESS: own, HOST_B_ADDRESS: '10.9.0.99' }).replace(
    /^ *kubeconfig: .*$/m,
    (line) => line.replace(/kubeconfig: .*/, 'manifests: [/etc/headgate/manifests]'),
  );
  await lab.put(`${SEED}/user-data`, userData.replace(/^ *pairCredentials: .*\n/m, ''));
  await lab.put(`${SEED}/meta-data`, 'instance-id: first\nlocal-hostname: lb-a\n');
  await lab.put('etc/cloud/cloud.cfg.d/99-network.cfg', 'network: { config: disabled }\n');
  await lab.serve('etc/headgate/manifests', VIP);
  await lab.boot();
  await lab.answers();
  t.true((await network.held('lb')).includes(VIP));
  t.is((await machine.run('hostname')).trim(), 'lb-a');
  t.is(await machine.run('stat', '-c', '%U %a', '/etc/credstore/headgate.kubeconfig'), 'root 600\n');
  for (const unit of UNITS) t.is(await machine.show(unit, 'ActiveState'), 'active', unit);
  // Once, although it had no settings before.
  t.is(await machine.show('headgate', 'NRestarts'), '0');
  await machine.powerOff();
});
