// A reference of a route to a parent as its status repeats it: fields that are absent in the object stay absent. Pure.

import type { ParentReference as Written } from '../../model/object-status.ts';
import type { ParentReference } from './route-objects.ts';

export function writtenReference({
  group,
  kind,
  namespace,
  name,
  sectionName,
  port,
}: ParentReference): Written {
  return {
    group,
    kind,
    ...(namespace === '' ? {} : { namespace }),
    name,
    ...(sectionName === '' ? {} : { sectionName }),
    ...(port === 0 ? {} : { port }),
  };
}
