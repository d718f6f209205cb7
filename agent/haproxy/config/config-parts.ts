// What keeps haproxy.cfg at the desired state, as those who start, replace and watch HAProxy have it.

import type { CandidateMaker } from './candidate.ts';
import type { ConfigFile } from './config-file.ts';
import type { Persister } from './persister.ts';
import type { Quarantine } from './quarantine.ts';

export interface ConfigParts {
  readonly file: ConfigFile;
  /** Prepares the file for a start or a reload. */
  readonly maker: CandidateMaker;
  /** Writes the file for a crash or a reboot. */
  readonly persister: Persister;
  /** Load balancers and addresses that cannot be served now. */
  readonly quarantine: Quarantine;
}
