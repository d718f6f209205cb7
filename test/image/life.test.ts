// The life of the package on a host with a real systemd. Each test continues from the state after the test before it.
// HEADGATE_DEB names the package; `make test-image` builds it.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import ava, { type ExecutionContext } from 'ava';
import { eventually } from '../support/basics/eventually.ts';
import { requires } from '../support/basics/requirements.ts';
import { Teardowns } from '../support/basics/teardowns.ts';
import { copyRoot, MachineLab, type MachineLoad, VIP } from '../support/host/machine-lab.ts';
import { answerDatagrams, askByDatagrams, UDP_MEMBER_PORT } from '../support/traffic/datagrams.ts';
import { webObjects } from '../support/values/service-objects.ts';

const test = requires(ava, { root: true, programs: ['debootstrap', 'dpkg-deb', 'setpriv', 'unshare'] });

/** The unit of the landing is started with those of the agent and of HAProxy. */
const ENABLED = ['headgate', 'headgate-haproxy', 'headgate-keepalived'];
const UNITS = [...ENABLED, 'headgate-haproxy-landing'];
/** No host has this address. */
const NO_SERVER = '10.9.0.98';
const teardowns = new Teardowns();
let lab: MachineLab;
let load: MachineLoad;

test.before(async () => {
  const script = fileURLToPath(new URL('../../scripts/image/debian-root.sh', import.meta.url));
  const base = execFileSync('sh', [script, '--offline'], { encoding: 'utf8' }).trim();
  lab = await MachineLab.create(teardowns, (root) => copyRoot(base, root));
  await rm(join(lab.machine.root, 'usr/sbin/policy-rc.d'));
  await lab.bring(packageFile(), 'opt/headgate_1.deb');
});

test.after.always(() => teardowns.run());

test.serial('A first installation starts nothing and creates all that the units need', async (t) => {
  const { machine } = lab;
  t.is(await lab.boot(), 'running');
  await apt('install', '/opt/headgate_1.deb', 'keepalived', 'nftables', 'conntrack', 'conntrackd');
  for (const unit of UNITS) t.is(await machine.show(unit, 'ActiveState'), 'inactive');
  t.is(await machine.run('stat', '-c', '%U:%G %a', '/var/lib/headgate/haproxy'), 'headgate:haproxy 2750\n');
  t.is((await lab.network.run('lb', 'sysctl', '-n', 'net.ipv4.ip_nonlocal_bind')).trim(), '1');
  t.is((await machine.run('systemctl', '--failed', '--quiet')).trim(), '');
});

test.serial('A configured and started host serves through its VIP and reports its status', async (t) => {
  const { machine } = lab;
  await machine.run('systemctl', 'disable', '--now', 'haproxy', 'keepalived', 'conntrackd');
  await lab.configure();
  await machine.run('systemctl', 'enable', '--now', ...ENABLED);
  for (const unit of UNITS) {
    t.is(await machine.show(unit, 'ActiveState'), 'active');
    t.is(await machine.show(unit, 'Type'), unit.endsWith('landing') ? 'exec' : 'notify');
  }
  await lab.answers();
  t.true((await lab.network.held('lb')).includes(VIP));
  t.is(await machine.show('headgate', 'StatusText'), 'Serving 1 load balancer');
  const metrics = await lab.metrics(lab.network.v4('lb'));
  t.regex(metrics, /^headgate_vrrp_\w+\{.*\} 1$/m);
  load = lab.load();
  teardowns.teardown(() => load.stop());
});

test.serial('UDP is served with the rights of the units', async (t) => {
  answerDatagrams(lab.network, 'member');
  await lab.put('etc/sysctl.d/99-forward.conf', 'net.ipv4.ip_forward = 1\n');
  await lab.machine.run('/lib/systemd/systemd-sysctl', '99-forward.conf');
  await lab.machine.run('systemctl', 'enable', 'headgate-rules');
  const ports = [{ name: 'dns', port: 53, protocol: 'UDP' }];
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'dns', annotations: { 'headgate.io/load-balancer-ips': VIP } },
    spec: { type: 'LoadBalancer', loadBalancerClass: 'headgate.io/agent', ports },
  };
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'dns-1', labels: { 'kubernetes.io/service-name': 'dns' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [lab.network.v4('member')] }],
    ports: [{ ...ports[0], port: UDP_MEMBER_PORT }],
  };
  await lab.put(
    'etc/headgate/manifests/dns.yaml',
    `${JSON.stringify(service)}\n---\n${JSON.stringify(slice)}\n`,
  );
  await answersDatagrams();
  t.notRegex(await journal('headgate'), /"code":"NFT_|conntrack/);
  await lab.machine.run('test', '-s', '/var/lib/headgate/nftables/headgate.nft');
});

test.serial('conntrackd runs with the rights of its unit, and ends with the setting', async (t) => {
  const { machine } = lab;
  const state = async () => {
    const { stdout } = await machine.try('headgate', 'status', '--json');
    return stdout === '' ? undefined : JSON.parse(stdout).connectionSync;
  };
  await lab.configure('connectionSync: true\n');
  await machine.run('systemctl', 'enable', '--now', 'headgate-conntrackd');
  await machine.run('systemctl', 'restart', 'headgate');
  await machine.until('conntrackd runs', async () => (await state())?.fault === '');
  const { pid, isPeerHeard } = await state();
  t.is(await machine.show('headgate-conntrackd', 'MainPID'), String(pid));
  t.false(isPeerHeard, 'there is no peer');
  t.notRegex(await journal('headgate-conntrackd'), /\[(?:ERROR|warning)\]/);
  t.regex(await machine.run('nft', 'list', 'tables'), /^table inet headgate_sync$/m);
  await machine.run('systemctl', 'kill', '--signal=KILL', 'headgate-conntrackd');
  await machine.until('another runs', async () => ![0, pid].includes((await state())?.pid ?? 0));
  await lab.configure();
  await machine.run('systemctl', 'restart', 'headgate');
  const tables = () => machine.run('nft', 'list', 'tables');
  await machine.until('it has ended', async () => !(await tables()).includes('headgate_sync'));
  t.is(await state(), undefined);
  await machine.run('systemctl', 'disable', '--now', 'headgate-conntrackd');
});

test.serial(
  'A new Service is served by the landing with the rights of the units, also after it was killed',
  async (t) => {
    const { machine, network } = lab;
    // However long a step takes, none leaves the landing meanwhile.
    await lab.configure('landingRest: 1h\n');
    await machine.run('systemctl', 'restart', 'headgate');
    const reloads = await reloadsOfMain();
    const objects = webObjects({ name: 'extra', address: VIP, port: 8090, members: [network.v4('member')] });
    const text = objects.map((each) => JSON.stringify(each)).join('\n---\n');
    await lab.put('etc/headgate/manifests/extra.yaml', text);
    await lab.answers(`http://${VIP}:8090/`);
    t.regex(await machine.run('headgate', 'status'), /^Landing: +1 load balancer$/m);
    await machine.run('systemctl', 'kill', '--signal=KILL', 'headgate-haproxy-landing');
    await lab.answers(`http://${VIP}:8090/`);
    t.is(await reloadsOfMain(), reloads);
    await machine.run('rm', '/etc/headgate/manifests/extra.yaml');
    await machine.until('it is gone', async () => (await lab.ask(`http://${VIP}:8090/`)) === '');
    await lab.configure();
    await machine.run('systemctl', 'restart', 'headgate');
  },
);

async function reloadsOfMain(): Promise<number> {
  const metrics = await lab.metrics(lab.network.v4('lb'));
  const lines = metrics.match(/^headgate_haproxy_reloads_total\{.*result="done"\} \d+$/gm) ?? [];
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

for (const [unit, limit] of [
  ['headgate', 2.2],
  ['headgate-haproxy', 1.7],
  ['headgate-haproxy-landing', 1.7],
  ['headgate-keepalived', 2.5],
  ['headgate-conntrackd', 1.9],
] as const)
  test.serial(`systemd rates the exposure of ${unit}.service no higher than its work needs`, async (t) => {
    const words = ['security', `--threshold=${limit * 10}`, '--no-pager', `${unit}.service`];
    const { exitCode, stdout } = await lab.machine.try('systemd-analyze', ...words);
    t.log(stdout.trim().split('\n').at(-1));
    t.is(exitCode, 0, stdout);
  });

test.serial('A restart of the agent does not affect traffic', async (t) => {
  const before = await dataplane();
  await load.report();
  await lab.machine.run('systemctl', 'restart', 'headgate');
  await lab.machine.run('systemctl', 'reload', 'headgate');
  await undisturbed(t, before);
  t.notRegex(await journal('headgate'), /Cannot notify systemd/);
});

test.serial('systemd restarts a killed agent without an effect on traffic', async (t) => {
  const before = await dataplane();
  await load.report();
  await comesBack('headgate', 'SIGKILL');
  await undisturbed(t, before);
});

test.serial('The watchdog restarts a hanging agent without an effect on traffic', async (t) => {
  const { machine } = lab;
  // Half a minute otherwise.
  await machine.run('mkdir', '-p', '/run/systemd/system/headgate.service.d');
  await lab.machine.run(
    'sh',
    '-c',
    'printf "[Service]\\nWatchdogSec=3s\\n" >/run/systemd/system/headgate.service.d/test.conf',
  );
  await machine.run('systemctl', 'daemon-reload');
  await machine.run('systemctl', 'restart', 'headgate');
  const before = await dataplane();
  await load.report();
  await comesBack('headgate', 'SIGSTOP');
  await undisturbed(t, before);
  t.regex(await journal('headgate'), /Watchdog timeout/);
  await machine.run('rm', '-r', '/run/systemd/system/headgate.service.d');
  await machine.run('systemctl', 'daemon-reload');
  await machine.run('systemctl', 'restart', 'headgate');
});

for (const [unit, signal] of [
  ['headgate-haproxy', 'SIGKILL'],
  ['headgate-haproxy', 'SIGTERM'],
  ['headgate-keepalived', 'SIGKILL'],
] as const)
  test.serial(`${unit}.service serves again after ${signal}`, async (t) => {
    await comesBack(unit, signal);
    t.log(`Ready ${await gap(unit)} ms after its end`);
    await lab.answers();
    t.true((await lab.network.held('lb')).includes(VIP));
  });

test.serial('HAProxy serves again after its worker was killed', async (t) => {
  const { worker } = await dataplane();
  await lab.machine.run('kill', '-KILL', worker);
  await lab.machine.until(
    'there is another worker',
    async () => ![worker, ''].includes((await dataplane()).worker),
  );
  await lab.answers();
  t.is(await lab.machine.show('headgate-haproxy', 'ActiveState'), 'active');
});

test.serial(
  "HAProxy's messages are in its file, which the agent may empty, and not in the journal",
  async (t) => {
    const log = '/run/headgate/haproxy/haproxy.log';
    const said = await lab.machine.run('cat', log);
    t.regex(said, /New worker \(\d+\) forked/);
    t.notRegex(await journal('headgate-haproxy'), /New worker/);
    await lab.machine.run(
      'setpriv',
      '--reuid=headgate',
      '--regid=headgate',
      '--groups=haproxy',
      'truncate',
      '--size=0',
      log,
    );
    await lab.machine.run('systemctl', 'reload', 'headgate-haproxy');
    await lab.machine.until('HAProxy continues to write there', async () =>
      (await lab.machine.run('cat', log)).includes('New worker'),
    );
    await lab.answers();
  },
);

test.serial('systemd never gives up restarting HAProxy', async (t) => {
  const { machine } = lab;
  const file = '/var/lib/headgate/haproxy/haproxy.cfg';
  const starts = async (): Promise<number> => Number(await machine.show('headgate-haproxy', 'NRestarts'));
  // The agent would write the file again.
  await machine.run('systemctl', 'stop', 'headgate');
  await machine.run('cp', '--preserve', file, '/root/haproxy.cfg');
  await machine.run('sh', '-c', `echo nonsense >>${file}`);
  const [before, began] = [await starts(), performance.now()];
  await machine.run('systemctl', 'kill', '--signal=KILL', 'headgate-haproxy');
  // By default systemd gives up after five starts within ten seconds.
  await machine.until('it has been started a dozen times', async () => (await starts()) >= before + 12);
  t.log(`Started ${(await starts()) - before} times within ${sinceThen(began)}`);
  t.not(await machine.show('headgate-haproxy', 'ActiveState'), 'failed');
  await machine.run('cp', '--preserve', '/root/haproxy.cfg', file);
  await lab.answers();
  t.is(await machine.show('headgate-haproxy', 'ActiveState'), 'active');
  await machine.run('systemctl', 'start', 'headgate');
  t.is((await machine.try('headgate', 'status')).exitCode, 0);
});

test.serial(
  'A HAProxy that the operator stops stays stopped and is reported, and serves after its start',
  async (t) => {
    const { machine } = lab;
    const isOffline = async (): Promise<boolean> =>
      /^headgate_operating_status\{kind="load_balancer",status="OFFLINE"\} 1$/m.test(
        await lab.metrics(lab.network.v4('lb')),
      );
    const began = performance.now();
    await machine.run('systemctl', 'stop', 'headgate-haproxy');
    t.log(`Stopped within ${sinceThen(began)}`);
    t.is(await machine.show('headgate-haproxy', 'Result'), 'success');
    await machine.until('the metrics say so', isOffline);
    const { exitCode, stdout } = await machine.try('headgate', 'status');
    t.is(exitCode, 1);
    t.regex(stdout, /^Fault: +HAProxy /m);
    t.is(await machine.show('headgate-haproxy', 'ActiveState'), 'inactive');
    t.is(await machine.show('headgate', 'ActiveState'), 'active');
    await machine.run('systemctl', 'start', 'headgate-haproxy');
    await lab.answers();
    await machine.until('the metrics say so', async () => !(await isOffline()));
    t.is((await machine.try('headgate', 'status')).exitCode, 0);
  },
);

test.serial('The agent reports a masked HAProxy, and serves after it is unmasked', async (t) => {
  const { machine } = lab;
  await machine.run('systemctl', 'mask', '--now', '--runtime', 'headgate-haproxy');
  await machine.run('systemctl', 'restart', '--no-block', 'headgate');
  await machine.until('it says what it waits for', async () => {
    const [state, text] = [
      await machine.show('headgate', 'ActiveState'),
      await machine.show('headgate', 'StatusText'),
    ];
    return state === 'activating' && text.includes('HAProxy');
  });
  t.log(await machine.show('headgate', 'StatusText'));
  await machine.run('systemctl', 'unmask', '--runtime', 'headgate-haproxy');
  await machine.run('systemctl', 'start', 'headgate-haproxy');
  await lab.answers();
  await machine.until(
    'the agent is ready',
    async () => (await machine.show('headgate', 'ActiveState')) === 'active',
  );
  t.is((await machine.try('headgate', 'status')).exitCode, 0);
});

test.serial('An upgrade does not affect traffic, keeps the settings and runs the new agent', async (t) => {
  const { machine } = lab;
  await lab.bring(await nextRevision(), 'opt/headgate_2.deb');
  await settled();
  const [before, agent] = [await dataplane(), await machine.show('headgate', 'MainPID')];
  await load.report();
  await apt('-o', 'Dpkg::Options::=--force-confold', 'install', '/opt/headgate_2.deb');
  await machine.until(
    'the new agent is ready',
    async () => (await machine.show('headgate', 'ActiveState')) === 'active',
  );
  t.not(await machine.show('headgate', 'MainPID'), agent);
  await undisturbed(t, before);
  t.regex(await machine.run('dpkg-query', '-W', 'headgate'), /-2$/m);
  t.regex(await machine.run('cat', '/etc/headgate/headgate.yaml'), /^# An operator's own words/);
  t.is((await machine.run('systemctl', '--failed', '--quiet')).trim(), '');
});

test.serial('A downgrade does not affect traffic', async (t) => {
  const { machine } = lab;
  const [before, agent] = [await dataplane(), await machine.show('headgate', 'MainPID')];
  await load.report();
  const keep = ['-o', 'Dpkg::Options::=--force-confold'];
  await apt(...keep, '--allow-downgrades', 'install', '/opt/headgate_1.deb');
  await machine.until('the old agent is ready', async () => {
    const [now, state] = [
      await machine.show('headgate', 'MainPID'),
      await machine.show('headgate', 'ActiveState'),
    ];
    return now !== agent && now !== '0' && state === 'active';
  });
  await undisturbed(t, before);
  t.regex(await machine.run('dpkg-query', '-W', 'headgate'), /-1$/m);
});

test.serial(
  'systemd provides the credentials, and an unreachable API server does not affect serving',
  async (t) => {
    const { machine } = lab;
    const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{ name: c, cluster: { server: 'https://${NO_SERVER}:6443' } }]
users: [{ name: u, user: { token: a-secret-word } }]
contexts: [{ name: x, context: { cluster: c, user: u } }]
current-context: x
`;
    await lab.put('etc/credstore/headgate.kubeconfig', kubeconfig);
    await machine.run('chmod', '600', '/etc/credstore/headgate.kubeconfig');
    await lab.configure('kubeconfig: /run/credentials/headgate.service/kubeconfig\n');
    const before = await dataplane();
    await load.report();
    await machine.run('systemctl', 'restart', 'headgate');
    await undisturbed(t, before);
    t.is(await machine.show('headgate', 'StatusText'), 'Serving 2 load balancers');
    // A server that cannot be reached is known after some seconds.
    const words = await eventually(
      () => journal('headgate'),
      (text) => text.includes(NO_SERVER),
    );
    t.notRegex(words, /a-secret-word/);
  },
);

test.serial('After a reboot a host serves its last state without its manifests', async (t) => {
  const { machine } = lab;
  await machine.run('mv', '/etc/headgate/manifests', '/etc/headgate/away');
  const began = performance.now();
  await machine.powerOff();
  t.log(`Off within ${sinceThen(began)}`);
  await t.throwsAsync(machine.run('true'));
  t.is(await lab.boot(), 'running');
  await lab.answers();
  t.log(`Serves ${sinceThen(began)} after the order to power off`);
  for (const unit of UNITS) t.is(await machine.show(unit, 'ActiveState'), 'active', unit);
  t.is(await machine.show('headgate', 'StatusText'), 'Serving 2 load balancers');
  await machine.run('mv', '/etc/headgate/away', '/etc/headgate/manifests');
});

test.serial('A host that shuts down hands its addresses over before its HAProxy ends', async (t) => {
  // The journal of both boots, which have the kernel's one identity; since the second one nothing has been stopped.
  const text = await lab.machine.run('journalctl', '--no-pager', '--quiet', '--identifier=systemd');
  const handedOver = text.lastIndexOf('Stopped headgate-keepalived.service');
  const ends = text.lastIndexOf('Stopping headgate-haproxy.service');
  t.true(handedOver > 0);
  t.true(ends > handedOver);
});

test.serial('After a power failure a host serves its last state without an agent', async (t) => {
  const { machine } = lab;
  await machine.run('systemctl', 'disable', 'headgate');
  const began = performance.now();
  await machine.cutOff();
  await lab.boot();
  await lab.answers();
  await answersDatagrams();
  t.log(`Serves ${sinceThen(began)} after the cut`);
  t.is(await machine.show('headgate', 'ActiveState'), 'inactive');
  await settled();
  const before = await dataplane();
  await machine.run('systemctl', 'enable', '--now', 'headgate');
  await undisturbed(t, before);
});

test.serial(
  'Two instances serve beside the first load balancer, each in its own network namespace',
  async (t) => {
    for (const [name, own] of [
      ['one', '10.9.0.31'],
      ['two', '10.9.0.32'],
    ] as const) {
      await lab.addInstance(name, own);
      t.is(await lab.machine.show(`headgate@${name}`, 'ActiveState'), 'active');
      await lab.answers(`http://${own}/`);
      t.regex(await lab.metrics(own), /^headgate_/m);
    }
    await lab.answers();
  },
);

test.serial('A removal ends all processes and keeps settings and state', async (t) => {
  const { machine } = lab;
  load.stop();
  await apt('remove', 'headgate');
  const { stdout } = await machine.try('pgrep', '-u', 'headgate,haproxy', '-l');
  t.is(stdout, '');
  t.deepEqual(await lab.network.held('lb'), []);
  t.is(
    (await machine.run('systemctl', 'list-units', '--all', '--quiet', '--no-legend', 'headgate*')).trim(),
    '',
  );
  t.true(existsSync(join(machine.root, 'etc/headgate/headgate.yaml')));
  t.true(existsSync(join(machine.root, 'var/lib/headgate/haproxy/haproxy.cfg')));
  t.is(await machine.run('systemctl', 'is-system-running'), 'running\n');
});

test.serial('A second installation starts nothing, and the host serves with the kept settings', async (t) => {
  const { machine } = lab;
  // The removed revision comes again: dpkg must not ask which file to use if the operator's is kept.
  await apt('-o', 'Dpkg::Options::=--force-confold', 'install', '/opt/headgate_2.deb');
  for (const unit of UNITS) t.is(await machine.show(unit, 'ActiveState'), 'inactive', unit);
  t.regex(await machine.run('cat', '/etc/headgate/headgate.yaml'), /^# An operator's own words/);
  await machine.run('systemctl', 'enable', '--now', ...ENABLED);
  await lab.answers();
  t.true((await lab.network.held('lb')).includes(VIP));
  t.is(await machine.show('headgate', 'StatusText'), 'Serving 2 load balancers');
  t.is((await machine.run('systemctl', '--failed', '--quiet')).trim(), '');
});

test.serial("A purge leaves only the operator's files and the user", async (t) => {
  const { machine } = lab;
  await apt('purge', 'headgate');
  const own = /^\/(etc\/headgate(\/.*)?|etc\/credstore\/headgate\.kubeconfig|opt\/headgate_\d\.deb)$/;
  const left = (await machine.run('find', '/', '-mount', '-name', '*headgate*')).split('\n');
  t.deepEqual(
    left.filter((path) => path !== '' && !own.test(path)),
    [],
  );
  t.deepEqual((await readdir(join(machine.root, 'etc/headgate'))).sort(), [
    'manifests',
    'manifests-one',
    'manifests-two',
    'one.yaml',
    'two.yaml',
  ]);
  t.is((await machine.run('find', '/run', '/etc/systemd', '-name', '*headgate*')).trim(), '');
  t.regex(await machine.run('getent', 'passwd', 'headgate'), /nologin/);
  await machine.powerOff();
});

function sinceThen(began: number): string {
  return `${((performance.now() - began) / 1_000).toFixed(1)} s`;
}

function packageFile(): string {
  const file = process.env.HEADGATE_DEB;
  if (file === undefined) throw new Error('HEADGATE_DEB names no package: "make test-image" builds one');
  return file;
}

/** The same package as revision 2, whose settings file is another one than that of the first. */
async function nextRevision(): Promise<string> {
  const work = await mkdtemp(join(tmpdir(), 'hg-deb-'));
  teardowns.teardown(() => rm(work, { recursive: true }));
  const [tree, file] = [join(work, 'tree'), join(work, 'headgate_2.deb')];
  execFileSync('dpkg-deb', ['-R', packageFile(), tree]);
  const control = await readFile(join(tree, 'DEBIAN/control'), 'utf8');
  await writeFile(join(tree, 'DEBIAN/control'), control.replace(/^(Version: .*)-1$/m, '$1-2'));
  const settings = join(tree, 'etc/headgate/headgate.yaml');
  await writeFile(settings, `${await readFile(settings, 'utf8')}# New in this revision.\n`);
  execFileSync('dpkg-deb', ['-Znone', '--build', tree, file], { stdio: 'pipe' });
  return file;
}

async function apt(...words: readonly string[]): Promise<void> {
  await lab.machine.run('apt-get', '-y', '--no-install-recommends', ...words);
}

/** Waits until the member answers by UDP. */
function answersDatagrams(): Promise<void> {
  return lab.machine.until(
    'the member answers by UDP',
    async () => (await askByDatagrams(lab.network, VIP, 53)).by[0] === 'member',
  );
}

/** Who carries the traffic. */
async function dataplane(): Promise<Readonly<Record<'haproxy' | 'worker' | 'keepalived', string>>> {
  const [haproxy, keepalived] = [
    await lab.machine.show('headgate-haproxy', 'MainPID'),
    await lab.machine.show('headgate-keepalived', 'MainPID'),
  ];
  const { stdout } = await lab.machine.try('pgrep', '-P', haproxy);
  return { haproxy, keepalived, worker: stdout.trim() };
}

/** No request has failed since the last report, and the dataplane is the same. */
async function undisturbed(
  t: ExecutionContext<unknown>,
  before: Awaited<ReturnType<typeof dataplane>>,
): Promise<void> {
  await delay(500);
  const { requests, failed, errors } = await load.report();
  t.log(`${requests} requests, ${failed} failed`);
  t.true(requests > 100);
  t.is(failed, 0, errors.join('\n'));
  t.deepEqual(await dataplane(), before);
}

/** Sends the unit's main process a signal, and waits for another one that is ready. */
async function comesBack(unit: string, signal: string): Promise<void> {
  const { machine } = lab;
  const pid = await machine.show(unit, 'MainPID');
  await machine.run('kill', '-s', signal.slice(3), pid);
  await machine.until(`${unit} runs again`, async () => {
    const [now, state] = [await machine.show(unit, 'MainPID'), await machine.show(unit, 'ActiveState')];
    return now !== pid && now !== '0' && state === 'active';
  });
}

/** Milliseconds from a unit's end to when it was ready again, as systemd counts them. */
async function gap(unit: string): Promise<number> {
  const at = async (property: string): Promise<number> => Number(await lab.machine.show(unit, property));
  const [ended, ready] = [
    await at('ActiveExitTimestampMonotonic'),
    await at('ActiveEnterTimestampMonotonic'),
  ];
  return Math.round((ready - ended) / 1_000);
}

/** The load's requests succeed again. */
async function settled(): Promise<void> {
  await lab.machine.until('no request fails any more', async () => {
    await delay(200);
    const { requests, failed } = await load.report();
    return requests > 0 && failed === 0;
  });
}

function journal(unit: string): Promise<string> {
  return lab.machine.run('journalctl', '--no-pager', '--quiet', '--unit', unit);
}
