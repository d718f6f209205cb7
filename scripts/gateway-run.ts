// Runs the conformance suite of Gateway API: gateway-run.ts FOLDER AGENT FLAG... Starts a cluster with Headgate (AGENT run)
// beside it, and the suite with these flags. Must have network, mount and PID namespaces of its own: see isolated-run.ts.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { finished } from 'node:stream/promises';
import {
  CONTROLLER_NAME,
  GATEWAY_CLASS,
  PROGRAMS,
  SETTINGS,
  STATIC_ADDRESS,
  UNUSABLE_ADDRESS,
} from '../test/conformance/gateway-tests.ts';
import { createGatewayClass, deployGatewayApi } from '../test/support/kube/gateway-api.ts';
import { kubePrograms } from '../test/support/kube/kube.ts';
import { WholeCluster } from '../test/support/kube/whole-cluster.ts';

/** In the suite's log, which has the results only at its end. */
const STARTED = /^=== RUN +TestConformance\/([^/]+)$/;

const [folder = '', agent = '', ...flags] = process.argv.slice(2);
const programs = await kubePrograms(PROGRAMS);
const { 'gateway.test': tests = '', 'echo-basic': echo = '', coredns = '' } = programs;
const images = { 'echo-basic': echo, coredns };
const cluster = await WholeCluster.start({ folder, nodes: ['node-1'], programs, images, settings: SETTINGS });
await deployGatewayApi(cluster.kube);
await createGatewayClass(cluster.kube, GATEWAY_CLASS, CONTROLLER_NAME);
const headgate = await cluster.startHeadgate(agent);
headgate.once('exit', (code, signal) => console.log(`Headgate ended (${signal ?? code})`));
const suite = spawn(
  tests,
  [
    '-test.v',
    `-gateway-class=${GATEWAY_CLASS}`,
    `-usable-address=${STATIC_ADDRESS}`,
    `-unusable-address=${UNUSABLE_ADDRESS}`,
    `-report-output=${join(folder, 'report.yaml')}`,
    ...flags,
  ],
  { env: { ...process.env, KUBECONFIG: cluster.kube.kubeconfig }, stdio: ['ignore', 'pipe', 'inherit'] },
);
const closed = once(suite, 'close');
const log = createWriteStream(join(folder, 'suite.log'));
for await (const line of createInterface(suite.stdout)) {
  log.write(`${line}\n`);
  const [, name] = STARTED.exec(line) ?? [];
  if (name !== undefined) console.log(`Started: ${name}`);
}
const [status] = await closed;
log.end();
await finished(log);
// All others end with this process, which is the first of its namespace.
process.exit(status ?? 1);
