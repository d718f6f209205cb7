// keepalived of two amphorae in real namespaces, with texts that Octavia's templates make.

import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import type { FixedAddress } from '../../agent/octavia/parts.ts';
import { Vrrp } from '../../agent/octavia/vrrp/amphora-vrrp.ts';
import { vrrpPaths } from '../../agent/octavia/vrrp/paths.ts';
import { eventually } from '../support/basics/eventually.ts';
import { requires } from '../support/basics/requirements.ts';
import { AmphoraHost } from '../support/octavia/amphora-host.ts';
import { fixed, vipPlug } from '../support/octavia/plugs.ts';
import { renderVrrp, type VrrpGiven } from '../support/octavia/render.ts';
import { silentLog } from '../support/values/silent-log.ts';
import { keepalivedExecutable } from '../support/vrrp/keepalived.ts';

const test = requires(ava, { root: true, programs: ['ip', 'nft', 'keepalived', 'octavia-worker'] });

// The agent's timers do not keep a process alive.
const alive = setInterval(() => undefined, 60_000);
test.after.always(() => clearInterval(alive));

const NAMES = ['one', 'two'] as const;
type Name = (typeof NAMES)[number];
const MACS: Readonly<Record<Name, string>> = { one: '02:00:00:00:01:01', two: '02:00:00:00:01:02' };

/** A VIP, and an additional one of the other family, which keepalived does not advertise. */
interface Plan {
  readonly own: Readonly<Record<Name, string>>;
  readonly vip: FixedAddress;
  readonly second: FixedAddress;
}

const V4 = fixed({ address: '10.9.0.100', subnet: '10.9.0.0/16', gateway: '10.9.0.1' });
const V6 = fixed({ address: 'fd09::100', subnet: 'fd09::/64', gateway: 'fd09::1' });
const BY_V4: Plan = { own: { one: '10.9.0.21', two: '10.9.0.22' }, vip: V4, second: V6 };
const BY_V6: Plan = { own: { one: 'fd09::21', two: 'fd09::22' }, vip: V6, second: V4 };

class Amphora {
  readonly name: Name;
  readonly base: string;
  readonly host: AmphoraHost;
  readonly plan: Plan;
  vrrp: Vrrp;
  /** Stands for HAProxy's socket. */
  #haproxy: Server | undefined;

  constructor(name: Name, host: AmphoraHost, plan: Plan) {
    this.name = name;
    this.plan = plan;
    this.host = host;
    this.base = join(host.folder, name);
    this.vrrp = this.agent();
  }

  agent(): Vrrp {
    return new Vrrp({
      base: this.base,
      runtimeDir: this.base,
      netns: this.host.network.netns(this.name),
      keepalived: keepalivedExecutable,
      logFacility: () => 1,
      log: silentLog(),
    });
  }

  get socket(): string {
    return join(this.base, 'balancer.sock');
  }

  async serve(): Promise<void> {
    await rm(this.socket, { force: true });
    this.#haproxy = createServer((socket) =>
      socket.on('error', () => undefined).once('data', () => socket.end('Pid: 1\n')),
    );
    this.#haproxy.listen(this.socket);
    await once(this.#haproxy, 'listening');
    await this.vrrp.check({ sockets: [this.socket], hasDatagrams: false });
  }

  endHaproxy(): void {
    this.#haproxy?.close();
    this.#haproxy = undefined;
  }

  async pid(): Promise<number> {
    const text = await readFile(vrrpPaths(this.base, this.base).pidFile, 'utf8').catch(() => '0');
    return Number.parseInt(text, 10);
  }

  async hasVip(): Promise<boolean> {
    const held = await this.host.addresses(this.name);
    return [V4, V6].every(({ address }) => held.some((each) => each.startsWith(`eth1 ${address}/`)));
  }

  text(): Promise<string> {
    const { own, vip, second } = this.plan;
    const amphorae: VrrpGiven['amphorae'] = NAMES.map((name, at) => ({
      role: at === 0 ? 'MASTER' : 'BACKUP',
      vrrp_interface: 'eth1',
      vrrp_id: 1,
      vrrp_priority: at === 0 ? 100 : 90,
      vrrp_ip: own[name],
    }));
    const subnet = { cidr: second.subnet, gateway_ip: second.gateway ?? '', host_routes: [] };
    return renderVrrp({
      base_path: this.base,
      group: 'aabbccdd',
      vip: vip.address,
      cidr: vip.subnet,
      gateway: vip.gateway ?? '',
      own: NAMES.indexOf(this.name),
      amphorae,
      additional: [{ ip_address: second.address, subnet }],
    });
  }
}

/** Two amphorae whose VIPs are plugged. */
async function pair(t: ExecutionContext<unknown>, plan = BY_V4): Promise<readonly [Amphora, Amphora]> {
  const host = await AmphoraHost.create(t, NAMES);
  const amphorae: Amphora[] = [];
  for (const [at, name] of NAMES.entries()) {
    await host.plug(`ens${7 + at}`, MACS[name]);
    const { own, vip, second } = plan;
    const plug = vipPlug({
      ...{ mac: MACS[name], mtu: undefined, vrrpAddress: own[name] },
      ...{ vip, additionalVips: [second] },
    });
    await host.networkOf(name, 'ACTIVE_STANDBY').plugVip(plug);
    const amphora = new Amphora(name, host, plan);
    amphorae.push(amphora);
    t.teardown(async () => {
      amphora.endHaproxy();
      await amphora.vrrp.stop().catch(() => undefined);
      await amphora.vrrp.close();
    });
  }
  return amphorae as unknown as readonly [Amphora, Amphora];
}

const who = async (amphorae: readonly Amphora[]): Promise<string> => {
  const held = await Promise.all(amphorae.map((each) => each.hasVip()));
  return amphorae
    .filter((_, at) => held[at])
    .map(({ name }) => name)
    .join(' ');
};

for (const [words, plan] of [
  ['of IPv4', BY_V4],
  ['of IPv6', BY_V6],
] as const)
  test(`The VIPs of a pair ${words} go to an amphora with HAProxy, and move when it is lost`, async (t) => {
    const [one, two] = await pair(t, plan);
    const both = [one, two];
    for (const each of both) {
      await t.throwsAsync(each.vrrp.start(), { code: 'OCTAVIA_INVALID' });
      await each.vrrp.upload(await each.text());
      await each.vrrp.start();
      t.true(await each.vrrp.isWell());
    }
    // No listener has been pushed yet.
    t.is(await who(both), '');
    for (const each of both) await each.serve();
    await eventually(
      () => who(both),
      (name) => name === 'one',
    );
    const { host } = one;
    t.deepEqual(await host.rules('one'), [
      `from ${V4.address} lookup 1 proto keepalived`,
      `from ${V6.address} lookup 1 proto keepalived`,
    ]);

    // The second agent plugs again what keepalived has added to.
    await host.networkOf('one', 'ACTIVE_STANDBY').restore();
    t.is(await who(both), 'one');
    t.is((await host.rules('one')).length, 2);

    const cutAt = performance.now();
    await host.network.run('bridge', 'ip', 'link', 'set', 'of-ens7', 'nomaster');
    await eventually(
      () => two.hasVip(),
      (has) => has,
    );
    t.log(`The VIP moved ${Math.round(performance.now() - cutAt)} ms after the loss of an amphora`);
    await host.network.run('bridge', 'ip', 'link', 'set', 'of-ens7', 'master', 'br0');
    await eventually(
      () => who(both),
      (name) => name === 'one' || name === 'two',
    );

    const holder = (await who(both)) === 'one' ? one : two;
    const other = holder === one ? two : one;
    holder.endHaproxy();
    await eventually(
      () => who(both),
      (name) => name === other.name,
    );
    t.pass();
  });

test('keepalived outlives the agent, which adopts it, and starts it again when it is killed', async (t) => {
  const [one] = await pair(t);
  await one.vrrp.upload(await one.text());
  await one.vrrp.start();
  await one.serve();
  await eventually(
    () => one.hasVip(),
    (has) => has,
  );
  const first = await one.pid();

  // An agent that ends and another one that starts.
  await one.vrrp.close();
  one.vrrp = one.agent();
  await one.vrrp.restore();
  t.is(await one.pid(), first);
  t.true(await one.vrrp.isWell());
  t.true(await one.hasVip());

  // A start of what runs, and a reload of the same text.
  await one.vrrp.start();
  await one.vrrp.reload();
  t.is(await one.pid(), first);

  process.kill(first, 'SIGKILL');
  await eventually(
    () => one.pid(),
    (pid) => pid > 0 && pid !== first,
  );
  await eventually(
    () => one.vrrp.isWell(),
    (isWell) => isWell,
  );
  await eventually(
    () => one.hasVip(),
    (has) => has,
  );

  // Another text counts from the reload on.
  const second = await one.pid();
  await one.vrrp.upload((await one.text()).replace('priority 100', 'priority 110'));
  const { config } = vrrpPaths(one.base, one.base);
  t.regex(await readFile(config, 'utf8'), /priority 100\n/);
  await one.vrrp.reload();
  t.regex(await readFile(config, 'utf8'), /priority 110\n/);
  t.is(await one.pid(), second);
  t.true(await one.hasVip());

  await one.vrrp.stop();
  await eventually(
    () => one.hasVip(),
    (has) => !has,
  );
  await one.vrrp.close();
  one.vrrp = one.agent();
  await one.vrrp.restore();
  t.true(await one.vrrp.isWell());
  t.throws(() => process.kill(second, 0));
});
