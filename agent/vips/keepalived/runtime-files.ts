// What the agent and keepalived share on disk besides keepalived.conf: folders, the FIFO, the file by which keepalived
// learns how this host stands. Made at the start, and again where somebody has taken or changed any of it.

import { dirname } from 'node:path';
import type { Log } from '../../host/log.ts';
import { makeFolder } from '../../host/make-directory.ts';
import type { KeepalivedMetrics } from './metrics.ts';
import type { KeepalivedPaths } from './paths.ts';
import type { NotifyFifo } from './process/fifo.ts';
import type { StandingFile } from './standing-file.ts';

export interface RuntimeFilesOptions {
  readonly paths: KeepalivedPaths;
  readonly fifo: Pick<NotifyFifo, 'open' | 'isIntact'>;
  readonly standing: Pick<StandingFile, 'make' | 'isIntact' | 'forget'>;
  readonly metrics: KeepalivedMetrics;
  readonly log: Log;
}

export class RuntimeFiles {
  readonly #options: RuntimeFilesOptions;

  constructor(options: RuntimeFilesOptions) {
    this.#options = options;
  }

  /** True where a keepalived that runs has to be reloaded, which opens its files anew. Errors: FILE_WRITE. */
  async make(): Promise<boolean> {
    const { paths, fifo, standing } = this.#options;
    await this.#makeFolders(paths);
    const isNew = await fifo.open();
    await standing.make();
    return isNew;
  }

  async areIntact(): Promise<boolean> {
    const { fifo, standing } = this.#options;
    return (await fifo.isIntact()) && (await standing.isIntact());
  }

  /** Makes what is missing, as make(); the standing itself is left to its next write(). Errors: FILE_WRITE. */
  async restore(): Promise<boolean> {
    const { paths, fifo, standing, metrics, log } = this.#options;
    await this.#makeFolders(paths);
    if (await this.areIntact()) return false;
    log.warn('Files of keepalived were changed by someone else: made again', { path: paths.directory });
    metrics.repaired('file');
    if (!(await standing.isIntact())) standing.forget();
    if (await fifo.isIntact()) return false;
    await fifo.open();
    return true;
  }

  async #makeFolders({ config, directory }: KeepalivedPaths): Promise<void> {
    await makeFolder(dirname(config), 0o700);
    await makeFolder(directory, 0o711);
  }
}
