// The machine of an amphora as the routes ask for it. Versions are read once a minute at most: the controller asks before each
// push.

import { type Clock, systemClock } from '../../base/clock.ts';
import { type MachineDetails, machineDetails } from './machine.ts';
import { type ProgramVersions, programVersions } from './program-versions.ts';

export interface AmphoraMachine {
  readonly hostname: string;
  versions(): Promise<ProgramVersions>;
  details(): Promise<MachineDetails>;
}

const FRESH_MS = 60_000;

/** `haproxy` and `keepalived`: programs. */
export function amphoraMachine(
  hostname: string,
  haproxy: string,
  keepalived: string,
  clock: Clock = systemClock,
): AmphoraMachine {
  let last: { readonly at: number; readonly versions: Promise<ProgramVersions> } | undefined;
  return {
    hostname,
    versions: () => {
      const now = clock.monotonic();
      if (last === undefined || now - last.at > FRESH_MS) {
        const versions = programVersions(haproxy, keepalived);
        last = { at: now, versions };
        versions.catch(() => {
          last = undefined;
        });
      }
      return last.versions;
    },
    details: machineDetails,
  };
}
