// Starts a real Kubernetes control plane (etcd, kube-apiserver and optionally kube-controller-manager) with RBAC, in
// a directory of its own on free ports of the loopback, for tests. Its faults are real, too: restart, freeze,
// compaction, an etcd that has lost everything. test/support/kube/kube-assets.sh brings the programs.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { Deadline } from '../basics/deadline.ts';
import { freePort } from '../basics/free-port.ts';
import type { Needs } from '../basics/requirements.ts';

export interface KubeOptions {
  readonly controllerManager?: boolean;
  /** Controllers beside those of endpoints, namespaces and Deployments. */
  readonly controllers?: readonly string[];
  /** More flags of kube-controller-manager. */
  readonly controllerFlags?: readonly string[];
  /** Where the API server listens, for clients in other network namespaces; the loopback by default. */
  readonly address?: string;
  /** Name of a user → its groups; its token is the name and `-token`. `admin` always exists. */
  readonly users?: Readonly<Record<string, readonly string[]>>;
  /** `1.34` to `1.37`: the API server behaves as that version. */
  readonly emulatedVersion?: string;
  /** Keeps a record of every write, for `writes()`. */
  readonly audit?: boolean;
  /** The ranges of cluster IPs; one of each family makes it dual-stack. */
  readonly clusterIPs?: string;
  /** More flags of kube-apiserver. */
  readonly flags?: readonly string[];
}

/** A write that the API server has answered. */
export interface AuditedWrite {
  readonly user: string;
  readonly verb: 'create' | 'update' | 'patch' | 'delete';
  /** `services/status`, `leases`. */
  readonly resource: string;
  /** The object's; '' before it has one. */
  readonly name: string;
  readonly status: number;
}

export interface KubeResponse {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: any answer of the API server, for tests to read.
  readonly body: any;
}

interface Question {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly contentType?: string | undefined;
  readonly agent: https.Agent | false;
}

const assets = fileURLToPath(new URL('kube-assets.sh', import.meta.url));

const LOOPBACK = '127.0.0.1';
const ADMIN_TOKEN = 'admin-token';
/** The names in each API server's certificate. */
const SERVER_NAME = 'kubernetes.default.svc';
/** The Service through which pods reach the API server. */
const OWN_OBJECTS = [
  '/api/v1/namespaces/default/services/kubernetes',
  '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes',
];
const SECOND = 'second-kube-apiserver';

/** An audit policy: writes only, when they are answered. */
const AUDIT = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'Metadata', verbs: ['create', 'update', 'patch', 'delete'] }],
};

/** The control plane of a test; the administrator's client is independent of the agent's. */
export class Kube {
  readonly directory: string;
  readonly url: string;
  readonly etcdUrl: string;
  /** The CA certificate of the API server, PEM. */
  ca = '';
  /** The administrator's. */
  readonly kubeconfig: string;
  readonly adminToken = ADMIN_TOKEN;
  readonly #options: KubeOptions;
  readonly #programs: Readonly<Record<string, string>>;
  readonly #etcdPeerUrl: string;
  readonly #processes = new Map<string, ChildProcess>();
  #etcdCount = 0;
  #agent = new https.Agent({ keepAlive: true, maxSockets: 16 });

  private constructor(
    directory: string,
    ports: readonly [number, number, number],
    programs: Readonly<Record<string, string>>,
    options: KubeOptions,
  ) {
    this.directory = directory;
    this.url = `https://${options.address ?? LOOPBACK}:${ports[0]}`;
    this.etcdUrl = `http://127.0.0.1:${ports[1]}`;
    this.#etcdPeerUrl = `http://127.0.0.1:${ports[2]}`;
    this.kubeconfig = join(directory, 'kubeconfig');
    this.#programs = programs;
    this.#options = options;
  }

  /** Resolves when the API server (and the controller manager, if there is one) is ready. */
  static async start(options: KubeOptions = {}): Promise<Kube> {
    const names = [
      'etcd',
      'kube-apiserver',
      ...(options.controllerManager ? ['kube-controller-manager'] : []),
    ];
    const programs = await kubePrograms(names);
    const directory = await mkdtemp(join(tmpdir(), 'headgate-kube-'));
    const kube = new Kube(directory, await freePorts(), programs, options);
    try {
      await kube.#prepare();
      await kube.#startEtcd();
      await kube.startApiServer();
      await kube.writeKubeconfig(kube.kubeconfig, { token: ADMIN_TOKEN });
      if (options.controllerManager) await kube.#startControllerManager();
      return kube;
    } catch (error) {
      await kube.stop();
      throw error;
    }
  }

  /** A request of the administrator; any status is an answer. */
  async api(method: string, path: string, body?: unknown, contentType?: string): Promise<KubeResponse> {
    return this.#ask(this.url, { method, path, body, contentType, agent: this.#agent });
  }

  /** `api` that must succeed: gives the body. */
  async must(
    method: string,
    path: string,
    body?: unknown,
    contentType?: string,
  ): Promise<KubeResponse['body']> {
    const response = await this.api(method, path, body, contentType);
    if (response.status >= 300) {
      throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(response.body).slice(0, 500)}`);
    }
    return response.body;
  }

  /** `server`: for instance of a proxy in front of this one. */
  async writeKubeconfig(
    path: string,
    { server = this.url, ...user }: { server?: string; token?: string; tokenFile?: string },
  ): Promise<void> {
    const ca = Buffer.from(this.ca).toString('base64');
    const cluster = { server, 'certificate-authority-data': ca, 'tls-server-name': SERVER_NAME };
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'test',
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
      clusters: [{ name: 'test', cluster }],
      users: [{ name: 'test', user }],
    };
    await writeFile(path, JSON.stringify(config), { mode: 0o600 });
  }

  /** A token of a service account, by TokenRequest; creates a missing account. */
  async serviceAccountToken(namespace: string, name: string, seconds = 3600): Promise<string> {
    const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    await this.api('POST', accounts, { metadata: { name } });
    const { status } = await this.must('POST', `${accounts}/${name}/token`, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: seconds },
    });
    return status.token;
  }

  /** Removes all revisions but the last; the API server's cache of them goes only with a restart. */
  async compact(): Promise<void> {
    const { header } = await this.#etcd('/v3/kv/range', { key: Buffer.from('\0').toString('base64') });
    await this.#etcd('/v3/kv/compaction', { revision: header.revision, physical: true });
  }

  /** Like a crash: no connection is closed in order. */
  async killApiServer(): Promise<void> {
    await this.#end('kube-apiserver', 'SIGKILL');
    this.#agent.destroy();
    this.#agent = new https.Agent({ keepAlive: true, maxSockets: 16 });
  }

  async startApiServer(): Promise<void> {
    await this.#startApiServer('kube-apiserver', this.#options.address ?? LOOPBACK);
    await this.#until('kube-apiserver', async () => {
      this.ca = await readFile(join(this.directory, 'certificates/apiserver.crt'), 'utf8');
      return this.#answers('/readyz');
    });
    // The API server creates these a moment after it is ready: no test must take that for its own change.
    for (const path of OWN_OBJECTS) await this.#until('kube-apiserver', () => this.#answers(path));
  }

  /** As `api`, to the server at `url` over a connection of its own, as kubectl does. */
  once(url: string, method: string, path: string, body?: unknown): Promise<KubeResponse> {
    return this.#ask(url, { method, path, body, agent: false });
  }

  /** Another API server of the same cluster, on another address and the same port. */
  async startSecondApiServer(address: string): Promise<void> {
    await this.#startApiServer(SECOND, address);
    const url = `https://${address}:${new URL(this.url).port}`;
    await this.#until(SECOND, async () => (await this.once(url, 'GET', '/readyz')).status === 200);
  }

  killSecondApiServer(): Promise<void> {
    return this.#end(SECOND, 'SIGKILL');
  }

  /** The requests of all clients that the API server has answered since its start; a list is a LIST, not a GET. */
  async requests({ resource, verb }: { readonly resource: string; readonly verb: string }): Promise<number> {
    const text: string = await this.must('GET', '/metrics');
    const counted = text
      .split('\n')
      .filter((line) => line.startsWith('apiserver_request_total{'))
      .filter((line) => line.includes(`resource="${resource}"`) && line.includes(`verb="${verb}"`));
    return counted.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
  }

  /** Every write so far, in order; needs `audit`. */
  async writes(): Promise<readonly AuditedWrite[]> {
    const text = await readFile(join(this.directory, 'audit.log'), 'utf8');
    return text
      .trimEnd()
      .split('\n')
      .map((line) => {
        const { user, verb, objectRef = {}, responseStatus = {} } = JSON.parse(line);
        const { resource, subresource, name = '' } = objectRef;
        const path = subresource === undefined ? resource : `${resource}/${subresource}`;
        return { user: user.username, verb, resource: path, name, status: responseStatus.code };
      });
  }

  async restartApiServer(): Promise<void> {
    await this.killApiServer();
    await this.startApiServer();
  }

  /** etcd loses everything: revisions begin again, and UIDs differ. */
  async restartWithEmptyEtcd(): Promise<void> {
    await this.killApiServer();
    await this.#end('etcd', 'SIGKILL');
    await this.#startEtcd();
    await this.startApiServer();
  }

  /** Connections stay open without answers. */
  freezeApiServer(): void {
    this.#processes.get('kube-apiserver')?.kill('SIGSTOP');
  }

  thawApiServer(): void {
    this.#processes.get('kube-apiserver')?.kill('SIGCONT');
  }

  /** Stops all programs and removes the directory; may be called twice. */
  async stop(): Promise<void> {
    this.#agent.destroy();
    await Promise.all([...this.#processes.keys()].reverse().map((name) => this.#end(name, 'SIGKILL')));
    await rm(this.directory, { recursive: true, force: true, maxRetries: 3 });
  }

  async #prepare(): Promise<void> {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const users = Object.entries({ admin: ['system:masters'], ...this.#options.users });
    const tokens = users.map(([name, groups]) => `${name}-token,${name},${name},"${groups.join(',')}"\n`);
    const files = {
      'accounts.key': privateKey.export({ type: 'pkcs1', format: 'pem' }),
      'accounts.pub': publicKey.export({ type: 'spki', format: 'pem' }),
      'tokens.csv': tokens.join(''),
      'audit.yaml': JSON.stringify(AUDIT),
    };
    for (const [name, text] of Object.entries(files)) {
      await writeFile(join(this.directory, name), text, { mode: 0o600 });
    }
  }

  async #startEtcd(): Promise<void> {
    await this.#spawn('etcd', [
      `--data-dir=${join(this.directory, `etcd-${++this.#etcdCount}`)}`,
      `--listen-client-urls=${this.etcdUrl}`,
      `--advertise-client-urls=${this.etcdUrl}`,
      `--listen-peer-urls=${this.#etcdPeerUrl}`,
      `--initial-advertise-peer-urls=${this.#etcdPeerUrl}`,
      `--initial-cluster=default=${this.#etcdPeerUrl}`,
      '--unsafe-no-fsync',
      '--log-level=warn',
    ]);
    await this.#until('etcd', async () => {
      const { status } = await answerOf(http.request(`${this.etcdUrl}/health`, { agent: false }));
      return status === 200;
    });
  }

  async #startApiServer(name: string, address: string): Promise<void> {
    const at = (file: string) => join(this.directory, file);
    const version = this.#options.emulatedVersion;
    await this.#spawn(name, [
      `--etcd-servers=${this.etcdUrl}`,
      `--cert-dir=${at('certificates')}`,
      `--secure-port=${new URL(this.url).port}`,
      `--bind-address=${address}`,
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${at('accounts.pub')}`,
      `--service-account-signing-key-file=${at('accounts.key')}`,
      `--token-auth-file=${at('tokens.csv')}`,
      '--authorization-mode=RBAC',
      `--service-cluster-ip-range=${this.#options.clusterIPs ?? '10.96.0.0/16'}`,
      // The default allows 2,768.
      '--service-node-port-range=20000-39999',
      '--disable-admission-plugins=ServiceAccount',
      '--allow-privileged=true',
      ...(version === undefined ? [] : [`--emulated-version=${version}`]),
      ...(this.#options.audit
        ? [`--audit-policy-file=${at('audit.yaml')}`, `--audit-log-path=${at('audit.log')}`]
        : []),
      ...(this.#options.flags ?? []),
    ]);
  }

  async #answers(path: string): Promise<boolean> {
    return (await this.api('GET', path)).status === 200;
  }

  async #ask(url: string, question: Question): Promise<KubeResponse> {
    const { method, path, body, contentType, agent } = question;
    const text = body === undefined ? undefined : JSON.stringify(body);
    const patch = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const request = https.request(`${url}${path}`, {
      method,
      ca: this.ca,
      servername: SERVER_NAME,
      agent,
      headers: {
        authorization: `Bearer ${ADMIN_TOKEN}`,
        ...(text === undefined
          ? {}
          : { 'content-type': contentType ?? patch, 'content-length': Buffer.byteLength(text) }),
      },
    });
    try {
      return await answerOf(request, text);
    } catch (error) {
      // The API server closed an idle connection at the moment it was used again.
      if (request.reusedSocket && (error as NodeJS.ErrnoException).code === 'ECONNRESET')
        return this.#ask(url, question);
      throw error;
    }
  }

  async #startControllerManager(): Promise<void> {
    const controllers = [
      'endpointslice-controller',
      'endpointslice-mirroring-controller',
      'namespace-controller',
      'serviceaccount-controller',
      'garbage-collector-controller',
      'deployment-controller',
      'replicaset-controller',
      ...(this.#options.controllers ?? []),
    ];
    await this.#spawn('kube-controller-manager', [
      `--kubeconfig=${this.kubeconfig}`,
      `--controllers=${controllers.join(',')}`,
      '--leader-elect=false',
      '--secure-port=0',
      `--service-account-private-key-file=${join(this.directory, 'accounts.key')}`,
      `--root-ca-file=${join(this.directory, 'certificates/apiserver.crt')}`,
      ...(this.#options.controllerFlags ?? []),
    ]);
    // The first thing that it creates in a new cluster.
    await this.#until('kube-controller-manager', async () => {
      const account = '/api/v1/namespaces/default/serviceaccounts/default';
      return (await this.api('GET', account)).status === 200;
    });
  }

  async #etcd(path: string, body: unknown): Promise<KubeResponse['body']> {
    const text = JSON.stringify(body);
    const request = http.request(`${this.etcdUrl}${path}`, { method: 'POST', agent: false });
    const response = await answerOf(request, text);
    if (response.status !== 200) throw new Error(`etcd: ${JSON.stringify(response.body)}`);
    return response.body;
  }

  async #spawn(name: string, args: readonly string[]): Promise<void> {
    // It ends with this thread, even if the test runner kills that.
    const script = 'exec setpriv --pdeathsig KILL "$0" "$@" >>"$LOG" 2>&1';
    const child = spawn(
      'sh',
      ['-c', script, this.#programs[name.replace(SECOND, 'kube-apiserver')] ?? name, ...args],
      {
        stdio: 'ignore',
        env: { ...process.env, LOG: join(this.directory, `${name}.log`) },
      },
    );
    this.#processes.set(name, child);
    await once(child, 'spawn');
  }

  async #until(name: string, isReady: () => Promise<boolean>): Promise<void> {
    const child = this.#processes.get(name);
    const deadline = new Deadline(60_000, 150);
    while (!(await isReady().catch(() => false))) {
      const hasEnded = child?.exitCode !== null || child.signalCode !== null;
      if (hasEnded || deadline.isOver) {
        const log = await readFile(join(this.directory, `${name}.log`), 'utf8').catch(() => '');
        throw new Error(`${name} ${hasEnded ? 'ended' : 'is not ready'}: ${log.slice(-2000)}`);
      }
      await delay(50);
    }
  }

  async #end(name: string, signal: NodeJS.Signals): Promise<void> {
    const child = this.#processes.get(name);
    this.#processes.delete(name);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill(signal);
    await exit;
  }
}

/** For the tests of one file, in a hook before them; the hook may have to build the programs. */
export async function startKube(
  t: Pick<ExecutionContext<unknown>, 'timeout'>,
  { leaseNamespace = false, ...options }: KubeOptions & { readonly leaseNamespace?: boolean } = {},
): Promise<Kube> {
  t.timeout(KUBE_BUILD_TIMEOUT);
  const kube = await Kube.start(options);
  // The namespace of the agents' Lease, as in deploy/.
  if (leaseNamespace)
    await kube.must('POST', '/api/v1/namespaces', { metadata: { name: 'headgate-system' } });
  return kube;
}

/** For `requires()`: Go is needed only to build the programs. */
export function kubeNeeds(...more: readonly string[]): Needs {
  const built = spawnSync('sh', [assets, '--no-build', 'etcd', 'kube-apiserver', ...more]);
  if (built.status === 0) return { programs: ['setpriv'] };
  // A test run that could not build them has reported that.
  if (process.env.KUBE_BUILD === 'no') return { programs: ['setpriv', 'kube-apiserver'] };
  const canBuild = spawnSync('sh', [assets, '--can-build', ...more]).status === 0;
  return { programs: ['setpriv', ...(canBuild ? [] : ['go'])] };
}

/** Milliseconds for a hook that may have to build them first. */
const KUBE_BUILD_TIMEOUT = 30 * 60_000;

/** Name → path; builds missing programs, which may take minutes, and reports that on stderr. */
export async function kubePrograms(names: readonly string[]): Promise<Record<string, string>> {
  const child = spawn('sh', [assets, ...names], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  let stdout = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) stdout += chunk;
  const [status] = await ended;
  if (status !== 0) throw new Error(`Cannot bring ${names.join(', ')}: kube-assets.sh has status ${status}`);
  const paths = stdout.trimEnd().split('\n');
  return Object.fromEntries(names.map((name, index) => [name, paths[index] ?? '']));
}

async function answerOf(request: http.ClientRequest, body?: string): Promise<KubeResponse> {
  request.setTimeout(30_000, () => request.destroy(new Error('No answer for 30 s')));
  request.end(body);
  const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
  let text = '';
  for await (const chunk of answer.setEncoding('utf8')) text += chunk;
  const isJson = answer.headers['content-type']?.startsWith('application/json');
  return { status: answer.statusCode ?? 0, body: isJson ? JSON.parse(text) : text };
}

/** Neither etcd nor the API server accepts port 0. */
async function freePorts(): Promise<[number, number, number]> {
  return [await freePort(), await freePort(), await freePort()];
}
