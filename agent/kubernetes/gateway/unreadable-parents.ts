// What an object that cannot be read is attached to, as far as that part of it can be read: its status is written all the same.
// Pure.
// Why: docs/design/decisions/0058-unreadable-objects.md

import { isMapping } from '../../base/validate.ts';
import type { ParentReference, StatusKind } from '../../model/object-status.ts';
import { GATEWAY_GROUP, objectName } from './names.ts';
import { MAX_PARENTS, parentRef } from './route-schemas.ts';
import { writtenReference } from './written-reference.ts';

/** For a Gateway its GatewayClass; entries that cannot be read are left out. */
export function unreadableParents(kind: StatusKind, json: unknown): readonly ParentReference[] {
  const spec = isMapping(json) && isMapping(json.spec) ? json.spec : {};
  if (kind === 'Gateway') {
    const name = objectName().judge(spec.gatewayClassName);
    return name.success ? [{ group: GATEWAY_GROUP, kind: 'GatewayClass', name: name.data }] : [];
  }
  if (kind === 'ListenerSet') return referencesOf([spec.parentRef]);
  return kind.endsWith('Route') ? referencesOf(spec.parentRefs) : [];
}

function referencesOf(json: unknown): readonly ParentReference[] {
  if (!Array.isArray(json)) return [];
  return json.slice(0, MAX_PARENTS).flatMap((each) => {
    const read = parentRef.judge(each);
    return read.success ? [writtenReference(read.data)] : [];
  });
}
