// Runs the container image on a host of a test network by buildah, with the capabilities that the chart gives; it ends with
// the network.

import { type ChildProcess, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import type { Json } from '../values/service-objects.ts';
import type { TestNetwork } from './namespaces.ts';

export interface ContainerOptions {
  /** Path of the OCI archive. */
  readonly image: string;
  readonly network: TestNetwork;
  readonly host: string;
  /** In a folder of manifests; undefined for none. */
  readonly objects?: readonly Json[];
  /** The cluster as a kubelet shows it to a pod. */
  readonly cluster?: PodAccess;
  /** More settings than the folder of manifests. */
  readonly settings?: object;
}

export interface PodAccess {
  /** Where the pod reaches the API server. */
  readonly address: string;
  readonly port: number;
  /** The account's token, and the certificate of the API server's authority in PEM. */
  readonly token: string;
  readonly ca: string;
}

/**
 * Where a pod has its account, which the agent reads at /var/run. A container engine follows that link inside the image,
 * buildah outside.
 */
const ACCOUNT = '/run/secrets/kubernetes.io/serviceaccount';
const daemonSet = new URL('../../../deploy/helm/headgate/templates/daemonset.yaml', import.meta.url);
/** The rights that the chart gives; the template has those of nodes with BGP first. */
const [WITH_BGP = [], WITHOUT_BGP = []] = [
  ...readFileSync(daemonSet, 'utf8').matchAll(/ add: \[(.*)\]/g),
].map(([, names = '']) => names.split(', '));
/** Rights that a container has by default, and the chart does not give. */
const UNUSED = ['NET_RAW', 'AUDIT_WRITE', 'FSETID', 'MKNOD', 'SETFCAP', 'SETPCAP', 'SYS_CHROOT'];
/** https://man7.org/linux/man-pages/man7/capabilities.7.html */
const NUMBERS: Readonly<Record<string, number>> = {
  CHOWN: 0,
  DAC_OVERRIDE: 1,
  FOWNER: 3,
  KILL: 5,
  SETGID: 6,
  SETUID: 7,
  NET_BIND_SERVICE: 10,
  NET_ADMIN: 12,
  NET_RAW: 13,
};
/** Files that buildah itself writes. */
const OF_BUILDAH = /^.*\/(etc\/(hosts|resolv\.conf|hostname)|run\/\.containerenv)$/gm;

export class Container {
  log = '';
  readonly #options: ContainerOptions;
  readonly #work: string;
  readonly #storage: readonly string[];
  #process: ChildProcess | undefined;
  #run: readonly string[] = [];

  static async start(t: ExecutionContext, options: ContainerOptions): Promise<Container> {
    const work = await mkdtemp(join(tmpdir(), 'hg-container-'));
    t.teardown(() => rm(work, { recursive: true, force: true }));
    const container = new Container(options, work);
    await container.#start();
    return container;
  }

  private constructor(options: ContainerOptions, work: string) {
    this.#options = options;
    this.#work = work;
    const [root, runroot] = ['storage', 'runroot'].map((name) => join(work, name)) as [string, string];
    this.#storage = ['--root', root, '--runroot', runroot, '--storage-driver', 'vfs'];
  }

  /** The process ids of its main programs, 0 for none. */
  async processes(): Promise<Record<'start' | 'agent' | 'haproxy' | 'keepalived' | 'bird', number>> {
    const { network, host } = this.#options;
    const pids = (await network.run('bridge', 'ip', 'netns', 'pids', network.netns(host))).split('\n');
    const lines = await Promise.all(
      pids.filter(Boolean).map(async (pid) => {
        const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
        return [Number(pid), line] as const;
      }),
    );
    const pidOf = (pattern: RegExp) => lines.find(([, line]) => pattern.test(line))?.[0] ?? 0;
    return {
      start: pidOf(/^\/bin\/sh\0\/usr\/bin\/headgate-start\0/),
      agent: pidOf(/agent\.mjs\0run/),
      haproxy: pidOf(/haproxy\0-W.*\/var\/lib\/headgate\/haproxy\//),
      keepalived: pidOf(/^\S*keepalived\0/),
      bird: pidOf(/^\S*bird\0-f/),
    };
  }

  /** The capabilities that a process may have, and those that the chart gives, as in /proc/PID/status. */
  async capabilities(pid: number): Promise<{ readonly had: bigint; readonly given: bigint }> {
    const [, bits = ''] = /^CapBnd:\s*(\w+)$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
    const given = this.#rights.reduce((sum, name) => sum | (1n << BigInt(NUMBERS[name] ?? 63)), 0n);
    return { had: BigInt(`0x${bits}`), given };
  }

  get #rights(): readonly string[] {
    const { settings = {} } = this.#options;
    return 'bgp' in settings ? WITH_BGP : WITHOUT_BGP;
  }

  /** The output of a command of the image, with the files and rights of the container. */
  command(...words: readonly string[]): Promise<string> {
    const { network, host } = this.#options;
    const [program = '', ...args] = [...this.#run, ...words];
    return network.run(host, program, ...args);
  }

  /** Files that it has written outside its volumes; the chart mounts the root filesystem read-only. */
  async written(): Promise<string> {
    const { network, host } = this.#options;
    const root = execFileSync('buildah', [...this.#storage, 'mount', host], { encoding: 'utf8' }).trim();
    const newer = ['-newer', join(this.#work, 'settings/headgate.yaml')];
    const found = await network.run(host, 'find', root, '-xdev', '-type', 'f', ...newer);
    return found.replaceAll(OF_BUILDAH, '').trim();
  }

  /** As a kubelet does. Resolves with the exit status. */
  async stop(): Promise<number | null> {
    const { start } = await this.processes();
    if (this.#process === undefined || start === 0) throw new Error('The container does not run');
    const exit = once(this.#process, 'exit');
    process.kill(start, 'SIGTERM');
    const [status] = await exit;
    return status;
  }

  async #start(): Promise<void> {
    const { image, network, host, objects, cluster, settings = {} } = this.#options;
    for (const folder of ['manifests', 'settings', 'state', 'run', 'account'])
      await mkdir(join(this.#work, folder));
    const text = objects?.map((each) => JSON.stringify(each)).join('\n---\n') ?? '';
    await writeFile(join(this.#work, 'manifests/objects.yaml'), text);
    const account = { token: cluster?.token, 'ca.crt': cluster?.ca, namespace: 'headgate-system' };
    for (const [name, content] of Object.entries(account))
      await writeFile(join(this.#work, 'account', name), content ?? '');
    const all = { ...(cluster ? { inCluster: true } : { manifests: ['/manifests'] }), ...settings };
    await writeFile(join(this.#work, 'settings/headgate.yaml'), JSON.stringify(all));
    const from = ['from', '--quiet', '--name', host, `oci-archive:${image}`];
    execFileSync('buildah', [...this.#storage, ...from], { stdio: ['ignore', 'ignore', 'inherit'] });
    const volumes = [
      'manifests:/manifests:ro',
      'settings:/etc/headgate:ro',
      'state:/var/lib/headgate',
      'run:/run/headgate',
      ...(cluster ? [`account:${ACCOUNT}:ro`] : []),
    ];
    const variables = cluster
      ? { KUBERNETES_SERVICE_HOST: cluster.address, KUBERNETES_SERVICE_PORT: cluster.port }
      : {};
    const flags = [
      ...UNUSED.filter((name) => !this.#rights.includes(name)).flatMap((name) => [
        '--cap-drop',
        `CAP_${name}`,
      ]),
      ...this.#rights.flatMap((name) => ['--cap-add', `CAP_${name}`]),
      ...volumes.flatMap((volume) => ['--volume', join(this.#work, volume)]),
      ...Object.entries(variables).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
    ];
    this.#run = ['buildah', ...this.#storage, 'run', '--isolation', 'chroot', ...flags, host, '--'];
    const command = ['/usr/bin/headgate-start', 'run', '--config', '/etc/headgate/headgate.yaml'];
    const namespace = ['--pid', '--mount-proc', '--fork', '--kill-child'];
    this.#process = network.start(host, 'unshare', ...namespace, ...this.#run, ...command);
    this.#process.stdout?.on('data', (data: Buffer) => {
      this.log += data;
    });
  }
}
