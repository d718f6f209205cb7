import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import ava from 'ava';
import { requires } from '../../../support/basics/requirements.ts';
import { AMPHORA_ID, AmphoraWorld } from '../../../support/octavia/amphora-world.ts';

const test = requires(ava, { programs: ['openssl'] });

const LB = '11111111-2222-3333-4444-555555555555';
const LISTENER = '66666666-2222-3333-4444-555555555555';
const TEXT = `global\n    daemon\n    group nogroup\nfrontend ${LISTENER}\n    bind 10.0.0.10:80\n    mode http\n`;
const PUSH = `/1.0/loadbalancer/${AMPHORA_ID}/${LB}/haproxy`;

test('The API has its version at / and at //', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  for (const path of ['/', '//']) {
    const { status, json, headers } = await amphora.ask('GET', path);
    t.deepEqual([status, json, headers['content-type']], [200, { api_version: '1.0' }, 'application/json']);
  }
});

test('A path that the API does not have is answered with 404, a wrong method with 405, both in JSON', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  const missing = await amphora.ask('GET', '/1.0/nothing');
  t.is(missing.status, 404);
  t.like(missing.json, { http_code: 404 });
  const wrong = await amphora.ask('DELETE', '/1.0/info');
  t.deepEqual(wrong.json, {
    error: '405 Method Not Allowed: The method is not allowed for the requested URL.',
    http_code: 405,
  });
});

test('A push stores the text without groups and answers with the MD5 of what was sent', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  const pushed = await amphora.ask('PUT', PUSH, TEXT);
  t.is(pushed.status, 202);
  t.deepEqual(pushed.json, { message: 'OK' });
  t.regex(String(pushed.headers.etag), /^[0-9a-f]{32}$/);
  const read = await amphora.ask('GET', `/1.0/loadbalancer/${LB}/haproxy`);
  t.is(read.text, TEXT.replace('    group nogroup\n', ''));
  t.is(read.headers['content-type'], 'text/plain; charset=utf-8');
  t.deepEqual((await amphora.ask('GET', '/1.0/listeners')).json, [
    { status: 'ACTIVE', uuid: LISTENER, type: 'HTTP' },
  ]);
});

test('A reload runs the text; one of a load balancer that is not there is answered with 404', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  await amphora.ask('PUT', PUSH, TEXT);
  const reload = await amphora.ask('PUT', `/1.0/loadbalancer/${LB}/reload`);
  t.deepEqual([reload.status, reload.json], [202, { message: 'OK', details: `Listener ${LB} reloaded` }]);
  t.is(amphora.haproxy(LB).runs.length, 1);
  const start = await amphora.ask('PUT', `/1.0/loadbalancer/${LB}/START`);
  t.deepEqual(start.json, {
    message: 'OK',
    details: `Configuration file is valid\nhaproxy daemon for ${LB} started`,
  });
  const missing = await amphora.ask('PUT', `/1.0/loadbalancer/${LISTENER}/reload`);
  t.is(missing.status, 404);
  t.deepEqual(missing.json, {
    message: 'Loadbalancer Not Found',
    details: `No loadbalancer with UUID: ${LISTENER}`,
  });
  const unknown = await amphora.ask('PUT', `/1.0/loadbalancer/${LB}/frob`);
  t.deepEqual(
    [unknown.status, unknown.json],
    [400, { message: 'Invalid Request', details: 'Unknown action: frob' }],
  );
  t.deepEqual(amphora.outcomes, ['reload', 'none']);
});

test('A text that HAProxy refuses is answered with 400 and its words, and the last one stays', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  await amphora.ask('PUT', PUSH, TEXT);
  const refused = await amphora.ask('PUT', PUSH, 'Cannot');
  t.is(refused.status, 400);
  t.deepEqual(refused.json, { message: 'Invalid request', details: '[ALERT] line 1: unknown keyword' });
  t.is(amphora.loadBalancers.text(LB), TEXT.replace('    group nogroup\n', ''));
  t.deepEqual(amphora.outcomes, ['refused']);
});

test('A reload that fails is answered with 500 and its words', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  await amphora.ask('PUT', PUSH, `${TEXT}# fails\n`);
  const failed = await amphora.ask('PUT', `/1.0/loadbalancer/${LB}/reload`);
  t.is(failed.status, 500);
  t.deepEqual(failed.json, { message: 'Error reloading haproxy', details: 'cannot bind socket' });
});

test('Requests of other load balancers do not wait for a reload', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  await amphora.ask('PUT', PUSH, TEXT);
  const { promise, resolve } = Promise.withResolvers<void>();
  amphora.haproxy(LB).gate = promise;
  const reload = amphora.ask('PUT', `/1.0/loadbalancer/${LB}/reload`);
  t.is((await amphora.ask('GET', '/1.0/info')).status, 200);
  t.is((await amphora.ask('PUT', `/1.0/loadbalancer/${AMPHORA_ID}/${LISTENER}/haproxy`, TEXT)).status, 202);
  resolve();
  t.is((await reload).status, 202);
});

test('A certificate is stored, read by its MD5 and deleted', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  const path = `/1.0/loadbalancer/${LB}/certificates/abc.pem`;
  t.is((await amphora.ask('GET', path)).status, 404);
  t.is((await amphora.ask('PUT', path, 'PEM')).status, 200);
  const read = await amphora.ask('GET', path);
  t.deepEqual(read.json, { md5sum: read.headers.etag });
  t.is((await amphora.ask('DELETE', path)).status, 200);
  t.deepEqual((await amphora.ask('GET', path)).json, {
    message: 'Certificate Not Found',
    details: 'No certificate with filename: abc.pem',
  });
  t.is((await amphora.ask('DELETE', path)).status, 200);
});

test('A name of a file that leads out of its folder is refused', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  for (const name of [
    '..%2F..%2Fx.pem',
    '%2e%2e%2fx.pem',
    'a.txt',
    '..pem',
    'a%0Ab.pem',
    '-x.pem',
    'a/../x.pem',
  ]) {
    const { status } = await amphora.ask('PUT', `/1.0/loadbalancer/${LB}/certificates/${name}`, 'PEM');
    t.true(status === 400 || status === 404, name);
  }
  for (const id of ['..', '%2e%2e', 'a%2Fb', 'a%0Ab', `${'a'.repeat(65)}`]) {
    const { status } = await amphora.ask('PUT', `/1.0/loadbalancer/${id}/certificates/x.pem`, 'PEM');
    t.is(status, 404, id);
  }
  t.throws(() => readFileSync(join(amphora.folder, 'x.pem')));
  t.throws(() => readFileSync(join(amphora.folder, 'certs', 'x.pem')));
});

test('A load balancer that is deleted is gone with its certificates', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  await amphora.ask('PUT', PUSH, TEXT);
  await amphora.ask('PUT', `/1.0/loadbalancer/${LB}/certificates/abc.pem`, 'PEM');
  t.is((await amphora.ask('DELETE', `/1.0/listeners/${LB}`)).status, 200);
  t.is((await amphora.ask('DELETE', `/1.0/listeners/${LB}`)).status, 200);
  t.is((await amphora.ask('GET', `/1.0/loadbalancer/${LB}/haproxy`)).status, 404);
  t.is((await amphora.ask('GET', `/1.0/loadbalancer/${LB}/certificates/abc.pem`)).status, 404);
  t.deepEqual((await amphora.ask('GET', '/1.0/listeners')).json, []);
});

test('Listeners of UDP have their own routes', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  const path = `/1.0/listeners/${AMPHORA_ID}/${LISTENER}/udp_listener`;
  t.is((await amphora.ask('GET', `/1.0/listeners/${LISTENER}/udp_listener`)).status, 404);
  t.is((await amphora.ask('PUT', path, 'virtual_server')).status, 200);
  t.is((await amphora.ask('GET', `/1.0/listeners/${LISTENER}/udp_listener`)).text, 'virtual_server');
  t.is((await amphora.ask('PUT', `/1.0/loadbalancer/${LISTENER}/reload`)).status, 202);
  const refused = await amphora.ask('PUT', path, 'Cannot');
  t.deepEqual(refused.json, { message: 'Invalid request', details: 'Cannot read line 1: Cannot' });
  t.is((await amphora.ask('DELETE', `/1.0/listeners/${LISTENER}`)).status, 200);
  t.deepEqual((await amphora.ask('GET', '/1.0/listeners')).json, []);
});

test('A VIP is plugged once; an interface that is not there yet has the words for which the client waits', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  const plug = {
    subnet_cidr: '10.0.0.0/24',
    gateway: '10.0.0.1',
    mac_address: 'FA:16:3E:00:00:01',
    vrrp_ip: '10.0.0.5',
    mtu: 1450,
    host_routes: [],
  };
  const ask = (vip: string, body: unknown) =>
    amphora.ask('POST', `/1.0/plug/vip/${vip}`, JSON.stringify(body));
  const first = await ask('10.0.0.10', plug);
  t.deepEqual(
    [first.status, first.json],
    [202, { message: 'OK', details: 'VIPs plugged on interface eth1: 10.0.0.10' }],
  );
  t.is((await ask('10.0.0.10', plug)).status, 409);
  const absent = await ask('10.0.0.10', { ...plug, mac_address: 'fa:16:3e:00:00:00' });
  t.deepEqual([absent.status, absent.json], [404, { details: 'No suitable network interface found' }]);
  const form = await ask('10.0.0.10', { gateway: '10.0.0.1' });
  t.deepEqual(
    [form.status, form.json],
    [400, { error: '400 Bad Request: Invalid subnet information', http_code: 400 }],
  );
  const value = await ask('10.0.0.10;reboot', plug);
  t.is(value.status, 400);
  t.regex(String((value.json as { message?: string }).message), /^Invalid VIP: /);
});

test('Interfaces are named by their address, and take rules', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  t.deepEqual((await amphora.ask('GET', '/1.0/interface/10.0.0.5')).json, {
    message: 'OK',
    interface: 'eth1',
  });
  t.is((await amphora.ask('GET', '/1.0/interface/10.0.0.6')).status, 404);
  t.deepEqual((await amphora.ask('GET', '/1.0/interface/x')).json, { message: 'Invalid IP address' });
  const rules = [
    { protocol: 'TCP', cidr: '10.1.0.0/16', port: 80 },
    { protocol: 'VRRP', cidr: null, port: 112 },
  ];
  t.is((await amphora.ask('PUT', '/1.0/interface/10.0.0.5/rules', JSON.stringify(rules))).status, 200);
  const hostile = [{ protocol: 'TCP', cidr: '10.1.0.0/16; flush ruleset', port: 80 }];
  t.is((await amphora.ask('PUT', '/1.0/interface/10.0.0.5/rules', JSON.stringify(hostile))).status, 400);
});

test('VRRP has its text and its actions', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  t.is((await amphora.ask('PUT', '/1.0/vrrp/upload', 'vrrp_instance')).status, 200);
  t.deepEqual((await amphora.ask('PUT', '/1.0/vrrp/start')).json, {
    message: 'OK',
    details: 'keepalived started',
  });
  t.is((await amphora.ask('PUT', '/1.0/vrrp/frob')).status, 400);
  t.deepEqual(amphora.calls, ['vrrp upload vrrp_instance', 'vrrp start']);
});

test('The details have the fields and types of Octavia', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  await amphora.ask('PUT', PUSH, TEXT);
  const { json } = await amphora.ask('GET', '/1.0/details');
  const details = json as Record<string, Record<string, unknown>>;
  t.like(details, {
    hostname: 'amphora-1',
    haproxy_version: '2.6.12-1+deb12u4',
    networks: { eth1: { network_tx: 1, network_rx: 2 } },
    listeners: [LISTENER],
    topology: 'SINGLE',
  });
  t.is(typeof details.cpu?.total, 'number');
  t.is(typeof details.cpu?.soft_irq, 'string');
  t.true(Number(details.memory?.free) > 0);
  t.is((details.load as unknown as string[]).length, 3);
});

test('Settings that cannot be read are answered with 500', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  t.is((await amphora.ask('PUT', '/1.0/config', '[a]')).status, 202);
  const refused = await amphora.ask('PUT', '/1.0/config', 'Cannot');
  t.is(refused.status, 500);
  t.like(refused.json, { message: 'Unable to update amphora-agent configuration.' });
});

test('A new certificate is used for the next connection; one without its key is refused', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  const { server, renewed } = amphora.certificates;
  const before = readFileSync(server, 'utf8');
  const [, half = ''] = /^([\s\S]*?-----END CERTIFICATE-----\n)/.exec(renewed) ?? [];
  t.is((await amphora.ask('PUT', '/1.0/certificate', half)).status, 400);
  t.is(
    (await amphora.ask('PUT', '/1.0/certificate', half + before.slice(before.indexOf('-----BEGIN PRIVATE'))))
      .status,
    400,
  );
  t.is(readFileSync(server, 'utf8'), before);
  t.is((await amphora.ask('PUT', '/1.0/certificate', renewed)).status, 202);
  t.is(readFileSync(server, 'utf8'), renewed);
  t.is((await amphora.ask('GET', '/1.0/info')).status, 200);
  await t.throwsAsync(amphora.ask('GET', '/1.0/info', '', amphora.certificates.stranger));
  await t.throwsAsync(amphora.ask('GET', '/1.0/info', '', null));
});

test('A client without a certificate, or with one of another authority, gets no answer', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  await t.throwsAsync(amphora.ask('GET', '/1.0/info', '', null));
  await t.throwsAsync(amphora.ask('GET', '/1.0/info', '', amphora.certificates.stranger));
  t.is((await amphora.ask('GET', '/1.0/info')).status, 200);
});

test('A body of a gigabyte is refused before it is in memory, and the client can read why', async (t) => {
  const amphora = await AmphoraWorld.create(t);
  const pem = readFileSync(amphora.certificates.client);
  const sent = { bytes: 0, status: 0 };
  const { promise, resolve } = Promise.withResolvers<void>();
  const before = process.memoryUsage.rss();
  const upload = request(
    {
      ...{ host: '127.0.0.1', port: amphora.port, method: 'PUT', path: '/1.0/config', agent: false },
      ...{ cert: pem, key: pem, rejectUnauthorized: false },
    },
    (response) => {
      sent.status = response.statusCode ?? 0;
      response.resume();
      resolve();
    },
  );
  upload.on('error', () => resolve());
  const block = Buffer.alloc(1024 * 1024);
  const write = (): void => {
    while (sent.bytes < 1024 * block.length && !upload.destroyed && sent.status === 0) {
      sent.bytes += block.length;
      if (!upload.write(block)) {
        upload.once('drain', write);
        return;
      }
    }
  };
  write();
  await promise;
  upload.destroy();
  t.is(sent.status, 400);
  t.true(sent.bytes < 256 * block.length, String(sent.bytes));
  t.true(process.memoryUsage.rss() - before < 300 * 1024 * 1024);
  t.is((await amphora.ask('GET', '/1.0/info')).status, 200);
});
