// Two amphorae in the namespace of this process, driven by Octavia's own driver: Headgate, and Octavia's own agent.

import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { askOnce } from '../../agent/haproxy/socket/ask-once.ts';
import { run } from '../pair/network.ts';
import { readCounter } from '../support/agent.ts';
import { ended, start } from '../support/processes.ts';
import type { Bench } from '../support/row.ts';
import type { Scratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';
import { processTree, residentMemory } from '../support/usage.ts';

/** The Python that has Octavia's packages. */
const PYTHON = '/usr/bin/python3';
const CONTROLLER = fileURLToPath(new URL('../../test/support/octavia/controller.py', import.meta.url));
const REFERENCE = fileURLToPath(new URL('../../test/support/octavia/reference_agent.py', import.meta.url));
const HEADGATE = fileURLToPath(new URL('../../bin/headgate', import.meta.url));
const AMPHORA = '11111111-2222-4333-8444-555555555555';
const LOAD_BALANCER = '21111111-2222-4333-8444-55555555555';
const LISTENER = '31111111-2222-4333-8444-55555555555';
const POOL = '41111111-2222-4333-8444-55555555555';
const UDP_LISTENER = '61111111-2222-4333-8444-55555555555';
const UDP_POOL = '71111111-2222-4333-8444-55555555555';

export interface AmphoraMember {
  readonly id: string;
  readonly address: string;
  readonly port: number;
  readonly weight?: number;
}

export interface Push {
  readonly members: readonly AmphoraMember[];
  readonly isSticky?: boolean;
  /** Members of a listener of UDP at UDP_PORT; undefined: there is none. */
  readonly udpMembers?: readonly AmphoraMember[];
}

export const UDP_PORT = 8_053;

/** An amphora with one HTTP listener at `vip`, port 8080. */
export interface Side {
  readonly name: string;
  readonly vip: string;
  readonly port: number;
  /** Carries a push out with the driver; resolves with its milliseconds. Errors: the driver's. */
  readonly push: (push: Push) => Promise<number>;
  /** The pid of HAProxy's worker that answers at the load balancer's socket. */
  readonly worker: () => Promise<number>;
  /** The processes of HAProxy: master and workers. */
  readonly haproxyPids: () => readonly number[];
  /** Resident memory of the agent and its helpers without HAProxy, in MB. */
  readonly agentMemory: () => number;
  /** The sum of a metric over its labels; NaN of Octavia's own agent, which has none. */
  readonly metric: (name: string) => Promise<number>;
}

export async function startSides(
  scratch: Scratch,
  bench: Bench,
): Promise<{ readonly headgate: Side; readonly octavia: Side }> {
  const tls = certificates(scratch);
  // HAProxy is started in a namespace by its name, which is a mount: private, so that it ends with this process.
  const namespace = `hg-${basename(scratch.directory)}`;
  run(['ip', 'netns', 'attach', namespace, String(process.pid)]);
  scratch.defer(() => void run(['ip', 'netns', 'delete', namespace]));
  const octavia = await startSide(scratch, 'octavia', 0, tls, async ({ folder, port }) => {
    const units = `${folder}/units`;
    mkdirSync(units);
    const child = spawn(PYTHON, [REFERENCE], { stdio: ['pipe', 'ignore', 'inherit'] });
    scratch.defer(() => ended(child));
    const paths = { base: `${folder}/base`, certificates: `${folder}/certs`, folder: units };
    const own = { serverCertificate: tls.server, clientAuthority: tls.authority };
    child.stdin?.write(`${JSON.stringify({ ...paths, ...own, port, namespace })}\n`);
    return { pid: child.pid ?? 0 };
  });
  const headgate = await startSide(scratch, 'headgate', 1, tls, async ({ folder, port }) => {
    const file = `${folder}/amphora-agent.conf`;
    writeFileSync(file, settingsOf({ folder, port, tls, haproxy: bench.haproxy }));
    const [state, runtime] = [`${folder}/s`, `${folder}/r`];
    for (const each of [state, runtime]) mkdirSync(each);
    const words = ['run', '--amphora', file, '--state-dir', state, '--runtime-dir', runtime];
    words.push('--netns', namespace, '--listen', '127.0.0.1:0', '--haproxy', bench.haproxy);
    return start(scratch, 'headgate', HEADGATE, words);
  });
  return { headgate, octavia };
}

interface Tls {
  readonly authority: string;
  readonly server: string;
  readonly client: string;
}

interface Settings {
  readonly folder: string;
  readonly port: number;
}

async function startSide(
  scratch: Scratch,
  name: string,
  at: number,
  tls: Tls,
  startAgent: (settings: Settings) => Promise<{ readonly pid: number; readonly output?: () => string }>,
): Promise<Side> {
  const folder = scratch.path(name.slice(0, 2)); // paths of sockets are short
  for (const each of ['', '/base', '/certs']) mkdirSync(`${folder}${each}`);
  const [vip, port] = [`10.20.0.${1 + at}`, 9_443 + at];
  run(['ip', 'address', 'replace', `${vip}/32`, 'dev', 'lo']);
  const { pid, output } = await startAgent({ folder, port });
  const id = `${LOAD_BALANCER}${at}`;
  const ask = startController(scratch, { port, tls, folder });
  const socket = `${folder}/base/${id}.sock`;
  const info = (): Promise<string> => askOnce(socket, 'show info');
  const worker = async (): Promise<number> => Number(/^Pid: (\d+)/m.exec(await info())?.[1]);
  await until(`The agent of ${name} answers`, async () => {
    const { error } = await ask({ call: 'client', method: 'get_info' });
    return error === undefined;
  });
  const haproxyPids = (): readonly number[] => {
    const pids = run(['pgrep', '-f', `haproxy.* ${folder}/`])
      .trim()
      .split('\n')
      .filter(Boolean)
      .map(Number);
    return pids.filter((each) => /haproxy/.test(commandOf(each)));
  };
  scratch.defer(() => {
    for (const each of haproxyPids()) end(each);
  });
  return {
    name,
    vip,
    port: 8_080,
    push: async ({ members, isSticky = false, udpMembers }) => {
      const persistence = isSticky ? { persistence: { type: 'SOURCE_IP' } } : {};
      const pool = { id: `${POOL}${at}`, members, ...persistence };
      const listeners: object[] = [{ id: `${LISTENER}${at}`, port: 8_080, pool }];
      if (udpMembers !== undefined) {
        const udpPool = { id: `${UDP_POOL}${at}`, protocol: 'UDP', members: udpMembers };
        listeners.push({ id: `${UDP_LISTENER}${at}`, protocol: 'UDP', port: UDP_PORT, pool: udpPool });
      }
      const began = performance.now();
      const { error } = await ask({ call: 'push', loadBalancer: { id, vip, listeners } });
      if (error !== undefined) throw new Error(`${name}: the push failed: ${error}`);
      return performance.now() - began;
    },
    worker,
    haproxyPids,
    metric: async (metric) => (output === undefined ? Number.NaN : readCounter(output(), metric)),
    agentMemory: () => {
      const others = new Set(haproxyPids());
      const own = processTree(pid).filter((each) => !others.has(each));
      return own.reduce((sum, each) => sum + residentMemory(each), 0);
    },
  };
}

interface ControllerAnswer {
  readonly error?: string;
  readonly result?: unknown;
}

function startController(
  scratch: Scratch,
  { port, tls, folder }: Settings & { readonly tls: Tls },
): (order: object) => Promise<ControllerAnswer> {
  const child = spawn(PYTHON, [CONTROLLER], { stdio: ['pipe', 'pipe', 'ignore'] });
  scratch.defer(() => ended(child));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const send = (value: object): void => void child.stdin.write(`${JSON.stringify(value)}\n`);
  const paths = { base: `${folder}/base`, certificates: `${folder}/certs` };
  send({
    address: '127.0.0.1',
    port,
    clientCertificate: tls.client,
    serverAuthority: tls.authority,
    amphora: AMPHORA,
    ...paths,
  });
  const ready = lines.next();
  return async (order) => {
    await ready;
    send(order);
    const { value, done } = await lines.next();
    if (done === true) throw new Error('The controller has ended');
    return JSON.parse(value) as ControllerAnswer;
  };
}

function settingsOf({
  folder,
  port,
  tls,
  haproxy,
}: Settings & { readonly tls: Tls; readonly haproxy: string }): string {
  return `[haproxy_amphora]
base_path = ${folder}/base
base_cert_dir = ${folder}/certs
bind_host = 127.0.0.1
bind_port = ${port}
haproxy_cmd = ${haproxy.startsWith('/') ? haproxy : '/usr/sbin/haproxy'}
[health_manager]
controller_ip_port_list = 127.0.0.1:5555
heartbeat_interval = 10
heartbeat_key = insecure
[amphora_agent]
agent_server_ca = ${tls.authority}
agent_server_cert = ${tls.server}
amphora_id = ${AMPHORA}
[controller_worker]
loadbalancer_topology = SINGLE
`;
}

/** One authority for both ends. */
function certificates(scratch: Scratch): Tls {
  const folder = scratch.path('tls');
  mkdirSync(folder);
  const openssl = (...words: string[]): void => void run(['openssl', ...words]);
  const [authority, key] = [`${folder}/ca.pem`, `${folder}/ca.key`];
  openssl(
    ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key],
    ...['-out', authority, '-days', '2', '-subj', '/CN=authority'],
  );
  const extensions = `${folder}/extensions`;
  writeFileSync(extensions, `subjectAltName=DNS:${AMPHORA}\n`);
  const [server = '', client = ''] = ['server', 'client'].map((name) => {
    const [own, request, signed] = ['key', 'csr', 'crt'].map((end) => `${folder}/${name}.${end}`);
    openssl(
      ...['req', '-newkey', 'rsa:2048', '-nodes', '-keyout', `${own}`],
      ...['-out', `${request}`, '-subj', `/CN=${name}`],
    );
    openssl(
      ...['x509', '-req', '-in', `${request}`, '-CA', authority, '-CAkey', key, '-CAcreateserial'],
      ...['-days', '2', '-extfile', extensions, '-out', `${signed}`],
    );
    const both = `${folder}/${name}.pem`;
    writeFileSync(both, `${readFileSync(`${signed}`, 'utf8')}${readFileSync(`${own}`, 'utf8')}`, {
      mode: 0o600,
    });
    return both;
  });
  return { authority, server, client };
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'latin1');
  } catch {
    return ''; // it has ended
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

/** Why the rows of an amphora cannot be measured here; '' if they can. */
export function missingForAmphora(): string {
  const { status } = spawnSync(PYTHON, ['-c', 'import octavia'], { stdio: 'ignore' });
  return status === 0 ? '' : 'python3-octavia is missing';
}
