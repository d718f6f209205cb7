// Faults around the kernel path that are produced on purpose: an nft that answers late, an agent that is killed while it
// changes the rules, a table of connections without room.

import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { nftExecutable } from '../support/host/nft.ts';
import { askByDatagrams } from '../support/traffic/datagrams.ts';
import { DNS, dns, kernelServed, VIP } from '../support/traffic/kernel-path.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'nft', 'conntrack'], root: true });

test.serial('A nft that answers late delays changes, and costs no query and no other Service', async (t) => {
  const { host, network, agent } = await kernelServed(t);
  await agent.stop();
  const nft = join(host.directory, 'nft');
  // Half the time that the agent waits for an answer.
  const late = `while read -r line; do sleep 0.7; printf '%s\\n' "$line"; done | ${nftExecutable} -i`;
  await writeFile(
    nft,
    `#!/bin/sh\ncase "$*" in -i) ${late};; *) sleep 0.7; exec ${nftExecutable} "$@";; esac\n`,
    {
      mode: 0o755,
    },
  );
  await host.start(['--nft', nft]);
  const asking = askByDatagrams(network, VIP, DNS, { count: 300, timeoutMs: 2_000 });
  for (const members of [['m2'], ['m3']]) {
    await host.write('dns.yaml', dns(members, network));
    await host.until('the change is carried out', async () => {
      const { by } = await askByDatagrams(network, VIP, DNS, { count: 5 });
      return by.every((name) => name === members[0]);
    });
  }
  await host.until('it is served', async () => (await host.why('default/dns')).verdict === 'served');
  t.is((await host.status()).fault, '');
  const { by } = await asking;
  t.deepEqual(
    by.filter((name) => !name.startsWith('m')),
    [],
  );
});

test.serial(
  'An agent that is killed while it changes the rules leaves them whole, and the next one completes them',
  async (t) => {
    const rig = await kernelServed(t);
    const { host, network } = rig;
    let { agent } = rig;
    const asking = askByDatagrams(network, VIP, DNS, { count: 1_200, timeoutMs: 2_000 });
    const all = (members: readonly string[]) => [
      ...dns(members, network),
      ...Array.from({ length: 60 }, (_, at) => dns(members, network, {}, `dns-${at}`, 1_000 + at)).flat(),
    ];
    for (const [turn, member] of ['m1', 'm2', 'm3', 'm1'].entries()) {
      await host.write('dns.yaml', all([member]));
      // From before its first transaction to after the last one.
      await delay(60 * turn);
      await agent.kill();
      agent = await host.start();
      await host.until('all ports follow', async () => {
        const ports = [DNS, 1_000, 1_030, 1_059];
        const answers = await Promise.all(ports.map((port) => askByDatagrams(network, VIP, port)));
        return answers.every(({ by }) => by[0] === member);
      });
    }
    const { by } = await asking;
    t.deepEqual(
      by.filter((name) => !name.startsWith('m')),
      [],
    );
  },
);

test.serial(
  'A change that cannot be given to nft loads all rules, and the next one is given again',
  async (t) => {
    const { host, network, agent } = await kernelServed(t);
    const folder = join(host.runtimeDir, 'nftables');
    await rm(folder, { recursive: true });
    const change = async (member: string): Promise<void> => {
      await host.write('dns.yaml', dns([member], network));
      await host.until('it is carried out', async () => {
        const { by } = await askByDatagrams(network, VIP, DNS);
        return by[0] === member;
      });
    };
    // A load that was under way when the folder went carries out a change, too, and leaves it away.
    for (const member of ['m2', 'm3', 'm2']) if (!existsSync(folder)) await change(member);
    t.true(existsSync(folder));
    const from = agent.log.length;
    await change('m1');
    t.false(agent.hasLogged('Cannot change the rules of nftables', from));
    t.is((await host.status()).fault, '');
  },
);

for (const [what, script, fault] of [
  ['is another program, which does nothing', 'exit 0', /cannot be read back: nft ended with exit status 0/],
  [
    'answers as if it had done all, and does nothing',
    `case "$*" in -i) exec ${nftExecutable} -i;; *) exit 0;; esac`,
    /the kernel does not have them: is ".*" the program of nftables\?$/,
  ],
] as const)
  test.serial(`A nft that ${what}: no port is served, and one line says why`, async (t) => {
    const { host, network, agent } = await kernelServed(t);
    await agent.stop();
    await network.run('a', nftExecutable, 'flush', 'ruleset');
    const nft = join(host.directory, 'nft');
    await writeFile(nft, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const next = await host.launch(['--nft', nft]);
    await host.until('it is told', async () => {
      const { verdict, reasons } = await host.why('default/dns');
      return verdict === 'not served' && reasons.some((each) => fault.test(each));
    });
    const { by } = await askByDatagrams(network, VIP, DNS, { count: 2, timeoutMs: 300 });
    t.false(by.some((name) => name.startsWith('m')));
    t.regex((await host.status()).fault, fault);
    // Some attempts later.
    await delay(5_000);
    t.is((await host.why('default/dns')).verdict, 'not served');
    const lines = next.text.split('\n').filter((line) => /rules of nftables|kernel path are not/.test(line));
    t.is(lines.length, 1, lines.join('\n'));
  });

test.serial('A table of connections without room is a fault until there is room', async (t) => {
  const { host, network } = await kernelServed(t);
  const limit = Number(await network.run('a', 'sysctl', '-n', 'net.netfilter.nf_conntrack_max'));
  // One datagram each to nearly as many ports as there is room for entries, which live for 30 s without an answer.
  const script = `
    const ports = 60_000, flows = Math.ceil(${limit} * 0.97 / 60_000);
    for (let n = 0; n < flows; n++) {
      const socket = require('dgram').createSocket('udp4').on('error', () => 0);
      socket.bind(0, () => {
        let port = 2_000;
        const more = () => {
          for (let each = 0; each < 500 && port < 2_000 + ports; each++) socket.send('?', port++, '10.99.0.1', () => 0);
          if (port < 2_000 + ports) setTimeout(more, 5); else socket.close();
        };
        more();
      });
    }`;
  await network.run('client', 'ip', 'route', 'add', '10.99.0.1/32', 'via', network.v4('a'));
  await network.run('a', 'ip', 'route', 'add', '10.99.0.1/32', 'via', network.v4('m1'));
  await once(network.start('client', process.execPath, '-e', script), 'close');
  const isFull = async () => /nearly all of its \d+ entries/.test((await host.status()).fault);
  await host.until('it is a fault', isFull, 40_000);
  t.true((await askByDatagrams(network, VIP, DNS)).by[0]?.startsWith('m'), 'it still serves');
  await network.run('a', 'conntrack', '-F');
  await host.until('the fault is over', async () => !(await isFull()), 40_000);
});
