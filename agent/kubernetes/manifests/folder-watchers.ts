// Watches folders by inotify, with at most one watcher per path. Owns the watchers.

import { type FSWatcher, watch } from 'node:fs';

export interface FolderWatchersOptions {
  /** `name`: of the changed entry, or the folder's own if that was moved or removed; null: unknown. */
  readonly onEvent: (path: string, event: string, name: string | null) => void;
  /** The folder is no longer watched. */
  readonly onLost: (path: string, cause: unknown) => void;
}

export class FolderWatchers {
  readonly #options: FolderWatchersOptions;
  readonly #watchers = new Map<string, FSWatcher>();

  constructor(options: FolderWatchersOptions) {
    this.#options = options;
  }

  has(path: string): boolean {
    return this.#watchers.has(path);
  }

  /** Watches the folder that is at the path now. Gives the error if that fails. */
  watch(path: string): unknown {
    this.forget(path);
    try {
      const watcher = watch(path, (event, name) => this.#options.onEvent(path, event, name));
      this.#watchers.set(path, watcher);
      watcher.on('error', (cause) => {
        if (this.#watchers.get(path) !== watcher) return;
        this.forget(path);
        this.#options.onLost(path, cause);
      });
      return undefined;
    } catch (cause) {
      return cause;
    }
  }

  forget(path: string): void {
    this.#watchers.get(path)?.close();
    this.#watchers.delete(path);
  }

  close(): void {
    for (const path of [...this.#watchers.keys()]) this.forget(path);
  }
}
