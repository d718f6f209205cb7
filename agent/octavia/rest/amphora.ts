// What the routes act on: the parts of an amphora, and what only the REST API has.

import type { LoadBalancers } from '../load-balancers/load-balancers.ts';
import type { AmphoraMachine } from '../machine/amphora-machine.ts';
import type { AmphoraDatagrams, AmphoraNetwork, AmphoraVrrp } from '../parts.ts';

export interface Amphora {
  readonly loadBalancers: LoadBalancers;
  readonly network: AmphoraNetwork;
  readonly vrrp: AmphoraVrrp;
  readonly datagrams: AmphoraDatagrams;
  readonly machine: AmphoraMachine;
  readonly own: OwnFiles;
}

/** The files of the amphora itself that the controller may replace. */
export interface OwnFiles {
  /** amphora-agent.conf. Errors: SETTINGS_INVALID, FILE_WRITE. */
  replaceSettings(text: string): Promise<void>;
  /** The REST API's certificate and key. Errors: OCTAVIA_INVALID if they are no pair, FILE_WRITE. */
  replaceCertificate(pem: string): Promise<void>;
}
