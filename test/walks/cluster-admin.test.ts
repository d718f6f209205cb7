// A cluster administrator who has never seen Headgate follows docs/getting-started-cluster.md.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { kubeNeeds } from '../support/kube/kube.ts';
import { walk } from './walk.ts';

const { programs = [] } = kubeNeeds('kube-controller-manager', 'kubectl');
const test = requires(ava, { haproxy: true, root: true, programs: [...programs, 'unshare', 'curl', 'make'] });

test('The commands of the page lead from a cluster to an answer of a pod, and leave nothing behind', async (t) => {
  const output = await walk(t, 'cluster-admin');
  t.regex(output, /\naddresspool\.headgate\.io\/public condition met\n/);
  t.regex(output, /\nservice\/web condition met\n/);
  t.regex(output, /\nweb +LoadBalancer +\S+ +192\.0\.2\.100 +80:/);
  t.regex(output, /\$ curl .*\nweb-[a-z0-9]+-[a-z0-9]+\n/);
  t.true(output.endsWith('Left are the Services kubernetes\n'));
});
