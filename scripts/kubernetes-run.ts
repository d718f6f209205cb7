// Runs Kubernetes' own tests of one role: kubernetes-run.ts FOLDER ROLE NAME... Starts a cluster with Headgate beside it, and
// the tests with these full names. Must have network, mount and PID namespaces of its own: see isolated-run.ts.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { PROGRAMS, ROLES } from '../test/conformance/kubernetes-tests.ts';
import { kubePrograms } from '../test/support/kube/kube.ts';
import { WholeCluster } from '../test/support/kube/whole-cluster.ts';
import { root } from './check.ts';

/** The test of health check ports asks for three. */
const NODES = ['node-1', 'node-2', 'node-3'];
/** The tests mostly wait. */
const TESTS_AT_ONCE = 4;

const [folder = '', roleName, ...names] = process.argv.slice(2);
const role = ROLES.find(({ name }) => name === roleName);
if (role === undefined)
  throw new Error(`"${roleName}" is not a role of test/conformance/kubernetes-tests.ts`);
const programs = await kubePrograms(PROGRAMS);
const { agnhost = '', ginkgo = '', 'e2e.test': tests = '', kubectl } = programs;
const images = { agnhost, pause: agnhost };
const { settings, isGateway = false } = role;
const cluster = await WholeCluster.start({ folder, nodes: NODES, programs, images, settings, isGateway });
await cluster.startHeadgate(join(root, 'bin/headgate'));
const escaped = names.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
const suite = spawn(
  ginkgo,
  [
    `--procs=${TESTS_AT_ONCE}`,
    '--no-color',
    `--focus=(${escaped.join('|')})$`,
    `--output-dir=${folder}`,
    '--json-report=report.json',
    tests,
    '--',
    '--provider=skeleton',
    `--kubeconfig=${cluster.kube.kubeconfig}`,
    `--kubectl-path=${kubectl}`,
    `--num-nodes=${NODES.length}`,
  ],
  { stdio: 'inherit' },
);
const [status] = await once(suite, 'exit');
// All others end with this process, which is the first of its namespace.
process.exit(status ?? 1);
