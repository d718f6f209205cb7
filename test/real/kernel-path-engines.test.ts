// Listeners of TCP that change from HAProxy to the kernel and back, with real connections.

import { writeFileSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { rulesFile } from '../../agent/nftables/paths.ts';
import { requires } from '../support/basics/requirements.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { nftExecutable, signalNft } from '../support/host/nft.ts';
import { askByConnections, askByDatagrams, UDP_MEMBER_PORT } from '../support/traffic/datagrams.ts';
import { dns, kernelServed, VIP } from '../support/traffic/kernel-path.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'nft', 'conntrack'], root: true });

const MEMBERS = ['m1', 'm2', 'm3'];

/** As kernelServed(), with members that answer connections, and manifests of a Service that the given engine serves. */
async function webServed(t: Parameters<typeof kernelServed>[0]) {
  const rig = await kernelServed(t);
  for (const member of MEMBERS) rig.network.serve(member, UDP_MEMBER_PORT);
  const web = (engine: string) =>
    dns(MEMBERS, rig.network, { ports: [{ name: 'dns-tcp', port: 80 }] }, 'dns', 80, {
      'headgate.io/engine': engine,
    });
  return { ...rig, web };
}

/** Whether HAProxy listens at the port. */
async function listens(network: TestNetwork): Promise<boolean> {
  return (await network.try('a', 'ss', '-Hltn', 'sport', '=', '80')).stdout !== '';
}

/** Opens connections one after the other until the function is called, which gives all different answers. */
function askedAllTheTime(t: ExecutionContext, network: TestNetwork): () => Promise<readonly string[]> {
  let isOver = false;
  t.teardown(() => {
    isOver = true;
  });
  const asking = (async () => {
    const answers = new Set<string>();
    while (!isOver) for (const each of await askByConnections(network, VIP, 80, 200)) answers.add(each);
    return [...answers].sort();
  })();
  return () => {
    isOver = true;
    return asking;
  };
}

test.serial('TCP goes to the kernel and back without a failed connection', async (t) => {
  const { host, network, web } = await webServed(t);
  await host.write('dns.yaml', web('haproxy'));
  await host.until('HAProxy answers', async () => (await network.whoServes(VIP, 80)) !== '');
  const asking = askByConnections(network, VIP, 80, 3_000);
  const moved = async (engine: string): Promise<void> => {
    await host.write('dns.yaml', web(engine));
    await host.until(`it is with ${engine}`, async () => {
      const isWithHaproxy = await listens(network);
      return isWithHaproxy === (engine === 'haproxy') && (await host.why('default/dns')).verdict === 'served';
    });
  };
  for (const engine of ['kernel', 'haproxy', 'kernel']) await moved(engine);
  const answers = await asking;
  t.deepEqual([...new Set(answers)].sort(), MEMBERS);
  const { stdout } = await network.try('a', 'conntrack', '-L', '-p', 'tcp', '--orig-dst', VIP);
  t.regex(
    stdout,
    new RegExp(`src=${network.v4('m1')} dst=${network.v4('a')} `),
    'the kernel has forwarded some',
  );
});

test.serial(
  'After each change of the engine a listener counts from 0, and each connection once',
  async (t) => {
    const { host, network, agent, web } = await webServed(t);
    const connections = async (): Promise<number> =>
      (await agent.metrics())('headgate_listener_connections_total', { port: '80', family: 'v4' });
    await host.write('dns.yaml', web('haproxy'));
    await host.until('HAProxy answers', async () => (await network.whoServes(VIP, 80)) !== '');
    await askByConnections(network, VIP, 80, 5);
    await host.until('they are counted', async () => (await connections()) >= 5);
    for (const engine of ['kernel', 'haproxy', 'kernel', 'haproxy']) {
      await host.write('dns.yaml', web(engine));
      await host.until(`${engine} counts`, async () => (await connections()) === 0);
      t.is((await askByConnections(network, VIP, 80, 3)).length, 3);
      await host.until('they are counted', async () => (await connections()) === 3);
    }
  },
);

test.serial(
  'Neither a reload of HAProxy nor a load of all rules ends what the other does not serve yet',
  async (t) => {
    const { host, network, agent: first, web } = await webServed(t);
    await first.stop();
    const [nft, slow, settings] = ['nft', 'slow', 'headgate.yaml'].map((name) =>
      join(host.directory, name),
    ) as [string, string, string];
    const wait = `case "$*" in *-f*) while [ -e ${slow} ]; do sleep 0.1; done;; esac`;
    await writeFile(nft, `#!/bin/sh\n${wait}\nexec ${nftExecutable} "$@"\n`, { mode: 0o755 });
    await writeFile(settings, 'reloadInterval: 100ms\n');
    await host.write('dns.yaml', web('haproxy'));
    await host.write('other.yaml', dns(['m1'], network, {}, 'other', 54));
    const agent = await host.start(['--nft', nft, '--config', settings]);
    const loads = () =>
      agent.log.filter(({ message }) => /loading all of them|Loads the rules of nftables/.test(message))
        .length;
    const isServed = async (service: string) => (await host.why(service)).verdict === 'served';
    await host.until('HAProxy answers', async () => (await network.whoServes(VIP, 80)) !== '');
    await host.until(
      'all is served',
      async () => (await isServed('default/dns')) && (await isServed('default/other')),
    );
    const answers = askedAllTheTime(t, network);

    // The kernel is slow, and HAProxy is reloaded meanwhile.
    writeFileSync(slow, '');
    await signalNft(network, 'STOP');
    await host.write('dns.yaml', web('kernel'));
    await host.until('all rules are to be loaded', async () => loads() > 0);
    const reloads = await host.reloads();
    await writeFile(settings, 'reloadInterval: 100ms\nmaxConnections: 600\n');
    agent.signal('SIGHUP');
    await host.until('HAProxy is reloaded', async () => (await host.reloads()) > reloads);
    t.true(await listens(network));
    await rm(slow);
    await host.until(
      'the kernel serves',
      async () => !(await listens(network)) && (await isServed('default/dns')),
    );

    // HAProxy is late, and all rules are loaded meanwhile.
    await writeFile(settings, 'reloadInterval: 10m\nmaxConnections: 600\n');
    agent.signal('SIGHUP');
    const before = loads();
    await host.until('it is in effect', async () => agent.log.some(({ to }) => to === '10m'));
    await host.write('dns.yaml', web('haproxy'));
    await signalNft(network, 'STOP');
    await host.write('other.yaml', dns(['m2'], network, {}, 'other', 54));
    await host.until('all rules are to be loaded', async () => loads() > before);
    await host.until('they are loaded', async () => (await askByDatagrams(network, VIP, 54)).by[0] === 'm2');
    t.false(await listens(network));
    await writeFile(settings, 'reloadInterval: 100ms\nmaxConnections: 600\n');
    agent.signal('SIGHUP');
    await host.until(
      'HAProxy serves',
      async () => (await listens(network)) && (await isServed('default/dns')),
    );
    t.deepEqual(await answers(), MEMBERS);
  },
);

test.serial('An engine that changes while no agent runs costs no connection', async (t) => {
  const { host, network, agent, web } = await webServed(t);
  await host.write('dns.yaml', web('haproxy'));
  await host.until('HAProxy answers', async () => (await network.whoServes(VIP, 80)) !== '');
  const answers = askedAllTheTime(t, network);
  let running = agent;
  for (const engine of ['kernel', 'haproxy', 'kernel']) {
    await running.stop();
    await host.write('dns.yaml', web(engine));
    running = await host.start();
    await host.until(`it is with ${engine}`, async () => {
      const isWithHaproxy = await listens(network);
      return isWithHaproxy === (engine === 'haproxy') && (await host.why('default/dns')).verdict === 'served';
    });
  }
  t.deepEqual(await answers(), MEMBERS);
});

test.serial(
  'An agent that is killed before it has written its rules leaves the kernel what it serves',
  async (t) => {
    const { host, network, agent, web } = await webServed(t);
    const other = dns(['m1'], network, {}, 'other', 54);
    await host.write('other.yaml', other);
    await host.write('dns.yaml', web('haproxy'));
    await host.until('HAProxy answers', async () => (await network.whoServes(VIP, 80)) !== '');
    const path = rulesFile(host.stateDir);
    const written = async () => (await readFile(path, 'utf8').catch(() => '')).includes('default:other');
    await host.until('the rules are written', written);
    const before = await readFile(path);
    await host.write('dns.yaml', web('kernel'));
    await host.until('it is with the kernel', async () => !(await listens(network)));
    const answers = askedAllTheTime(t, network);
    await agent.kill();
    await writeFile(path, before);
    await host.write('dns.yaml', web('haproxy'));
    await host.start();
    await host.until(
      'it is with HAProxy',
      async () => (await listens(network)) && (await host.why('default/dns')).verdict === 'served',
    );
    t.deepEqual(await answers(), MEMBERS);
  },
);
