// What takes changed objects to the desired state, for the first translation of all of them and for each round of the loop.

import type { AddressKeeper } from './address-keeper/address-keeper.ts';
import type { Changes } from './changes.ts';
import type { DesiredState } from './model/desired-state.ts';
import type { Translators } from './translate/translate.ts';

export interface Flow {
  readonly changes: Changes;
  /** Only the loop changes it, after the first translation. */
  readonly desired: DesiredState;
  readonly translators: Translators;
  readonly addresses: Pick<AddressKeeper, 'assign'>;
}
