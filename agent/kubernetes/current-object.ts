// An object whose status the agent writes, as it is in the API: its versions, and its status as text, because thousands of
// routes are kept and few are compared at one time.

import { isMapping } from '../base/validate.ts';
import type { ParentReference } from '../model/object-status.ts';
import { GATEWAY_CONTROLLER } from './class-names.ts';

/** The name by which the API server keeps what the agent writes. */
export const FIELD_MANAGER = 'headgate';

export interface CurrentObject {
  /** '' for objects of the whole cluster. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number;
  /** JSON. */
  readonly status: string;
  /** The addresses in the status of this Ingress or Gateway are from this agent, or one that ran before: no other has written them. */
  readonly hasOwnAddresses?: true;
  /** What an object that cannot be read is attached to, see unreadableParents(). */
  readonly unreadableParents?: readonly ParentReference[];
}

const HAS_OWN_ADDRESSES = { hasOwnAddresses: true } as const;

/** undefined if it is not an object from an API. */
export function readCurrentObject(json: unknown): CurrentObject | undefined {
  if (!isMapping(json) || !isMapping(json.metadata)) return undefined;
  const { namespace = '', name, uid, resourceVersion, generation } = json.metadata;
  if (typeof namespace !== 'string' || typeof name !== 'string') return undefined;
  if (typeof uid !== 'string' || typeof resourceVersion !== 'string') return undefined;
  return {
    namespace,
    name,
    uid,
    resourceVersion,
    generation: typeof generation === 'number' ? generation : 0,
    status: JSON.stringify(isMapping(json.status) ? json.status : {}),
    ...(hasOwnAddresses(json.metadata.managedFields) ? HAS_OWN_ADDRESSES : {}),
  };
}

/** The API server keeps who has written which field (https://kubernetes.io/docs/reference/using-api/server-side-apply/). */
function hasOwnAddresses(managedFields: unknown): boolean {
  if (!Array.isArray(managedFields)) return false;
  return managedFields.some((entry: unknown) => {
    if (!isMapping(entry) || entry.manager !== FIELD_MANAGER || entry.subresource !== 'status') return false;
    const status = isMapping(entry.fieldsV1) ? entry.fieldsV1['f:status'] : undefined;
    if (!isMapping(status)) return false;
    const ofIngress = status['f:loadBalancer'];
    return 'f:addresses' in status || (isMapping(ofIngress) && 'f:ingress' in ofIngress);
  });
}

/** The addresses in the status of an Ingress or Gateway that are from this agent. */
export function ownAddresses(current: CurrentObject | undefined): readonly string[] {
  if (current?.hasOwnAddresses !== true) return [];
  const { addresses = [], loadBalancer } = JSON.parse(current.status) as {
    readonly addresses?: readonly { readonly value?: string }[];
    readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string }[] };
  };
  const shown = [
    ...addresses.map(({ value }) => value),
    ...(loadBalancer?.ingress ?? []).map(({ ip }) => ip),
  ];
  return shown.filter((address) => address !== undefined);
}

/** Its status has an entry, or addresses, of this agent. */
export function hasOwnEntry({
  status,
  hasOwnAddresses: has,
}: Pick<CurrentObject, 'status' | 'hasOwnAddresses'>): boolean {
  return has === true || status.includes(`"controllerName":"${GATEWAY_CONTROLLER}"`);
}
