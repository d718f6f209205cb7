// The Ansible role on a host with a real systemd. HEADGATE_DEB names the package; `make test-image` builds it.

import { execFileSync } from 'node:child_process';
import { cp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { copyRoot, MachineLab, VIP } from '../support/host/machine-lab.ts';

const test = requires(ava, { root: true, programs: ['debootstrap', 'dpkg-deb', 'setpriv', 'unshare'] });

test('The Ansible role makes a host that serves, and a second run changes nothing', async (t) => {
  // Three plays of some twenty starts of Python each, which other work on the machine makes several times as slow.
  t.timeout(900_000);
  const deb = process.env.HEADGATE_DEB;
  if (deb === undefined) return t.fail('HEADGATE_DEB names no package: "make test-image" builds one');
  const script = fileURLToPath(new URL('../../scripts/image/debian-root.sh', import.meta.url));
  const base = execFileSync('sh', [script, '--offline', '--ansible'], { encoding: 'utf8' }).trim();
  const lab = await MachineLab.create(t, (root) => copyRoot(base, root));
  const { machine, network } = lab;
  await rm(join(machine.root, 'usr/sbin/policy-rc.d'));
  await lab.bring(deb, 'opt/headgate.deb');
  await cp('deploy/ansible', join(machine.root, 'opt/ansible'), { recursive: true });
  await lab.boot();
  await lab.serve('etc/headgate/manifests', VIP);
  const own = network.v4('lb');
  const play = (settings: object) => [
    {
      hosts: 'localhost',
      connection: 'local',
      gather_facts: false,
      vars: { ansible_python_interpreter: '/usr/bin/python3' },
      roles: [
        {
          role: 'headgate',
          vars: {
            headgate_package: '/opt/headgate.deb',
            headgate_settings: settings,
            headgate_bgp_passwords: { tor: 'secret' },
          },
        },
      ],
    },
  ];
  const settings = {
    manifests: ['/etc/headgate/manifests'],
    listen: `${own}:9180`,
    vrrp: {
      interface: 'eth0',
      address: own,
      peers: ['10.9.0.99'],
      instances: [{ virtualRouterId: 51, anchors: ['10.9.0.1'] }],
    },
  };
  const run = async (given: object): Promise<string> => {
    await lab.put('opt/ansible/site.yml', JSON.stringify(play(given)));
    const settings = ['LC_ALL=C.UTF-8', 'ANSIBLE_PIPELINING=True', 'ANSIBLE_LOG_PATH=/opt/ansible/log'];
    const command = ['ansible-playbook', '-i', 'localhost,', '/opt/ansible/site.yml'];
    return machine.run('env', ...settings, ...command).catch(async (error) => {
      t.log(await readFile(join(machine.root, 'opt/ansible/log'), 'utf8'));
      throw error;
    });
  };
  t.regex(await run(settings), /failed=0/);
  await lab.answers();
  t.true((await network.held('lb')).includes(VIP));
  t.regex(await run(settings), /changed=0 .*failed=0/);

  const before = await machine.show('headgate', 'MainPID');
  t.regex(await run({ ...settings, drainTimeout: '2m' }), /changed=2 .*failed=0/);
  t.is(await machine.show('headgate', 'MainPID'), before);
  t.regex(await machine.run('journalctl', '--no-pager', '--unit=headgate'), /drainTimeout/);

  // The same host, by BGP: the router is the one of the test's imagination.
  const peers = [{ address: '10.9.0.99', asn: 65_000, passwordFile: '/etc/headgate/tor' }];
  const { vrrp: _, ...others } = settings;
  const bgp = { ...others, announce: 'bgp', bgp: { asn: 65_001, routerId: own, peers } };
  t.regex(await run(bgp), /failed=0/);
  t.is(await machine.show('headgate-bird', 'ActiveState'), 'active');
  t.is(await machine.show('bird', 'ActiveState'), 'inactive');
  t.is(await machine.run('stat', '-c', '%U %a', '/etc/headgate/tor'), 'headgate 600\n');
  const checked = await machine
    .run('headgate', 'check', '--config', '/etc/headgate/headgate.yaml')
    .catch(String);
  t.regex(checked, /^ok +BIRD: 2\./m);
  t.regex(await run(bgp), /changed=0 .*failed=0/);
  await machine.powerOff();
});
