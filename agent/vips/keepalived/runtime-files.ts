// What the agent and keepalived share on disk besides keepalived.conf: the FIFO, and the file by which keepalived learns
// how this host stands.

import { makeFolder } from '../../host/make-directory.ts';
import type { OwnFile } from '../../host/own-files.ts';
import type { KeepalivedPaths } from './paths.ts';
import type { NotifyFifo } from './process/fifo.ts';
import type { StandingFile } from './standing-file.ts';

export interface RuntimeFilesOptions {
  readonly paths: KeepalivedPaths;
  readonly fifo: NotifyFifo;
  readonly standing: StandingFile;
  /** A running keepalived must be reloaded, which opens the FIFO again. */
  readonly onNewFifo: () => void;
  /** False while the files are not made yet, or in use by a step. */
  readonly canRestore: () => boolean;
}

/** For the start; true if a running keepalived must be reloaded, which opens its files again. Errors: FILE_WRITE. */
export async function makeRuntimeFiles({
  paths,
  fifo,
  standing,
}: Pick<RuntimeFilesOptions, 'paths' | 'fifo' | 'standing'>): Promise<boolean> {
  await makeFolder(paths.directory, 0o711);
  const isNew = await fifo.open();
  await standing.make();
  return isNew;
}

export function runtimeFiles(options: RuntimeFilesOptions): readonly OwnFile[] {
  const { paths, fifo, standing, onNewFifo, canRestore } = options;
  return [
    {
      path: paths.fifo,
      kind: 'file',
      isIntact: async () => !canRestore() || (await fifo.isIntact()),
      restore: async () => {
        await makeFolder(paths.directory, 0o711);
        if (await fifo.open()) onNewFifo();
      },
    },
    {
      path: paths.standing,
      kind: 'file',
      isIntact: async () => !canRestore() || (await standing.isIntact()),
      restore: async () => {
        await makeFolder(paths.directory, 0o711);
        standing.forget();
        await standing.write();
      },
    },
  ];
}
