// The UDP part of the demonstration: a Service that the kernel forwards, whose members change while a client asks. Rules of
// nftables need rights, which an ordinary user has in a network namespace of their own (user_namespaces(7)); this file runs
// itself there: `demo-udp.ts DIRECTORY` prints the result as JSON.

import { type ChildProcess, execFileSync, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { DemoAgent } from './demo-agent.ts';
import { writeManifest } from './demo-manifest.ts';
import { PATH } from './demo-path.ts';
import { end, endAll, start } from './demo-processes.ts';

export interface UdpReport {
  readonly queries: number;
  readonly lost: number;
  /** How often the members changed. */
  readonly changes: number;
  /** Members that answered. */
  readonly members: number;
}

const NAMESPACE =
  process.getuid?.() === 0 ? ['unshare', '--net'] : ['unshare', '--user', '--map-root-user', '--net'];
const VIP = '10.8.0.1';
const PORT = 53;
const MEMBER_PORT = 5_353;
const MEMBERS = ['10.8.1.1', '10.8.1.2', '10.8.1.3', '10.8.1.4'];
const CHANGES = 12;
const FIRST_ANSWER_MS = 30_000;
/** For the process in the namespace to end its agent, which ends its dataplane. */
const STOP_MS = 30_000;
let running: ChildProcess | undefined;
let isStopping = false;

/** What is missing, as half a sentence, or the report. */
export async function showUdp(directory: string): Promise<UdpReport | string> {
  const tools = `command -v nft && ${NAMESPACE.join(' ')} sh -c 'nft list tables && ip link set lo up'`;
  if (spawnSync('sh', ['-c', tools], { env: { ...process.env, PATH } }).status !== 0)
    return 'this machine lacks nft, or lets no user make a network namespace';
  const [program = '', ...words] = [
    ...NAMESPACE,
    process.execPath,
    fileURLToPath(import.meta.url),
    directory,
  ];
  const child = start(program, words, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, PATH },
  });
  running = child;
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const [status] = await once(child, 'close');
  if (status !== 0) throw new Error(`The UDP part has ended with status ${status}`);
  return JSON.parse(output) as UdpReport;
}

/** Ends what showUdp() has started, if it still runs. */
export async function stopUdp(): Promise<void> {
  if (running !== undefined) await end(running, STOP_MS);
}

async function inside(directory: string): Promise<UdpReport> {
  execFileSync('ip', ['link', 'set', 'lo', 'up']);
  for (const address of [VIP, ...MEMBERS])
    execFileSync('ip', ['address', 'add', `${address}/32`, 'dev', 'lo']);
  await writeFile('/proc/sys/net/ipv4/ip_forward', '1');
  for (const address of MEMBERS) await startMember(address);
  await mkdir(directory);
  const agent = new DemoAgent(directory, ['--haproxy-user=', '--haproxy-group=', '--no-landing']);
  process.on('SIGTERM', () => {
    isStopping = true;
    void agent.stop().finally(() => process.exit(1));
  });
  await agent.prepare();
  const path = join(agent.manifests, 'dns.yaml');
  await writeManifest(path, manifest(MEMBERS.slice(0, 2)));
  await agent.start();
  for (const end = performance.now() + FIRST_ANSWER_MS; (await ask()) === ''; await delay(20))
    if (performance.now() > end)
      throw new Error(`No member answers by UDP:\n${await agent.command('status')}`);

  const answers: string[] = [];
  let changes = 0;
  let isOver = false;
  const asking = (async () => {
    for (; !isOver; await delay(1)) answers.push(await ask());
  })();
  for (; changes < CHANGES; changes++) {
    await writeManifest(path, manifest([0, 1].map((at) => MEMBERS[(changes + at) % MEMBERS.length] ?? '')));
    await delay(200);
  }
  isOver = true;
  await asking;
  await agent.stop();
  return {
    queries: answers.length,
    lost: answers.filter((answer) => answer === '').length,
    changes,
    members: new Set(answers.filter(Boolean)).size,
  };
}

async function startMember(address: string): Promise<void> {
  const socket = createSocket('udp4');
  socket.on('message', (_, { address: from, port }) => socket.send(address, port, from));
  socket.bind(MEMBER_PORT, address);
  await once(socket, 'listening');
}

/**
 * No port is used twice: a query from the port of an earlier one belongs to its flow, which is cut off half a second after its
 * member has gone.
 */
let lastPort = 10_000;

/** The member that answers a query; '' without an answer in a second. */
async function ask(): Promise<string> {
  const socket = createSocket('udp4').bind(++lastPort);
  await once(socket, 'listening');
  try {
    const { promise, resolve } = Promise.withResolvers<string>();
    socket.on('message', (text) => resolve(String(text))).on('error', () => resolve(''));
    socket.connect(PORT, VIP, () => socket.send('?'));
    return await Promise.race([promise, delay(1_000, '', { ref: false })]);
  } finally {
    socket.close();
  }
}

function manifest(members: readonly string[]): string {
  const ports = [{ name: 'dns', port: PORT, protocol: 'UDP' }];
  const objects = [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'dns', annotations: { 'headgate.io/load-balancer-ips': VIP } },
      spec: { type: 'LoadBalancer', ports },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'dns-1', labels: { 'kubernetes.io/service-name': 'dns' } },
      addressType: 'IPv4',
      endpoints: members.map((address) => ({ addresses: [address] })),
      ports: [{ ...ports[0], port: MEMBER_PORT }],
    },
  ];
  return objects.map((each) => JSON.stringify(each)).join('\n---\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    console.log(JSON.stringify(await inside(process.argv[2] ?? '')));
  } catch (error) {
    // Errors while the agent ends are expected.
    if (isStopping) await new Promise(() => undefined);
    console.error((error as Error).message);
    process.exitCode = 1;
  }
  await endAll();
  process.exit();
}
