// Which addresses the statuses of an owner show, and so which ones DNS publishes.

import type { OwnerKey } from '../../model/load-balancer.ts';

export interface Publishing {
  /** The addresses of the owner may be published, see AddressKeeper and Announced; what is published stays until then. */
  readonly isKept: (key: OwnerKey) => boolean;
  /** As the setting publishUnready says: also before they are served. */
  readonly unready: () => boolean;
}
