// An amphora, driven by Octavia's own driver and client, judged by Octavia's own reader of heartbeats.

import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { AMPHORA_ID, AmphoraAgent, type AmphoraOptions } from '../support/octavia/amphora-agent.ts';
import { VIP_MAC } from '../support/octavia/plugs.ts';
import { renderVrrp } from '../support/octavia/render.ts';
import { certificate } from '../support/traffic/certificate.ts';

const test = requires(ava, {
  root: true,
  haproxy: true,
  programs: ['ip', 'nft', 'nsenter', 'openssl', 'octavia-worker', 'perl', 'keepalived', 'conntrack', 'curl'],
});

const VIP = '10.9.0.100';
const LB = '11111111-2222-3333-4444-555555555555';
const LISTENER = '22222222-2222-3333-4444-555555555555';
const POOL = '33333333-2222-3333-4444-555555555555';
const UDP = '77777777-2222-3333-4444-555555555555';
const UDP_POOL = '88888888-2222-3333-4444-555555555555';
const member = (number: number, port: number) => ({
  id: `${number}${number}${number}${number}4444-2222-3333-4444-555555555555`,
  address: '10.9.0.11',
  port,
});

/** What the driver pushes: one HTTP listener. */
const balancer = (members: readonly object[]) => ({
  id: LB,
  vip: VIP,
  listeners: [{ id: LISTENER, protocol: 'HTTP', port: 80, pool: { id: POOL, protocol: 'HTTP', members } }],
});

const VIP_NETWORK = {
  subnet_cidr: '10.9.0.0/16',
  gateway: '10.9.0.1',
  mac_address: VIP_MAC,
  vrrp_ip: '10.9.0.21',
  mtu: 1400,
  host_routes: [],
  additional_vips: [],
};

async function plugged(
  t: Parameters<typeof AmphoraAgent.create>[0],
  options?: AmphoraOptions,
): Promise<AmphoraAgent> {
  const amphora = await AmphoraAgent.create(t, options);
  await amphora.host.plug('ens7', VIP_MAC);
  await amphora.client('plug_vip', VIP, VIP_NETWORK);
  return amphora;
}

/** The port of the member that answers a client of the VIP; '' without an answer. */
async function ask(amphora: AmphoraAgent): Promise<string> {
  const { stdout } = await amphora.host.network.try('client', 'curl', '-s', '-m', '3', `http://${VIP}/`);
  return stdout;
}

/** Each answers with its port. */
function serve(amphora: AmphoraAgent, ...ports: readonly number[]): void {
  const script = ports
    .map((port) => `require('http').createServer((_, r) => r.end('${port}')).listen(${port}, '10.9.0.11')`)
    .join(';');
  amphora.host.network.start('client', process.execPath, '-e', script);
}

/** Answers by UDP with the port. */
const ECHO = [8091, 8092]
  .map(
    (port) =>
      `require('dgram').createSocket('udp4').on('message', function (_, from) { this.send('${port}', from.port, from.address) }).bind(${port}, '10.9.0.11')`,
  )
  .join(';');
const ASK = `const socket = require('dgram').createSocket('udp4');
socket.on('message', (text) => { process.stdout.write(text); socket.close(); });
socket.send('?', 53, '${VIP}');
setTimeout(() => process.exit(), 1000).unref();`;

/** From a new port each time. */
async function askUdp(amphora: AmphoraAgent): Promise<string> {
  return (await amphora.host.network.try('client', process.execPath, '-e', ASK)).stdout;
}

test.serial('Octavia’s client finds versions, details and an interface by its address', async (t) => {
  const amphora = await AmphoraAgent.create(t);
  await amphora.host.plug('ens7', VIP_MAC);
  t.like(await amphora.client('get_info'), { api_version: '1.0' });
  await amphora.client('plug_vip', VIP, VIP_NETWORK);
  const info = (await amphora.client('get_info')) as { haproxy_version: string };
  const [major, minor] = info.haproxy_version.split('.');
  t.true(Number(major) >= 2 && Number.isInteger(Number(minor)));
  t.like(await amphora.client('get_interface', '10.9.0.21'), { interface: 'eth1' });
  const details = (await amphora.client('get_details')) as { networks: object; cpu: { total: number } };
  t.deepEqual(Object.keys(details.networks), ['eth1']);
  t.true(details.cpu.total > 0);
  t.deepEqual(await amphora.client('get_all_listeners'), []);
  await t.throwsAsync(amphora.client('plug_vip', VIP, VIP_NETWORK), { message: /^Conflict/ });
  await t.throwsAsync(amphora.client('get_interface', '10.9.0.77'), { message: /^NotFound/ });
});

test.serial('A push serves, a member is added without a reload, and the heartbeat says so', async (t) => {
  const amphora = await plugged(t);
  serve(amphora, 8081, 8082);
  t.deepEqual(amphora.heartbeats.at(-1)?.listeners, {});

  await amphora.push(balancer([member(1, 8081)]));
  await until('the first member answers', async () => (await ask(amphora)) === '8081');
  t.like((await amphora.client('get_all_listeners')) as object[], [{ uuid: LISTENER, type: 'HTTP' }]);

  await amphora.push(balancer([member(1, 8081), member(2, 8082)]));
  await until('the second member answers', async () => (await ask(amphora)) === '8082');
  await amphora.push(balancer([member(2, 8082), member(1, 8081)]));
  const { loadBalancers, fault } = await amphora.status();
  t.is(fault, '');
  t.like(loadBalancers[0], { id: LB, isRunning: true, isBehind: false, lastReload: 'HAProxy did not run' });

  await amphora.nextHeartbeat();
  const beat = await amphora.nextHeartbeat();
  t.is(beat.refused, undefined);
  t.is(beat.id, AMPHORA_ID);
  t.is(beat.ver, 3);
  t.like(beat.listeners[LISTENER], { status: 'OPEN' });
  t.deepEqual(beat.pools, {
    [`${POOL}:${LISTENER}`]: {
      status: 'UP',
      members: { [member(1, 0).id]: 'no check', [member(2, 0).id]: 'no check' },
    },
  });
  const requests = amphora.heartbeats
    .map(({ listeners }) => listeners[LISTENER]?.stats.totconns ?? 0)
    .reduce((sum, each) => sum + each, 0);
  t.true(requests >= 2, `${requests}`);
});

test.serial(
  'A listener of TLS gets its certificates from the driver, another certificate reloads, and members do not',
  async (t) => {
    const amphora = await plugged(t);
    serve(amphora, 8081, 8082);
    for (const name of ['one', 'two']) await certificate(amphora.path('.'), name);
    const secure = (name: string, ...members: readonly object[]) => {
      const pool = { id: POOL, protocol: 'HTTP', members };
      const tls = { protocol: 'TERMINATED_HTTPS', port: 443, certificate: name };
      return { id: LB, vip: VIP, listeners: [{ id: LISTENER, ...tls, pool }] };
    };
    /** The port of the member that answers a client that trusts this certificate only; '' without an answer. */
    const askSecurely = async (name: string): Promise<string> => {
      const trust = ['--cacert', amphora.path(`${name}.crt`), '--connect-to', `127.0.0.1:443:${VIP}:443`];
      const words = ['-s', '-m', '3', ...trust, 'https://127.0.0.1/'];
      return (await amphora.host.network.try('client', 'curl', ...words)).stdout;
    };
    await amphora.push(secure('one', member(1, 8081)));
    await until('the first member answers', async () => (await askSecurely('one')) === '8081');
    t.is(await askSecurely('two'), '');
    await amphora.push(secure('one', member(1, 8081), member(2, 8082)));
    await until('the second member answers', async () => (await askSecurely('one')) === '8082');
    t.is((await amphora.status()).loadBalancers[0]?.lastReload, 'HAProxy did not run');
    await amphora.push(secure('two', member(1, 8081), member(2, 8082)));
    await until('the other certificate is shown', async () => (await askSecurely('two')) !== '');
    t.is(await askSecurely('one'), '');
    t.regex((await amphora.status()).loadBalancers[0]?.lastReload ?? '', /the content of .*\.pem differs/);
  },
);

test.serial('An agent that is killed leaves the traffic, and the next one takes it over', async (t) => {
  const amphora = await plugged(t);
  serve(amphora, 8081, 8082);
  await amphora.push(balancer([member(1, 8081)]));
  await until('the member answers', async () => (await ask(amphora)) === '8081');
  await amphora.stop('SIGKILL');
  t.is(await ask(amphora), '8081');
  await amphora.start();
  await amphora.push(balancer([member(2, 8082)]));
  await until('the other member answers', async () => (await ask(amphora)) === '8082');
  const { loadBalancers } = await amphora.status();
  t.is(loadBalancers[0]?.lastReload, 'HAProxy did not run');
});

test.serial('A text that HAProxy refuses is an error for the driver, and the last one stays', async (t) => {
  const amphora = await plugged(t);
  serve(amphora, 8081);
  await amphora.push(balancer([member(1, 8081)]));
  await until('the member answers', async () => (await ask(amphora)) === '8081');
  await t.throwsAsync(amphora.client('upload_config', LB, 'frontend x\n    nonsense\n'), {
    message: /^InvalidRequest|^BadRequest|Invalid request/,
  });
  t.is(await ask(amphora), '8081');
});

test.serial('The last listener goes with its HAProxy', async (t) => {
  const amphora = await plugged(t);
  serve(amphora, 8081);
  await amphora.push(balancer([member(1, 8081)]));
  await until('the member answers', async () => (await ask(amphora)) === '8081');
  await amphora.client('delete_listener', LB);
  t.is(await ask(amphora), '');
  t.deepEqual((await amphora.status()).loadBalancers, []);
  t.deepEqual(await amphora.client('get_all_listeners'), []);
});

test.serial('A listener of UDP is served beside one of HTTP, and both are in the heartbeat', async (t) => {
  const amphora = await plugged(t);
  serve(amphora, 8081);
  amphora.host.network.start('client', process.execPath, '-e', ECHO);
  const udp = (...ports: readonly number[]) => ({
    id: UDP,
    protocol: 'UDP',
    port: 53,
    pool: { id: UDP_POOL, protocol: 'UDP', members: ports.map((port, at) => member(at + 5, port)) },
  });
  const { listeners, ...rest } = balancer([member(1, 8081)]);
  await amphora.push({ ...rest, listeners: [...listeners, udp(8091)] });
  await until('the member answers by UDP', async () => (await askUdp(amphora)) === '8091');
  t.is(await ask(amphora), '8081');
  await amphora.push({ ...rest, listeners: [...listeners, udp(8091, 8092)] });
  await until('the second member answers by UDP', async () => (await askUdp(amphora)) === '8092');
  t.like((await amphora.status()).loadBalancers[0], { lastReload: 'HAProxy did not run' });
  await amphora.stop('SIGKILL');
  t.regex(await askUdp(amphora), /^809[12]$/);
  await amphora.start();
  t.regex(await askUdp(amphora), /^809[12]$/);
  await amphora.nextHeartbeat();
  const beat = await amphora.nextHeartbeat();
  t.deepEqual(Object.keys(beat.listeners).sort(), [LISTENER, UDP].sort());
  t.like(beat.pools[UDP_POOL], { status: 'UP' });
  t.is(Object.keys(beat.pools[UDP_POOL]?.members ?? {}).length, 2);
  const flows = amphora.heartbeats.map((each) => each.listeners[UDP]?.stats.totconns ?? 0);
  t.true(flows.reduce((sum, each) => sum + each, 0) > 1, String(flows));
  await amphora.client('delete_listener', UDP);
  t.is(await askUdp(amphora), '');
  t.is(await ask(amphora), '8081');
});

test.serial(
  'HAProxy that is killed serves again, and one that is gone after a reboot is started by the agent',
  async (t) => {
    const amphora = await plugged(t);
    serve(amphora, 8081);
    await amphora.push(balancer([member(1, 8081)]));
    await until('the member answers', async () => (await ask(amphora)) === '8081');
    await amphora.killHaproxy(LB);
    await until('the member answers again', async () => (await ask(amphora)) === '8081');
    await amphora.stop();
    await amphora.killHaproxy(LB);
    // The folder in memory is empty after a reboot.
    await rm(amphora.path('run'), { recursive: true });
    await amphora.start();
    await until('the member answers after the reboot', async () => (await ask(amphora)) === '8081');
    const beat = await amphora.nextHeartbeat();
    t.like(beat.listeners[LISTENER], { status: 'OPEN' });
  },
);

test.serial(
  'A certificate that is deleted while HAProxy uses it serves on, and goes with its listener',
  async (t) => {
    const amphora = await plugged(t);
    serve(amphora, 8081);
    const { server } = amphora.certificates;
    const pem = readFileSync(server, 'utf8');
    const file = `${'a'.repeat(40)}.pem`;
    const path = amphora.path('certs', LB, file);
    await amphora.client('upload_cert_pem', LB, file, pem);
    await amphora.client('upload_cert_pem', LB, `${LISTENER}.pem`, `${path}\n`);
    const text = (bind: string) => `global
    daemon
    user nobody
    maxconn 1000
    stats socket ${amphora.path('base', `${LB}.sock`)} mode 0666 level user
defaults
    mode http
    timeout client 5s
    timeout server 5s
    timeout connect 5s
frontend ${LISTENER}
    bind ${VIP}:443 ${bind}
    mode http
    default_backend ${POOL}:${LISTENER}
backend ${POOL}:${LISTENER}
    mode http
    server ${member(1, 0).id} 10.9.0.11:8081
`;
    const get = async () => {
      const { stdout } = await amphora.host.network.try(
        'client',
        'curl',
        '-sk',
        '-m',
        '3',
        `https://${VIP}/`,
      );
      return stdout;
    };
    await amphora.client(
      'upload_config',
      LB,
      text(`ssl crt-list ${amphora.path('certs', LB, `${LISTENER}.pem`)}`),
    );
    await amphora.client('reload_listener', LB);
    await until('the listener serves HTTPS', async () => (await get()) === '8081');
    t.like(await amphora.client('get_all_listeners'), [{ uuid: LISTENER, type: 'TERMINATED_HTTPS' }]);
    await amphora.client('delete_cert_pem', LB, file);
    await t.throwsAsync(amphora.client('get_cert_md5sum', LB, file), { message: /^NotFound/ });
    t.true(existsSync(path));
    await amphora.killHaproxy(LB);
    await until('the listener serves HTTPS again', async () => (await get()) === '8081');
    await amphora.client('upload_config', LB, text(''));
    await amphora.client('reload_listener', LB);
    t.false(existsSync(path));
  },
);

test.serial('A HAProxy that hangs is not in the heartbeats, which go on', async (t) => {
  const amphora = await plugged(t);
  serve(amphora, 8081);
  await amphora.push(balancer([member(1, 8081)]));
  await until('the member answers', async () => (await ask(amphora)) === '8081');
  amphora.signalHaproxy(LB, 'SIGSTOP');
  await until('a heartbeat without the listener', async () => {
    const { listeners } = await amphora.nextHeartbeat();
    return Object.keys(listeners).length === 0;
  });
  amphora.signalHaproxy(LB, 'SIGCONT');
  await until('a heartbeat with the listener', async () => {
    const { listeners } = await amphora.nextHeartbeat();
    return listeners[LISTENER]?.status === 'OPEN';
  });
  t.is(await ask(amphora), '8081');
});

test.serial('A disk that is full is an error of the push, and what was there stays', async (t) => {
  const amphora = await plugged(t, { baseBytes: 1024 * 1024 });
  serve(amphora, 8081, 8082);
  await amphora.push(balancer([member(1, 8081)]));
  await until('the member answers', async () => (await ask(amphora)) === '8081');
  const full = amphora.path('base', 'full');
  try {
    writeFileSync(full, Buffer.alloc(2 * 1024 * 1024));
  } catch {
    // It has taken what there was.
  }
  await t.throwsAsync(amphora.push(balancer([member(2, 8082)])), { message: /^InternalServerError/ });
  t.is(await ask(amphora), '8081');
  rmSync(full);
  await amphora.push(balancer([member(2, 8082)]));
  await until('the other member answers', async () => (await ask(amphora)) === '8082');
});

test.serial('New settings and a new certificate of the controller take effect at once', async (t) => {
  const amphora = await AmphoraAgent.create(t);
  const key = '$#new;key=1';
  const port = await amphora.receiveHeartbeats(key);
  await amphora.client('update_agent_config', amphora.config(port, { key: key.replace('$', '$$') }));
  await until('a heartbeat with the new key', () => amphora.heartbeats.at(-1)?.key === key);
  t.is(amphora.heartbeats.at(-1)?.refused, undefined);
  await t.throwsAsync(amphora.client('update_agent_config', 'heartbeat_key'), {
    message: /^InternalServerError/,
  });
  await amphora.client('update_cert_for_rotation', amphora.certificates.renewed);
  t.is(readFileSync(amphora.certificates.server, 'utf8'), amphora.certificates.renewed);
  t.like(await amphora.client('get_info'), { api_version: '1.0' });
  await t.throwsAsync(amphora.client('update_cert_for_rotation', 'no certificate'), {
    message: /^InvalidRequest/,
  });
  t.is((await amphora.nextHeartbeat()).refused, undefined);
});

test.serial('An amphora of a pair has the VIP from its first push on', async (t) => {
  const amphora = await plugged(t, { topology: 'ACTIVE_STANDBY' });
  serve(amphora, 8081);
  t.false((await amphora.host.addresses()).includes(`eth1 ${VIP}/32`));
  const text = await renderVrrp({
    ...{
      base_path: amphora.path('base'),
      group: 'aabbccdd',
      vip: VIP,
      cidr: '10.9.0.0/16',
      gateway: '10.9.0.1',
    },
    own: 0,
    amphorae: [
      { role: 'MASTER', vrrp_interface: 'eth1', vrrp_id: 1, vrrp_priority: 100, vrrp_ip: '10.9.0.21' },
      { role: 'BACKUP', vrrp_interface: 'eth1', vrrp_id: 1, vrrp_priority: 90, vrrp_ip: '10.9.0.22' },
    ],
  });
  await amphora.client('upload_vrrp_config', text);
  await amphora.client('start_vrrp');
  await amphora.nextHeartbeat();
  t.false((await amphora.host.addresses()).includes(`eth1 ${VIP}/32`));
  await amphora.push({ ...balancer([member(1, 8081)]), topology: 'ACTIVE_STANDBY' });
  t.regex(readFileSync(amphora.path('base', LB, 'haproxy.cfg'), 'utf8'), /^peers /m);
  await until('the VIP comes', async () => (await amphora.host.addresses()).includes(`eth1 ${VIP}/32`), {
    seconds: 60,
  });
  await until('the member answers', async () => (await ask(amphora)) === '8081');
  t.is((await amphora.status()).fault, '');
  await amphora.nextHeartbeat();
});

test.serial('Commands and metrics show the amphora', async (t) => {
  const amphora = await plugged(t);
  await amphora.push(balancer([member(1, 8081)]));
  t.regex(await amphora.command('status'), new RegExp(`Amphora: +${AMPHORA_ID}, SINGLE`));
  t.regex(await amphora.command('list'), new RegExp(`${LISTENER} +HTTP +${VIP}:80 +1 +1/1 +haproxy +OPEN`));
  t.regex(await amphora.command('why', LISTENER), /Last reload: +HAProxy did not run/);
  const [, listen = ''] = /"listen":"([^"]+)"/.exec(amphora.log.join('\n')) ?? [];
  const metrics = await amphora.host.network.run('node', 'curl', '-s', `http://${listen}/metrics`);
  t.regex(metrics, /^headgate_pushes_total\{result="reload"\} 1$/m);
  t.regex(metrics, new RegExp(`^headgate_amphora_listener_served\\{listener="${LISTENER}"\\} 1$`, 'm'));
  t.regex(metrics, new RegExp(`^headgate_amphora_members\\{pool="${POOL}",status="no check"\\} 1$`, 'm'));
  const get = `curl -s --max-time 2 http://${listen}`;
  const page = await amphora.host.network.run('node', 'sh', '-c', `${get}/; ${get}/events || true`);
  t.regex(page, /<h2 id="amphora-title" class="quiet">This amphora/);
  t.regex(page, new RegExp(`^event: summary\ndata: .*"id":"${LB}".*"lastReload":"HAProxy did not run"`, 'm'));
  t.regex(page, new RegExp(`^event: list\ndata: .*"id":"${LISTENER}".*"place":"${VIP}:80"`, 'm'));
});
