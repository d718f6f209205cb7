// Records on disk which owner listens on which address and port, so that an owner that is created while no agent runs does
// not take them.

import { join } from 'node:path';
import type { DiskFile } from '../base/disk-file.ts';
import { parseAddress } from '../base/ip.ts';
import { listOf, object, oneOf, textReader, wholeNumber } from '../base/validate.ts';
import type { Log } from '../host/log.ts';
import type { DesiredState } from '../model/desired-state.ts';
import type { OwnerKey } from '../model/load-balancer.ts';
import { OwnerRecords } from './owner-records.ts';

/** The record of an owner. */
const portsSchema = listOf(
  object({
    address: textReader(parseAddress, 'is not an IP address'),
    protocol: oneOf('TCP', 'UDP', 'SCTP'),
    port: wholeNumber(1, 65_535),
  }),
);

export interface RecordedPortsOptions {
  readonly stateDir: string;
  readonly desired: DesiredState;
  readonly log: Log;
}

export class RecordedPorts {
  readonly #desired: DesiredState;
  readonly #records: OwnerRecords;

  constructor({ stateDir, desired, log }: RecordedPortsOptions) {
    this.#desired = desired;
    this.#records = new OwnerRecords({
      path: join(stateDir, 'last-ports'),
      content: 'last ports',
      log,
    });
  }

  /** Reads the ports of the agent before this one; before any translation. */
  read(): void {
    this.#records.read((owner, value) => {
      for (const { address, protocol, port } of portsSchema.parse(value))
        this.#desired.portOwners.remember(owner, { address: address.address, protocol, port });
    });
  }

  get file(): DiskFile {
    return this.#records.file;
  }

  began(keys: ReadonlySet<string>): void {
    this.changed(keys);
  }

  changed(keys: ReadonlySet<string>): void {
    for (const key of keys) this.#records.set(key, this.#jsonOf(key));
  }

  /** Resolves after the last write. */
  async close(): Promise<void> {
    await this.#records.close();
  }

  /** undefined if it has no port. */
  #jsonOf(key: OwnerKey): string | undefined {
    const ports = this.#desired.portOwners.portsOf(key);
    return ports.length === 0 ? undefined : JSON.stringify(ports);
  }
}
