// Gateway API in a real API server: its definitions, and a GatewayClass.

import { until } from '../basics/until.ts';
import { collectionOf, objectsIn } from './deploy.ts';
import { type Kube, kubePrograms } from './kube.ts';

const GROUP = '/apis/gateway.networking.k8s.io/v1';

/**
 * Returns once the API server serves every version of every definition. `version`: of the standard channel, `1.4.0`; without
 * it, those of the experimental channel of the version that the agent supports.
 */
export async function deployGatewayApi(kube: Kube, version = ''): Promise<void> {
  const name = version === '' ? 'gateway-crds.yaml' : `gateway-crds-${version}.yaml`;
  const { [name]: file = '' } = await kubePrograms([name]);
  // The other objects of this file guard upgrades.
  const definitions = (await objectsIn(file)).filter(isDefinition);
  await Promise.all(definitions.map((each) => kube.must('POST', collectionOf(each), each)));
  const paths = definitions.flatMap(({ spec: { group, names, versions } }) =>
    versions.filter(({ served }) => served).map(({ name }) => `/apis/${group}/${name}/${names.plural}`),
  );
  for (const path of paths)
    await until(`${path} is served`, async () => (await kube.api('GET', path)).status === 200);
}

export function createGatewayClass(kube: Kube, name: string, controllerName: string): Promise<unknown> {
  return kube.must('POST', `${GROUP}/gatewayclasses`, {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'GatewayClass',
    metadata: { name },
    spec: { controllerName },
  });
}

interface Definition {
  readonly apiVersion: string;
  readonly kind: 'CustomResourceDefinition';
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly names: { readonly plural: string };
    readonly versions: readonly { readonly name: string; readonly served: boolean }[];
  };
}

function isDefinition(object: { readonly kind: string }): object is Definition {
  return object.kind === 'CustomResourceDefinition';
}
