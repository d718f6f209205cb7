// Boots the image HEADGATE_IMAGE, which `make image` has built, with the files of a first boot: settings, manifests and
// VRRP enabled.

import { execFileSync } from 'node:child_process';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { MachineLab, VIP } from '../support/host/machine-lab.ts';

const test = requires(ava, { root: true, programs: ['setpriv', 'tar', 'unshare'] });

test('An image boots, its units start automatically, and a member answers a request through its VIP', async (t) => {
  const image = process.env.HEADGATE_IMAGE;
  if (image === undefined) return t.fail('HEADGATE_IMAGE names no image: "make image" builds one');
  const lab = await MachineLab.create(t, async (root) => {
    execFileSync('tar', ['--numeric-owner', '--xattrs', '-xf', image, '-C', root]);
  });
  const { machine, network } = lab;
  await lab.configure();
  execFileSync('systemctl', [`--root=${machine.root}`, '--quiet', 'enable', 'headgate-keepalived.service']);

  const began = performance.now();
  t.is(await lab.boot(), 'running');
  t.log(`Booted within ${Math.round(performance.now() - began)} ms`);
  for (const unit of ['headgate', 'headgate-haproxy', 'headgate-keepalived']) {
    t.is(await machine.show(unit, 'ActiveState'), 'active', unit);
    t.is(await machine.show(unit, 'Type'), 'notify', unit);
    t.log(`${unit}.service: active, ${await machine.show(unit, 'StatusText')}`);
  }
  for (const other of ['haproxy', 'keepalived'])
    t.is(await machine.show(other, 'ActiveState'), 'inactive', other);
  await lab.answers();
  t.true((await network.held('lb')).includes(VIP));
  t.log(`http://${VIP}/: ${await lab.ask()}, ${Math.round(performance.now() - began)} ms after the start`);
  const metrics = await lab.metrics(network.v4('lb'));
  t.log(`/metrics: ${metrics.split('\n').filter((line) => /^[a-z]/.test(line)).length} values`);

  await lab.addInstance('one', '10.9.0.31');
  t.is(await machine.show('headgate@one', 'ActiveState'), 'active');
  await lab.answers('http://10.9.0.31/');
  t.log('headgate@one.service: active, http://10.9.0.31/ answers');
  t.log(await machine.run('systemctl', '--version').then((text) => text.split('\n')[0] ?? ''));
  await machine.powerOff();
});
