// The files that the agent and keepalived share besides keepalived.conf: the FIFO for notifications, and the track file
// with the standing of this host.

import { makeFolder } from '../../host/make-directory.ts';
import type { OwnFile } from '../../host/own-files.ts';
import type { NotifyFifo } from './fifo.ts';
import type { KeepalivedPaths } from './paths.ts';
import type { StandingFile } from './standing-file.ts';

export interface RuntimeFilesOptions {
  readonly paths: KeepalivedPaths;
  readonly fifo: NotifyFifo;
  readonly standing: StandingFile;
  /** A running keepalived opens the new FIFO at a reload. */
  readonly onNewFifo: () => void;
  /** False while the files are not made yet, or in use by a step. */
  readonly canRestore: () => boolean;
}

/** At the start; true if the FIFO is new, which a running keepalived opens at a reload. Errors: FILE_WRITE. */
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
