// An amphora, driven by Octavia's own driver and client, judged by Octavia's own reader of heartbeats.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { AMPHORA_ID, AmphoraAgent } from '../support/octavia/amphora-agent.ts';
import { VIP_MAC } from '../support/octavia/plugs.ts';

const test = requires(ava, {
  root: true,
  haproxy: true,
  programs: ['ip', 'nft', 'nsenter', 'openssl', 'octavia-worker', 'perl'],
});

const VIP = '10.9.0.100';
const LB = '11111111-2222-3333-4444-555555555555';
const LISTENER = '22222222-2222-3333-4444-555555555555';
const POOL = '33333333-2222-3333-4444-555555555555';
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

async function plugged(t: Parameters<typeof AmphoraAgent.create>[0]): Promise<AmphoraAgent> {
  const amphora = await AmphoraAgent.create(t);
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

  const beat = await new Promise<(typeof amphora.heartbeats)[number]>((resolve) => {
    const seen = amphora.heartbeats.length;
    void until('a heartbeat', () => amphora.heartbeats.length > seen + 1).then(() =>
      resolve(amphora.heartbeats.at(-1) ?? t.fail()),
    );
  });
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

test.serial('status, list and why show the amphora', async (t) => {
  const amphora = await plugged(t);
  await amphora.push(balancer([member(1, 8081)]));
  t.regex(await amphora.command('status'), new RegExp(`Amphora: +${AMPHORA_ID}, SINGLE`));
  t.regex(await amphora.command('list'), new RegExp(`${LISTENER} +HTTP +${VIP}:80 +1 +1/1 +haproxy +OPEN`));
  t.regex(await amphora.command('why', LISTENER), /Last reload: +HAProxy did not run/);
});
