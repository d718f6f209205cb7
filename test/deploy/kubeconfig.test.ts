// deploy/kubeconfig.sh on a real cluster: what it prints is a kubeconfig of the agents' account.

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ava from 'ava';
import { ApiClient } from '../../agent/kubernetes/api/client.ts';
import { requires } from '../support/basics/requirements.ts';
import { deploy, NAMESPACE } from '../support/kube/deploy.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { kubectlOf, type Tool } from '../support/kube/kubectl.ts';
import { certificate } from '../support/traffic/certificate.ts';

const { programs = [] } = kubeNeeds('kube-controller-manager', 'kubectl');
const test = requires(ava, { programs: [...programs, 'openssl'] });

const script = fileURLToPath(new URL('../../deploy/kubeconfig.sh', import.meta.url));
const ACCOUNT = `system:serviceaccount:${NAMESPACE}:headgate`;

let directory: string;
let kube: Kube;
let kubectl: Tool;

test.before(async (t) => {
  directory = await mkdtemp(join(tmpdir(), 'headgate-kubeconfig-'));
  await certificate(directory, 'signer');
  const [crt, key] = ['crt', 'key'].map((end) => join(directory, `signer.${end}`));
  kube = await startKube(t, {
    controllerManager: true,
    controllers: ['serviceaccount-token-controller', 'certificatesigningrequest-signing-controller'],
    controllerFlags: [`--cluster-signing-cert-file=${crt}`, `--cluster-signing-key-file=${key}`],
    flags: [`--client-ca-file=${crt}`],
  });
  kubectl = await kubectlOf(kube);
});

test.after.always(async () => {
  await kube?.stop();
  await rm(directory, { recursive: true, force: true });
});

test.serial('kubeconfig.sh names the command that creates the account if there is none', async (t) => {
  const { status, stdout, stderr } = await run();
  t.is(status, 1);
  t.is(stdout, '');
  t.regex(
    stderr,
    /There is no account headgate-system\/headgate: run kubectl apply -k deploy\/kubernetes first/,
  );
  await deploy(kube);
});

for (const credential of ['secret', 'certificate', 'token'])
  test.serial(
    `The API server takes the kubeconfig with a ${credential} for the account of the agents`,
    async (t) => {
      const { status, stdout, stderr } = await run('--credential', credential);
      t.is(status, 0, stderr);
      t.is(await userOf(stdout, credential), ACCOUNT);
    },
  );

test.serial(
  'kubeconfig.sh prints nothing of the administrator, and keeps CA and name of the API server',
  async (t) => {
    const { stdout } = await run('--server', 'https://192.0.2.10:6443');
    t.false(stdout.includes(kube.adminToken));
    t.regex(stdout, /"server":"https:\/\/192\.0\.2\.10:6443"/);
    t.true(stdout.includes(Buffer.from(kube.ca).toString('base64')));
  },
);

for (const [flag, value, said] of [
  ['--credential', 'password', /--credential "password" is not secret, certificate or token/],
  ['--server', 'https://x"y', /--server "https:\/\/x"y" is not a URL/],
  ['--namespace', 'a b', /--namespace "a b" is not the name of a namespace/],
  ['--hours', '5', /--hours is for a certificate or a token/],
] as const)
  test.serial(`kubeconfig.sh refuses ${flag} ${value} and names what is allowed`, async (t) => {
    const { status, stdout, stderr } = await run(flag, value);
    t.deepEqual([status, stdout], [1, '']);
    t.regex(stderr, said);
  });

function run(...args: readonly string[]): Promise<{ status: number; stdout: string; stderr: string }> {
  const env = { ...process.env, KUBECTL: kubectl.path, KUBECONFIG: kube.kubeconfig };
  return new Promise((resolve) => {
    execFile('sh', [script, ...args], { env }, (error, stdout, stderr) => {
      resolve({ status: Number(error?.code ?? 0), stdout, stderr });
    });
  });
}

/** The name that the API server knows the kubeconfig's user by. */
async function userOf(kubeconfig: string, name: string): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, kubeconfig, { mode: 0o600 });
  const client = new ApiClient({ credentials: { kind: 'Kubeconfig', path }, version: '0.0.0' });
  try {
    const { body } = await client.request({
      method: 'POST',
      path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
    });
    return (body as { status: { userInfo: { username: string } } }).status.userInfo.username;
  } finally {
    client.close();
  }
}
