// The rights that an agent's account needs besides those to list, as in deploy/kubernetes/rbac.yaml, and the request that
// checks one of them (a SelfSubjectAccessReview, which the API server does not store). Pure.
// https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/self-subject-access-review-v1/

import { isMapping } from '../../base/validate.ts';
import { ADDRESS_GROUP } from '../object-names.ts';
import { groupOf } from '../parse-object.ts';
import { isStatusKind } from '../status-kinds.ts';
import type { ApiRequest } from './kubernetes-api.ts';
import { classKindOf, gatewayDefinitions, type ReflectedKind, resourcesOf } from './reflected-kinds.ts';

export interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  /** '' for all. */
  readonly namespace: string;
  /** '' for any. */
  readonly name: string;
}

/**
 * `namespaces`: empty for all. `kinds`: those that the API server has and the agent reads. `classes`: those of which an object
 * names this agent as its controller.
 */
export function neededRights({
  namespaces,
  lease,
  kinds,
  classes,
}: {
  readonly namespaces: readonly string[];
  readonly lease: { readonly namespace: string; readonly name: string };
  readonly kinds: ReadonlySet<ReflectedKind>;
  readonly classes: ReadonlySet<string>;
}): readonly Right[] {
  const places = namespaces.length === 0 ? [''] : namespaces;
  const ofLease = { namespace: lease.namespace };
  return [
    ...places.flatMap((namespace) => [
      ...rights('', 'services', ['get', 'watch'], { namespace }),
      ...rights('', 'services/status', ['patch'], { namespace }),
      ...rights('discovery.k8s.io', 'endpointslices', ['watch'], { namespace }),
      ...rights('events.k8s.io', 'events', ['create', 'patch'], { namespace }),
    ]),
    ...rights('', 'nodes', ['watch']),
    ...(kinds.has('AddressPool') && kinds.has('AddressClaim') ? OF_POOLS : []),
    ...(kinds.has('BGPPeer') ? OF_PEERS : []),
    ...[...kinds].flatMap((kind) => rightsOfPolicies(kind, namespaces)),
    ...[...kinds].flatMap((kind) => rightsOfClasses(kind, namespaces, classes)),
    ...(kinds.has('BGPPeer') ? rights('', 'secrets', ['list', 'watch'], ofLease) : []),
    ...rights('coordination.k8s.io', 'leases', ['create'], ofLease),
    ...rights('coordination.k8s.io', 'leases', ['get', 'update'], { ...ofLease, name: lease.name }),
  ];
}

/** To read the certificates of a namespace, '' for all. */
export function certificateRights(namespace: string): readonly Right[] {
  return rights('', 'secrets', ['list', 'watch'], { namespace });
}

/** To read the Pods of a namespace. */
export function podRights(namespace: string): readonly Right[] {
  return rights('', 'pods', ['list', 'watch'], { namespace });
}

export function rightRequest({ verb, ...of }: Right, timeoutMs: number): ApiRequest {
  return {
    method: 'POST',
    path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { verb, ...of } },
    },
    timeoutMs,
  };
}

/** undefined if it is not an answer to `rightRequest()`. */
export function isAllowed(answer: unknown): boolean | undefined {
  if (!isMapping(answer) || !isMapping(answer.status)) return undefined;
  const { allowed } = answer.status;
  return typeof allowed === 'boolean' ? allowed : undefined;
}

/** `patch services/status of namespace shop`. */
export function rightWords({ verb, resource, subresource, namespace }: Right): string {
  const what = subresource === '' ? resource : `${resource}/${subresource}`;
  return `${verb} ${what}${namespace === '' ? '' : ` of namespace ${namespace}`}`;
}

function rights(
  group: string,
  path: string,
  verbs: readonly string[],
  { namespace = '', name = '' }: { readonly namespace?: string; readonly name?: string } = {},
): readonly Right[] {
  const [resource = '', subresource = ''] = path.split('/');
  return verbs.map((verb) => ({ verb, group, resource, subresource, namespace, name }));
}

/** With the setting `enforceNetworkPolicy`. */
function rightsOfPolicies(kind: ReflectedKind, namespaces: readonly string[]): readonly Right[] {
  if (kind !== 'NetworkPolicy' && kind !== 'Pod') return [];
  return resourcesOf(kind, namespaces, '').flatMap(({ apiVersion, plural, namespace }) =>
    rights(groupOf(apiVersion), plural, ['watch'], { namespace }),
  );
}

/** The rights for a kind of the Gateway API, or for Ingresses. */
function rightsOfClasses(
  kind: ReflectedKind,
  namespaces: readonly string[],
  classes: ReadonlySet<string>,
): readonly Right[] {
  const ofClass = classKindOf(kind);
  if (ofClass === undefined) return [];
  return resourcesOf(kind, namespaces, '').flatMap(({ apiVersion, plural, namespace }) => {
    const group = groupOf(apiVersion);
    const watch = rights(group, plural, ['watch'], { namespace });
    if (!isStatusKind(kind) || !classes.has(ofClass)) return watch;
    const definition = kind === 'GatewayClass' ? OF_DEFINITIONS : [];
    return [
      ...watch,
      ...rights(group, plural, ['get'], { namespace }),
      ...rights(group, `${plural}/status`, ['patch'], { namespace }),
      ...definition,
    ];
  });
}

/** One for all: the rule in deploy/kubernetes/rbac.yaml names them together. */
const OF_DEFINITIONS = rights('apiextensions.k8s.io', 'customresourcedefinitions', ['get'], {
  name: gatewayDefinitions()[0] ?? '',
});

const OF_POOLS = [
  ...rights(ADDRESS_GROUP, 'addresspools', ['watch']),
  ...rights(ADDRESS_GROUP, 'addresspools/status', ['patch']),
  ...rights(ADDRESS_GROUP, 'addressclaims', ['get', 'watch', 'create', 'update', 'delete']),
];

const OF_PEERS = [
  ...rights(ADDRESS_GROUP, 'bgppeers', ['watch']),
  ...rights(ADDRESS_GROUP, 'bgppeers/status', ['patch']),
];
