import test from 'ava';
import { readAmphoraSettings } from '../../../../agent/octavia/settings/amphora-settings.ts';

const ID = '3f9a2c1e-8b4d-4f6a-9c0e-1d2b3a4c5d6e';
const LEAST = ['[amphora_agent]', `amphora_id = ${ID}`, '[health_manager]', 'heartbeat_key = k'];
const read = (...lines: string[]) => readAmphoraSettings([...LEAST, ...lines].join('\n'), 'a.conf');

test('readAmphoraSettings() has the defaults of Octavia', (t) => {
  const { heartbeat, ...settings } = read();
  t.deepEqual(settings, {
    amphoraId: ID,
    isActiveStandby: false,
    paths: { base: '/var/lib/octavia', certificates: '/var/lib/octavia/certs' },
    haproxy: '/usr/sbin/haproxy',
    rest: {
      address: '::',
      port: 9443,
      certificate: '/etc/octavia/certs/server.pem',
      clientAuthority: '/etc/octavia/certs/client_ca.pem',
      minVersion: 'TLSv1.2',
      requestTimeoutMs: 180_000,
    },
    logFacilities: { user: 0, administrative: 1 },
  });
  t.deepEqual(heartbeat.controllers, []);
  t.is(heartbeat.intervalMs, 10_000);
  t.is(heartbeat.key.reveal(), 'k');
});

test('readAmphoraSettings() reads controllers with names, IPv4 and IPv6 addresses', (t) => {
  const { heartbeat } = read('controller_ip_port_list = 192.0.2.1:5555, [2001:db8::1]:5556,hm.example:1');
  t.deepEqual(heartbeat.controllers, [
    { host: '192.0.2.1', port: 5555 },
    { host: '2001:db8::1', port: 5556 },
    { host: 'hm.example', port: 1 },
  ]);
});

test('readAmphoraSettings() reads the topology and the least version of TLS', (t) => {
  const settings = read(
    '[controller_worker]',
    'loadbalancer_topology = ACTIVE_STANDBY',
    '[amphora_agent]',
    'agent_tls_protocol = TLSv1.3',
  );
  t.true(settings.isActiveStandby);
  t.is(settings.rest.minVersion, 'TLSv1.3');
});

test('readAmphoraSettings() names every value that is not allowed, but never the key', (t) => {
  const error = t.throws(() =>
    readAmphoraSettings(
      '[amphora_agent]\namphora_id = x\n[haproxy_amphora]\nbase_path = /a/../b\nbind_port = 99999\nbind_host = here',
      'a.conf',
    ),
  );
  t.like(error, { code: 'SETTINGS_INVALID' });
  t.is(
    error?.message,
    'Cannot use "a.conf": [haproxy_amphora] base_path: "/a/../b" is not a path without ".."; [amphora_agent] amphora_id: "x" is not a UUID; [haproxy_amphora] bind_host: "here" is not an IP address; [haproxy_amphora] bind_port: "99999" is not a number from 0 to 65535; [health_manager] heartbeat_key: its value is not a key',
  );
});

test('A heartbeat key does not appear in a text of the settings', (t) => {
  t.false(JSON.stringify(read('heartbeat_key = verysecret')).includes('verysecret'));
});
