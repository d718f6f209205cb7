// What the translators of Services, Gateways and Ingresses read.

import type { DesiredState } from '../../model/desired-state.ts';
import type { TranslateSettings } from '../translate-settings.ts';
import type { AddressesView } from './service-vips.ts';
import type { CertificatesView } from './tls.ts';

/** `View`: the part of the store of objects. */
export interface TranslatorOptions<View> {
  readonly cluster: View;
  /** The settings in force. */
  readonly settings: () => TranslateSettings;
  /** The addresses that an owner has from address pools. */
  readonly ofPools: AddressesView;
  readonly certificates: CertificatesView;
  readonly desired: Pick<DesiredState, 'portOwners'>;
}
