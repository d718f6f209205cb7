// An object whose status the agent writes, as it is in the API: its versions, and its status as text, because thousands of
// routes are kept and few are compared at one time.

import { isMapping } from '../base/validate.ts';
import type { ParentReference } from '../model/object-status.ts';
import { GATEWAY_CONTROLLER } from './class-names.ts';

export interface CurrentObject {
  /** '' for objects of the whole cluster. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number;
  /** JSON. */
  readonly status: string;
  /** Of an object that cannot be read: what it is attached to, see unreadableParents(). */
  readonly unreadableParents?: readonly ParentReference[];
}

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
  };
}

/** Its status has an entry of this agent. */
export function hasOwnEntry({ status }: Pick<CurrentObject, 'status'>): boolean {
  return status.includes(`"controllerName":"${GATEWAY_CONTROLLER}"`);
}
