// Where AddressClaims are stored so that they outlive the agent: the cluster (claim-writer.ts) or a file (claim-file.ts).
// Values only.

import type { AddressClaim } from '../address-claim.ts';

export interface ClaimStore {
  /** These claims are not as desired. Returns at once; `onKept` reports each claim that is stored. */
  write(names: Iterable<string>): void;
  close(): Promise<void>;
}

export interface ClaimStoreOptions {
  /** undefined if there must be no claim of this name. */
  readonly desired: (name: string) => AddressClaim | undefined;
  /** The store has this claim, or none (undefined), and keeps it over a crash. */
  readonly onKept: (name: string, claim: AddressClaim | undefined) => void;
}
