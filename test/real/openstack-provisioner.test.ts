// The example provisioner with OpenStack's real client and a fake Neutron: address pairs of the hosts' ports, a floating IP that
// is asked for, and one that it makes and answers.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { FakeNeutron } from '../support/openstack/fake-neutron.ts';

const test = requires(ava, { programs: ['openstack', 'python3'] });

test('A VIP gets address pairs and a floating IP of OpenStack, and leaves nothing behind', async (t) => {
  t.timeout(600_000);
  const neutron = await FakeNeutron.start(t);
  const directory = await mkdtemp(join(tmpdir(), 'hg-openstack-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const network = neutron.add('networks', { name: 'lb-net' });
  neutron.add('networks', { name: 'outside', 'router:external': true });
  const port = (name: string, address: string) =>
    neutron.add('ports', {
      name,
      network_id: network.id,
      fixed_ips: [{ ip_address: address }],
      mac_address: 'fa:16:3e:00:00:01',
      allowed_address_pairs: [],
    });
  const hosts = [port('host-a', '10.0.0.2'), port('host-b', '10.0.0.3')];
  const kept = neutron.add('floatingips', {
    floating_ip_address: '203.0.113.5',
    description: '',
    port_id: null,
    fixed_ip_address: null,
  });
  const [clouds, settings] = [join(directory, 'clouds.yaml'), join(directory, 'settings.json')];
  await writeFile(clouds, neutron.clouds());
  await writeFile(
    settings,
    JSON.stringify({
      cloud: 'headgate',
      ports: hosts.map(({ id }) => id),
      network: 'lb-net',
      floating_network: 'outside',
    }),
  );
  const call = async (action: string, address: string, more: object = {}): Promise<string> => {
    const child = spawn('examples/provisioner/openstack-allowed-address-pairs', [settings], {
      env: { PATH: '/usr/bin:/bin', LANG: 'C.UTF-8', OS_CLIENT_CONFIG_FILE: clouds, HOME: directory },
    });
    child.stdin.end(JSON.stringify({ action, address, others: [], ...more }));
    let [output, errors] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
    const [status] = await once(child, 'close');
    t.is(status, 0, errors);
    return output === '' ? '' : JSON.parse(output).public;
  };
  const pairs = () =>
    hosts.map(({ id }) => {
      const pairsOf = neutron.stored.ports.get(id)?.allowed_address_pairs as { ip_address: string }[];
      return pairsOf.map((each) => each.ip_address);
    });
  const leadsTo = (public_: string) =>
    [...neutron.stored.floatingips.values()].find((each) => each.floating_ip_address === public_)
      ?.fixed_ip_address;

  // One that is asked for, as a pool with `from` or an annotation does.
  t.is(await call('assign', '10.0.0.5', { public: '203.0.113.5' }), '203.0.113.5');
  t.deepEqual(pairs(), [['10.0.0.5'], ['10.0.0.5']]);
  t.is(leadsTo('203.0.113.5'), '10.0.0.5');
  // One that it makes, and the same once more.
  const made = await call('assign', '10.0.0.6');
  t.is(leadsTo(made), '10.0.0.6');
  const changes = neutron.changes.length;
  t.is(await call('assign', '10.0.0.6', { public: made }), made);
  t.is(await call('assign', '10.0.0.6'), made);
  t.is(neutron.changes.length, changes, 'nothing is changed twice');
  t.deepEqual(pairs()[0], ['10.0.0.5', '10.0.0.6']);

  await call('release', '10.0.0.6', { public: made });
  await call('release', '10.0.0.5', { public: '203.0.113.5' });
  t.deepEqual(pairs(), [[], []]);
  t.deepEqual([...neutron.stored.floatingips.keys()], [kept.id], 'what it has not made stays');
  t.is(leadsTo('203.0.113.5'), null);
  t.deepEqual(
    [...neutron.stored.ports.values()].map(({ name }) => name),
    ['host-a', 'host-b'],
  );
});
