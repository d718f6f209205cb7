// The contract of a dataplane, such as HAProxy or the kernel's, in four parts; who uses a dataplane takes the part that it needs.
// Only the wiring imports from a dataplane's own folder.

import type { Continuity } from './continuity.ts';
import type { Forwarder, Plan } from './forwarder.ts';
import type { Lifecycle } from './lifecycle.ts';
import type { Meter } from './meter.ts';

/** `S`: the settings of the dataplane. */
export interface Dataplane<P extends Plan = Plan, S = never>
  extends Forwarder<P>,
    Lifecycle<S>,
    Meter,
    Continuity {}
