// The state of one manifest: the objects that count, and when an object stops counting that the file no longer has. Soon,
// or later if so much is missing that the disk may be away, or that a program may be writing the file.
// Why: docs/design/decisions/0024-losses-wait.md

import type { Problem } from '../../model/load-balancer.ts';
import type { KubernetesObject } from '../objects.ts';
import type { ManifestContent } from './file-system.ts';
import type { Manifest } from './manifest-file.ts';

/** Both maps are keyed by identity: `Service default/web`. */
export class KnownFile {
  readonly path: string;
  /** The objects that count, by identity. */
  readonly objects = new Map<string, KubernetesObject>();
  /** Objects that the file no longer has, by identity. */
  readonly missing = new Map<string, Loss>();
  /** The snapshot has been read, or is older than what the agent has read. */
  isRestored = false;
  /** As the last good content: `Manifest.unfinished`. */
  unfinished = false;
  /** As the last content: `Manifest.documents`; undefined before the first. */
  documents: Manifest['documents'] | undefined;
  /** The digest of the last content that was parsed; '' for none. */
  digest = '';
  /** The stamp of the file when it was last read. */
  stamp = '';
  absent = false;
  /** When a content that looks unfinished counts all the same, by performance.now(). */
  doubtEnds: number | undefined;
  problems: readonly Problem[] = [];
  /** Content that is to be the snapshot. */
  unsaved: ManifestContent | undefined;
  cancelWake: (() => void) | undefined;

  constructor(path: string) {
    this.path = path;
  }
}

/** An object that is missing but still counts. */
export interface Loss {
  /** By performance.now(). */
  readonly since: number;
  /** So much is missing that the loss is believed later. */
  doubted: boolean;
}

/** The loss of more than half of the objects of a kind is doubted if there are so many. */
export const MANY_OBJECTS = 10;
const DOUBTED_FACTOR = 20;

export class LossPolicy {
  readonly delayMs: number;
  /** When a doubted file came back last. */
  #returned = 0;

  constructor(delayMs: number) {
    this.delayMs = delayMs;
  }

  /** When the object stops counting. The time of doubted objects begins again with each file that comes back. */
  ends({ since, doubted }: Loss): number {
    return doubted ? Math.max(since, this.#returned) + this.delayMs * DOUBTED_FACTOR : since + this.delayMs;
  }

  /** A doubted file is there again: a program is filling the folder. */
  fileReturned(now: number): void {
    this.#returned = now;
  }
}
