// The checks of `headgate check` for VRRP, with a real kernel and a real keepalived.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import type { Finding } from '../../agent/host/finding.ts';
import { type PreflightSettings, preflight } from '../../agent/vips/keepalived/host/preflight.ts';
import { requires } from '../support/basics/requirements.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { keepalivedExecutable } from '../support/vrrp/keepalived.ts';

const test = requires(ava, { root: true, programs: ['keepalived', 'ip', 'nsenter', 'sysctl'] });

const SYSCTLS = ['net.ipv4.conf.all.arp_announce=2', 'net.ipv4.conf.all.arp_ignore=1'];
const OURS = { config: '/nowhere/keepalived.conf' };

test.serial('preflight() finds no fault on a host that is ready for VRRP', async (t) => {
  const { settings } = await readyHost(t);
  const findings = await preflight(settings, OURS);
  t.deepEqual(
    findings.filter(({ ok }) => !ok),
    [],
  );
  t.deepEqual(
    findings.map(({ what }) => what),
    [
      'keepalived',
      'advertisements',
      'loopback interface',
      'interface eth0',
      'net.ipv4.ip_nonlocal_bind',
      'net.ipv4.conf.eth0.arp_announce',
      'net.ipv4.conf.eth0.arp_ignore',
      'net.ipv6.ip_nonlocal_bind',
      'net.ipv6.conf.eth0.disable_ipv6',
      'net.ipv4.ip_forward',
      'net.ipv6.conf.eth0.forwarding',
      'virtual router 51',
      'clock',
    ],
  );
});

test.serial('preflight() reports that the loopback interface of the namespace is down', async (t) => {
  const { network, settings } = await readyHost(t);
  await network.run('a', 'ip', 'link', 'set', 'lo', 'down');
  t.deepEqual(await finding(settings, 'loopback interface'), {
    what: 'loopback interface',
    ok: false,
    detail: `is down, so that HAProxy loses session affinity at each reload, and nothing reaches 127.0.0.1: set it up (ip -n ${settings.netns} link set lo up)`,
  });
  await network.run('a', 'ip', 'link', 'set', 'lo', 'up');
  t.true((await finding(settings, 'loopback interface')).ok);
});

test.serial('preflight() reports each wrong sysctl, with the consequence and the remedy', async (t) => {
  const { network, settings } = await readyHost(t);
  for (const [sysctl, what, why] of [
    [
      'net.ipv4.ip_nonlocal_bind=0',
      'net.ipv4.ip_nonlocal_bind',
      /cannot listen.*sysctl -w net\.ipv4\.ip_nonlocal_bind=1/,
    ],
    ['net.ipv6.ip_nonlocal_bind=0', 'net.ipv6.ip_nonlocal_bind', /cannot listen.*sysctl -w/],
    ['net.ipv4.conf.all.arp_announce=0', 'net.ipv4.conf.eth0.arp_announce', /keep an address that has moved/],
    ['net.ipv4.conf.all.arp_ignore=0', 'net.ipv4.conf.eth0.arp_ignore', /its other interfaces/],
  ] as const) {
    await network.run('a', 'sysctl', '-qw', sysctl);
    const bad = (await preflight(settings, OURS)).filter(({ ok }) => !ok);
    t.deepEqual(
      bad.map((each) => each.what),
      [what],
    );
    t.regex(bad[0]?.detail ?? '', why);
    await network.run('a', 'sysctl', '-qw', sysctl.replace(/0$/, what.includes('announce') ? '2' : '1'));
  }
  // The value of the interface counts as much as the value of all.
  await network.run(
    'a',
    'sysctl',
    '-qw',
    'net.ipv4.conf.all.arp_ignore=0',
    'net.ipv4.conf.eth0.arp_ignore=1',
  );
  t.true((await finding(settings, 'net.ipv4.conf.eth0.arp_ignore')).ok);
});

test.serial('preflight() reports that IPv6 is off where VRRP has IPv6 addresses', async (t) => {
  const { network, settings } = await readyHost(t);
  const what = 'net.ipv6.conf.eth0.disable_ipv6';
  await network.run('a', 'sysctl', '-qw', `${what}=1`);
  const { ok, detail } = await finding(settings, what);
  t.false(ok);
  t.regex(detail, /cannot have the IPv6 addresses .*sysctl -w net\.ipv6\.conf\.eth0\.disable_ipv6=0/);
});

test.serial(
  'preflight() accepts forwarding on or off, but not if the host loses its IPv6 routes',
  async (t) => {
    const { network, settings } = await readyHost(t);
    const set = (...values: readonly string[]) => network.run('a', 'sysctl', '-qw', ...values);
    const [v4, v6] = ['net.ipv4.ip_forward', 'net.ipv6.conf.eth0.forwarding'];
    await set(`${v4}=0`, `${v6}=0`, 'net.ipv6.conf.eth0.accept_ra=1');
    for (const name of [v4, v6])
      t.like(await finding(settings, name), { ok: true, detail: 'is 0: HAProxy needs no forwarding' });
    await set(`${v4}=1`, `${v6}=1`);
    t.like(await finding(settings, v4), { ok: true });
    t.regex((await finding(settings, v4)).detail, /is 1: .* only if the host routes for other hosts/);
    t.regex(await fault(settings, v6), /no default route: .*accept_ra=2\), add a route, or do not forward/);
    await set('net.ipv6.conf.eth0.accept_ra=2');
    t.is(await fault(settings, v6), '');
    await set('net.ipv6.conf.eth0.accept_ra=1');
    await network.run('a', 'ip', '-6', 'route', 'add', 'default', 'via', 'fd09::99', 'dev', 'eth0');
    t.is(await fault(settings, v6), '');
    // IPv6 does not matter to a pair with IPv4 alone.
    const instances = [{ virtualRouterId: 51, priority: 200, anchors: ['10.9.0.1'] }];
    const findings = await preflight({ ...settings, vrrp: { ...settings.vrrp, instances } }, OURS);
    t.false(findings.some(({ what }) => what === v6));
  },
);

test.serial('preflight() accepts the interface of a VLAN, with a dot in its name', async (t) => {
  const { network, settings } = await readyHost(t);
  for (const [device, named] of [
    ['eth0.100', 'net/ipv4/conf/eth0.100/arp_ignore'],
    ['ipv4', 'net.ipv4.conf.ipv4.arp_ignore'],
  ] as const) {
    await network.run('a', 'ip', 'link', 'add', device, 'type', 'veth', 'peer', 'name', 'other');
    const other = { ...settings, vrrp: { ...settings.vrrp, interface: device } };
    t.like(await finding(other, named), { ok: true, detail: 'is 1' });
    await network.run('a', 'sysctl', '-qw', 'net.ipv4.conf.all.arp_ignore=0');
    const words = `sysctl -w ${named}=1`;
    t.true((await fault(other, named)).includes(words));
    // The command in the advice works.
    await network.run('a', 'sysctl', '-qw', `${named}=1`);
    t.true((await finding(other, named)).ok);
    t.true((await finding(other, named.replace('ipv4', 'ipv6').replace('arp_ignore', 'forwarding'))).ok);
    await network.run('a', 'ip', 'link', 'delete', device);
    await network.run('a', 'sysctl', '-qw', 'net.ipv4.conf.all.arp_ignore=1');
  }
});

test.serial('preflight() reports an address on another interface, or on none', async (t) => {
  const { settings } = await readyHost(t);
  const { vrrp } = settings;
  const elsewhere = { ...settings, vrrp: { ...vrrp, interface: 'lo' } };
  t.regex(await fault(elsewhere, 'interface lo'), /10\.9\.0\.11 is on eth0: correct/);
  const nowhere = { ...settings, vrrp: { ...vrrp, address: '10.9.0.99' } };
  t.regex(await fault(nowhere, 'interface eth0'), /10\.9\.0\.99 is not on this host/);
});

test.serial(
  'preflight() reports another keepalived with the same virtual router in the same network only',
  async (t) => {
    const { network, settings, directory } = await readyHost(t);
    const config = join(directory, 'other.conf');
    await writeFile(
      config,
      'vrrp_instance other {\n  interface eth0\n  virtual_router_id 51\n  priority 1\n  virtual_ipaddress {\n    10.9.0.77\n  }\n}\n',
    );
    const files = ['-p', join(directory, 'pid'), '-r', join(directory, 'vrrp-pid')];
    const { pid } = network.start('a', 'keepalived', '-n', '-f', config, ...files);
    const isThere = () => finding(settings, 'virtual router 51').then(({ ok }) => !ok);
    for (let look = 0; look < 50 && !(await isThere()); look++) await delay(20);
    t.is(
      await fault(settings, 'virtual router 51'),
      `keepalived with process id ${pid} also has virtual router 51 (${config}): choose another virtualRouterId, or stop it`,
    );
    t.true((await finding({ ...settings, netns: network.netns('b') }, 'virtual router 51')).ok);
    const other = {
      ...settings.vrrp,
      instances: [{ virtualRouterId: 52, priority: 200, anchors: ['10.9.0.1'] }],
    };
    t.true((await finding({ ...settings, vrrp: other }, 'virtual router 52')).ok);
    t.true(
      (await preflight(settings, { config })).some(({ what, ok }) => ok && what === 'virtual router 51'),
    );
  },
);

test.serial('preflight() reports a missing program, a missing namespace and a wrong clock', async (t) => {
  const { settings } = await readyHost(t);
  t.regex(
    await fault({ ...settings, keepalived: '/nowhere/keepalived' }, 'keepalived'),
    /Cannot run "\/nowhere/,
  );
  t.regex(await fault({ ...settings, netns: 'nowhere' }, 'netns'), /ip netns add nowhere/);
  const epoch = (await preflight(settings, OURS, 0)).find(({ what }) => what === 'clock');
  t.like(epoch, {
    ok: false,
    detail: '1970-01-01T00:00:00.000Z is in the past: set the clock of this host (NTP)',
  });
});

async function finding(settings: PreflightSettings, name: string): Promise<Finding> {
  const found = (await preflight(settings, OURS)).find(({ what }) => what === name);
  if (found === undefined) throw new Error(`Nothing is found about ${name}`);
  return found;
}

async function fault(settings: PreflightSettings, name: string): Promise<string> {
  const { ok, detail } = await finding(settings, name);
  return ok ? '' : detail;
}

async function readyHost(t: ExecutionContext<unknown>) {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const network = await TestNetwork.create(t, ['a', 'b']);
  for (const host of ['a', 'b']) await network.run(host, 'sysctl', '-qw', ...SYSCTLS);
  const settings: PreflightSettings = {
    keepalived: keepalivedExecutable,
    netns: network.netns('a'),
    vrrp: {
      interface: 'eth0',
      address: network.v4('a'),
      peers: [network.v4('b')],
      advertInterval: 200,
      instances: [{ virtualRouterId: 51, priority: 200, anchors: ['10.9.0.1', 'fd09::1'] }],
    },
  };
  return { network, settings, directory };
}
