// Where AddressClaims are kept so that they outlive the agent: the cluster (claim-writer.ts) or a file (claim-file.ts).
// Values only.

import type { AddressClaim } from '../address-claim.ts';

export interface ClaimStore {
  /** These are not what they shall be; returns at once, and says with `onKept` when they are. */
  write(names: Iterable<string>): void;
  close(): Promise<void>;
}

export interface ClaimStoreOptions {
  /** As the claim of the name shall be; undefined where there shall be none. */
  readonly wanted: (name: string) => AddressClaim | undefined;
  /** The store has the claim so, or has none (undefined), and keeps it over a crash. */
  readonly onKept: (name: string, claim: AddressClaim | undefined) => void;
}
