// The pair with the real keepalived, in network namespaces: master and backup, the VIPs, and faults.

import { randomInt } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rm, rmdir, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { keepalivedExecutable } from '../support/vrrp/keepalived.ts';
import { ANCHOR, createPair, type Pair, startPair, until, vip, vips } from '../support/vrrp/vrrp-pair.ts';

const test = requires(ava, { root: true, programs: ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl'] });

test.serial('One host is master and holds all addresses, the other host none', async (t) => {
  const { a, b } = await startPair(t, [...vips(0, 3), 'fd09::100']);
  t.deepEqual([...(await b.held())].sort(), [ANCHOR, ...vips(0, 3), 'fd09::1', 'fd09::100'].sort());
  t.deepEqual(await a.held(), []);
  t.is(b.dataplane.status().vips, 4);
  t.is(b.dataplane.status().fault, '');
});

test.serial('The other host takes over the VIPs of a keepalived that hangs', async (t) => {
  const pair = await startPair(t, vips(0, 3));
  const { a, b } = pair;
  process.kill(await b.vrrpPid(), 'SIGSTOP');
  await until('a is master', async () => a.state() === 'master', pair);
  t.true((await a.held()).includes(vip(2)));
  process.kill(await b.vrrpPid(), 'SIGCONT');
  await isSettled(pair);
});

test.serial(
  'A host without its network loses the VIPs, and there is one master when its network is back',
  async (t) => {
    const pair = await startPair(t, vips(0, 3));
    const { network, a } = pair;
    for (const host of ['a', 'b']) network.serve(host);
    await until('b serves', async () => (await network.whoServes(vip(1))) === 'b', pair);
    await network.cut('b');
    await until('a serves', async () => (await network.whoServes(vip(1))) === 'a', pair);
    t.is(a.state(), 'master');
    await network.join('b');
    await isSettled(pair);
    const master = a.state() === 'master' ? 'a' : 'b';
    await until('the master serves', async () => (await network.whoServes(vip(1))) === master, pair);
  },
);

test.serial('The VIPs move to the other host when this host is lowered, and stay there', async (t) => {
  const pair = await startPair(t, vips(0, 3));
  const { a, b } = pair;
  b.dataplane.standing(['maintenance']);
  await until('a is master', async () => a.state() === 'master' && b.state() === 'backup', pair);
  t.is(b.dataplane.status().instances[0]?.priority, 98);
  b.dataplane.standing([]);
  await until('b is well again', async () => (await b.ask()).priority === 200, pair);
  t.is((await a.ask()).state, 'master');
  // If both hosts cannot serve, one of them still has the VIPs.
  b.dataplane.standing(['haproxy']);
  a.dataplane.standing(['haproxy']);
  await until('both are lowered', async () => (await a.ask()).priority === 47, pair);
  await isSettled(pair);
});

test.serial('keepalived ignores a host that is no peer, with any virtual router and priority', async (t) => {
  const pair = await startPair(t, vips(0, 3));
  const { network, a, b } = pair;
  const folder = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = join(folder, 'keepalived.conf');
  const peers = [network.v4('a'), network.v4('b')].join('\n');
  await writeFile(
    file,
    `global_defs {
  vrrp_version 3
}
vrrp_instance stranger {
  interface eth0
  virtual_router_id 51
  priority 254
  advert_int 0.1
  unicast_src_ip ${network.v4('client')}
  unicast_peer {
${peers}
}
  virtual_ipaddress {
${ANCHOR}/32
}
}
`,
  );
  const count = `table inet seen {
  chain in {
    type filter hook input priority 0;
    ip saddr ${network.v4('client')} meta l4proto 112 counter
  }
}`;
  for (const host of ['a', 'b']) await network.run(host, 'nft', count);
  const pids = ['-p', join(folder, 'pid'), '-r', join(folder, 'vrrp.pid')];
  network.start('client', keepalivedExecutable, '-n', '-l', '-f', file, ...pids);
  const received = async (host: string) =>
    Number(/ packets (\d+)/.exec(await network.run(host, 'nft', 'list', 'table', 'inet', 'seen'))?.[1]);
  // More advertisements than a master or a backup needs to change its state.
  await until(
    'both have received many',
    async () => (await received('a')) > 10 && (await received('b')) > 10,
    pair,
  );
  t.is(`${a.state()},${b.state()}`, 'backup,master');
  t.true((await b.held()).includes(vip(2)));
});

test.serial(
  'A thousand VIPs change on one host long before the other without a change of master',
  async (t) => {
    const all = vips(0, 1_000);
    const pair = await startPair(t, all.slice(0, 900));
    const { a, b } = pair;
    const before = [(await a.ask()).becameMaster, (await b.ask()).becameMaster];
    let [onA, onB] = [all.slice(0, 900), all.slice(0, 900)];
    for (let round = 0; round < 12; round++) {
      const some = all.filter(() => randomInt(10) > 0);
      if (randomInt(2) === 0) {
        onA = some;
        a.want(onA);
      } else {
        onB = some;
        b.want(onB);
      }
      await delay(randomInt(400));
    }
    a.want(all);
    b.want(all);
    for (const host of [a, b])
      await until('both have all', async () => (await host.ask()).addresses.size === 1_002, pair);
    const after = [await a.ask(), await b.ask()];
    t.deepEqual(
      after.map(({ state }) => state),
      ['backup', 'master'],
      a.log,
    );
    t.deepEqual(
      after.map(({ becameMaster }) => becameMaster),
      before,
    );
    t.is((await b.held()).length, 1_002);
    t.deepEqual(await a.held(), []);
  },
);

test.serial('The agent removes the addresses that a killed keepalived has left', async (t) => {
  const pair = await startPair(t, vips(0, 50));
  const { a, b } = pair;
  await b.crash();
  await until('b is backup', async () => b.state() === 'backup' && a.state() === 'master', pair);
  t.deepEqual(await b.held(), []);
  t.true(b.counted.has('keepalived'));
  await isSettled(pair);
});

test.serial(
  'The agent removes left addresses that are no VIPs any more when keepalived starts again',
  async (t) => {
    const pair = await startPair(t, vips(0, 50));
    const { b } = pair;
    await b.dataplane.close();
    await b.crash();
    t.is((await b.held()).length, 52);
    await b.restart(vips(0, 10));
    await until('b holds nothing', async () => (await b.held()).length === 0, pair);
    t.true(b.counted.has('stale-vips'));
    await isSettled(pair);
  },
);

test.serial('Two hosts that start at the same moment end with one master', async (t) => {
  const pair = await createPair(t);
  const { a, b } = pair;
  for (const host of [a, b]) host.want(vips(0, 20));
  await Promise.all([a, b].map((host) => host.dataplane.start()));
  for (const host of [a, b]) host.dataplane.standing([]);
  await isSettled(pair);
  t.is((await b.held()).length + (await a.held()).length, 22);
});

test.serial('The agent reports a second master, and its end', async (t) => {
  const pair = await startPair(t, vips(0, 3));
  const { network, a, b } = pair;
  await network.deafen('a');
  await until('b reports it', async () => b.dataplane.status().rivals.length > 0, pair);
  t.is(a.state(), 'master');
  t.regex(b.dataplane.status().fault, /Two hosts are master at once: vrrp-51/);
  await network.deafen('a', false);
  await until('b is alone', async () => b.dataplane.status().fault === '', pair);
  await isSettled(pair);
});

test.serial(
  'Hosts that do not receive from each other are both master, and later one becomes backup',
  async (t) => {
    const pair = await startPair(t, vips(0, 3));
    const { network, a, b } = pair;
    for (const host of ['a', 'b']) await network.deafen(host);
    await until('both are master', async () => a.state() === 'master' && b.state() === 'master', pair);
    t.is((await a.held()).length + (await b.held()).length, 10);
    for (const host of ['a', 'b']) await network.deafen(host, false);
    await isSettled(pair);
  },
);

test.serial('A restart of the agent changes nothing', async (t) => {
  const { a, b } = await startPair(t, vips(0, 20));
  const [before, pid] = [await b.ask(), await b.vrrpPid()];
  for (const host of [a, b]) await host.restart(vips(0, 20));
  t.is(await b.vrrpPid(), pid);
  t.is((await b.ask()).lastTransition, before.lastTransition);
  t.is(b.counted.get('reload done'), undefined);
  t.is(b.state(), 'master');
});

test.serial('The agent reloads keepalived only when its file changes', async (t) => {
  const pair = await startPair(t, vips(0, 20));
  const { b } = pair;
  b.want([...vips(0, 20)].reverse());
  b.dataplane.standing([]);
  b.want(vips(0, 21));
  await until('b holds the new one', async () => (await b.held()).includes(vip(20)), pair);
  b.want(vips(0, 21));
  for (let n = 22; n < 42; n++) b.want(vips(0, n));
  await until('b holds all', async () => (await b.held()).includes(vip(40)), pair);
  await until('b is done', async () => b.dataplane.status().vips === 41, pair);
  t.is(b.counted.get('reload done'), 2);
});

test.serial('A configuration that keepalived refuses changes nothing', async (t) => {
  const refusing = await refusingKeepalived(t, vip(30));
  const pair = await startPair(t, vips(0, 5), { b: { keepalived: refusing } });
  const { b } = pair;
  const config = await b.config();
  b.want([...vips(0, 5), vip(30)]);
  await until(
    'b reports the fault',
    async () => /refuses its configuration/.test(b.dataplane.status().fault),
    pair,
  );
  t.is(await b.config(), config);
  t.is(b.counted.get('reload failed'), 1);
  b.want(vips(0, 6));
  await until('b holds the next one', async () => (await b.held()).includes(vip(5)), pair);
  await until('all is well', async () => b.dataplane.status().fault === '', pair);
  t.true((await b.config()).includes(vip(5)));
});

test.serial('keepalived never gets an address of the hosts themselves', async (t) => {
  const pair = await startPair(t, ['10.9.0.11', '10.9.0.12', '127.0.0.1', vip(0)]);
  const { a, b } = pair;
  t.deepEqual([...(await b.held())].sort(), [ANCHOR, vip(0), 'fd09::1'].sort());
  t.deepEqual(
    b.dataplane
      .status()
      .refused.map(({ address }) => address)
      .sort(),
    ['10.9.0.11', '10.9.0.12', '127.0.0.1'],
  );
  b.dataplane.standing(['maintenance']);
  await until('a is master', async () => a.state() === 'master', pair);
  for (const host of [a, b])
    t.regex(
      await host.network.run(host.name, 'ip', 'address'),
      new RegExp(`${host.network.v4(host.name)}/16`),
    );
});

test.serial(
  'Two instances with opposite priorities share the VIPs, and a single host carries all',
  async (t) => {
    const instances = (first: number, second: number) => [
      { virtualRouterId: 51, priority: first, anchors: ['10.9.0.1'] },
      { virtualRouterId: 52, priority: second, anchors: ['10.9.0.2'] },
    ];
    const options = { a: { instances: instances(250, 200) }, b: { instances: instances(200, 250) } };
    const pair = await createPair(t, options);
    const { a, b } = pair;
    for (const host of [a, b]) {
      host.want(vips(0, 40));
      await host.dataplane.start();
      host.dataplane.standing([]);
    }
    const isShared = async () =>
      a.state(0) === 'master' && b.state(1) === 'master' && a.state(1) === 'backup';
    await until('each is master of one', isShared, pair);
    const [onA, onB] = [await a.held(), await b.held()];
    t.is(onA.length + onB.length, 42);
    t.true(onA.length > 10 && onB.length > 10, `${onA.length} and ${onB.length}`);
    const withheld = (host: typeof a, vips: readonly string[]) =>
      new Set(vips.map((each) => host.dataplane.withheld(each)));
    t.deepEqual([withheld(a, onA), withheld(b, onA)], [new Set(['']), new Set(['standby'])]);
    t.deepEqual([withheld(b, onB), withheld(a, onB)], [new Set(['']), new Set(['standby'])]);
    t.is(a.dataplane.withheld('10.9.0.99'), 'unwanted');
    process.kill(await b.vrrpPid(), 'SIGSTOP');
    await until('a carries all', async () => (await a.held()).length === 42, pair);
    process.kill(await b.vrrpPid(), 'SIGCONT');
    await until('each has its own again', async () => (await isShared()) && b.state(0) === 'backup', pair);
  },
);

test.serial('A pair can speak VRRP over IPv6 and hold VIPs of both families', async (t) => {
  const instances = [{ virtualRouterId: 51, priority: 200, anchors: ['fd09::1', ANCHOR] }];
  const own = { instances, family: 'v6' } as const;
  const pair = await startPair(t, [...vips(0, 2), 'fd09::100'], { a: own, b: own });
  const { network, a, b } = pair;
  t.deepEqual([...(await b.held())].sort(), [ANCHOR, ...vips(0, 2), 'fd09::1', 'fd09::100'].sort());
  await network.cut('b');
  await until('a is master', async () => a.state() === 'master', pair);
  t.is((await a.held()).length, 5);
  await network.join('b');
  await isSettled(pair);
});

test.serial('A VIP that another process removes from the master is restored', async (t) => {
  const audited = { auditInterval: 1_000 };
  const pair = await startPair(t, vips(0, 3), { a: audited, b: audited });
  const { network, a, b } = pair;
  await network.run('b', 'ip', 'address', 'del', `${vip(1)}/32`, 'dev', 'eth0');
  const isHeld = async () => [...(await a.held()), ...(await b.held())].includes(vip(1));
  await until('the VIP is held', isHeld, pair);
  await isSettled(pair);
  t.is((await (a.state() === 'master' ? a : b).held()).length, 5);
});

test.serial('The agent removes VIPs that another process puts on the backup', async (t) => {
  const pair = await startPair(t, vips(0, 3), { a: { auditInterval: 500 } });
  const { network, a, b } = pair;
  for (const address of [`${vip(1)}/32`, '10.9.99.9/32'])
    await network.run('a', 'ip', 'address', 'add', address, 'dev', 'eth0');
  await until('the VIP is gone', async () => !(await a.held()).includes(vip(1)), pair);
  t.deepEqual(await a.held(), ['10.9.99.9']);
  t.is(a.counted.get('stale-vips'), 1);
  t.is(b.state(), 'master');
  t.is((await b.held()).length, 5);
});

test.serial('The agent writes a changed keepalived.conf again, and the VIPs stay', async (t) => {
  const pair = await startPair(t, vips(0, 10), { b: { auditInterval: 500 } });
  const { b } = pair;
  const config = await b.config();
  const { config: path } = b.paths;
  const changes = [
    () => unlink(path),
    () => writeFile(path, ''),
    () => writeFile(path, config.replaceAll(/ {4}10\.9\.1\.\S+ dev eth0\n/g, '')),
  ];
  for (const [index, change] of changes.entries()) {
    await change();
    await until('it is written again', async () => b.counted.get('reload done') === index + 1, pair);
    await until('all is well', async () => b.dataplane.status().vips === 10, pair);
    t.is(await b.config(), config);
    t.deepEqual(b.dataplane.status().refused, []);
    t.is((await b.held()).length, 12);
  }
  t.is(b.state(), 'master');
  t.is(b.counted.get('file'), changes.length);
});

test.serial(
  'A keepalived that ends after a change of its file starts with the right file before any audit',
  async (t) => {
    const pair = await startPair(t, vips(0, 10));
    const { a, b } = pair;
    await writeFile(b.paths.config, 'nonsense {');
    await b.crash();
    await until('it runs again', async () => b.state() === 'backup' && a.state() === 'master', pair);
    // Its state is known a moment before its addresses; an audit would come after 30 seconds.
    await until('it has all', async () => b.dataplane.status().vips === 10, pair, 10_000);
    t.is(b.dataplane.status().fault, '');
    t.regex(await b.config(), /10\.9\.1\.10\/32/);
  },
);

test.serial(
  'keepalived starts with the existing keepalived.conf if the file cannot be written',
  async (t) => {
    const pair = await startPair(t, vips(0, 10));
    const { b } = pair;
    await b.dataplane.close();
    await b.crash();
    // Like a full or read-only disk.
    const inTheWay = `${b.paths.config}.candidate`;
    await mkdir(inTheWay);
    await b.restart(vips(0, 11));
    await until('it runs', async () => b.state() === 'backup', pair);
    t.regex(b.dataplane.status().fault, /Cannot write/);
    t.is((await b.ask()).addresses.size, 12);
    await rmdir(inTheWay);
    await until('it has the new one', async () => b.dataplane.status().vips === 11, pair);
    await until('all is well', async () => b.dataplane.status().fault === '', pair);
  },
);

test.serial('An address that a host no longer has itself becomes a VIP again', async (t) => {
  const audited = { auditInterval: 500 };
  const pair = await createPair(t, { a: audited, b: audited });
  const { network, b } = pair;
  await network.run('b', 'ip', 'address', 'add', `${vip(1)}/24`, 'dev', 'eth0');
  b.want(vips(0, 3));
  await b.dataplane.start();
  t.deepEqual(
    b.dataplane.status().refused.map(({ address }) => address),
    [vip(1)],
  );
  await network.run('b', 'ip', 'address', 'del', `${vip(1)}/24`, 'dev', 'eth0');
  await until('keepalived has it', async () => b.dataplane.status().vips === 3, pair);
  await until('it is held', async () => (await b.held()).includes(vip(1)), pair);
});

/** Exactly one host is master, and holds the VIPs. */
async function isSettled(pair: Pair): Promise<void> {
  const { a, b } = pair;
  await until(
    'one host is master',
    async () => {
      const [onA, onB] = [await a.held(), await b.held()];
      const states = [a.state(), b.state()].sort().join();
      return (
        states === 'backup,master' &&
        onA.length > 0 === (a.state() === 'master') &&
        (onA.length === 0 || onB.length === 0)
      );
    },
    pair,
  );
}

/** A keepalived whose check fails if the file has this address. */
async function refusingKeepalived(t: ExecutionContext<unknown>, address: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const path = join(directory, 'keepalived');
  const script = `#!/bin/sh
if [ "$1" = -t ] && grep -q ' ${address}/32 ' "$3"; then echo "this address is refused" >&2; exit 4; fi
exec ${keepalivedExecutable} "$@"
`;
  await writeFile(path, script);
  await chmod(path, 0o755);
  return path;
}
