// What deploy/kubernetes installs into a cluster, by kubectl on a real API server.

import { fileURLToPath } from 'node:url';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { kubectlOf, type Tool } from '../support/kube/kubectl.ts';

const test = requires(ava, kubeNeeds('kubectl'));
const folder = fileURLToPath(new URL('../../deploy/kubernetes', import.meta.url));
const OBJECTS = [
  'namespace/headgate-system',
  'customresourcedefinition.apiextensions.k8s.io/addressclaims.headgate.io',
  'customresourcedefinition.apiextensions.k8s.io/addresspools.headgate.io',
  'customresourcedefinition.apiextensions.k8s.io/bgppeers.headgate.io',
  'serviceaccount/headgate',
  'clusterrole.rbac.authorization.k8s.io/headgate',
  'clusterrolebinding.rbac.authorization.k8s.io/headgate',
  'role.rbac.authorization.k8s.io/headgate',
  'rolebinding.rbac.authorization.k8s.io/headgate',
].sort();

let kube: Kube;
let kubectl: Tool;

test.before(async (t) => {
  kube = await startKube(t);
  kubectl = await kubectlOf(kube);
});

test.after.always(() => kube?.stop());

test.serial('`kubectl apply -f install.yaml` creates every object in one run', async (t) => {
  const said = await kubectl(['apply', '-f', `${folder}/install.yaml`, '-o', 'name']);
  t.deepEqual(said.trim().split('\n').sort(), OBJECTS);
});

test.serial('`kubectl apply -k` finds nothing to change after install.yaml, and nothing else', async (t) => {
  const said = await kubectl(['apply', '-k', folder]);
  const lines = said.trim().split('\n').sort();
  t.deepEqual(
    lines,
    OBJECTS.map((name) => `${name} unchanged`),
  );
});

test.serial('`kubectl delete -k` removes every object', async (t) => {
  await kubectl(['delete', '--wait=false', '-k', folder]);
  const { status } = await kube.api('GET', '/apis/rbac.authorization.k8s.io/v1/clusterroles/headgate');
  t.is(status, 404);
});
