// The state of one manifest: the objects that count, and when an object stops to count that the file no longer has. Soon,
// or later if so much is missing that the disk may be away, or that a program may be writing the file.

import type { Problem } from '../../model/load-balancer.ts';
import type { KubernetesObject } from '../objects.ts';
import type { ManifestContent } from './file-system.ts';
import type { Manifest } from './manifest-file.ts';

/** Both maps are keyed by identity: `Service default/web`. */
export interface KnownFile {
  readonly path: string;
  /** The objects that count. */
  readonly objects: Map<string, KubernetesObject>;
  /** Those of them that the file no longer has. */
  readonly missing: Map<string, Loss>;
  /** undefined if the agent has not seen good content yet. */
  lastGood: 'Read' | 'Restored' | undefined;
  /** As the last good content: `Manifest.unfinished`. */
  unfinished: boolean;
  /** As the last content: `Manifest.documents`; undefined before the first. */
  documents: Manifest['documents'] | undefined;
  /** Of the last content that was parsed; '' for none. */
  digest: string;
  /** Of the file when it was last read. */
  stamp: string;
  absent: boolean;
  /** When a content that looks unfinished counts all the same, by performance.now(). */
  doubtEnds: number | undefined;
  problems: readonly Problem[];
  /** Good content without a snapshot. */
  unsaved: ManifestContent | undefined;
  timer: NodeJS.Timeout | undefined;
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

  /** When the object stops to count. The time of doubted objects begins again with each file that comes back. */
  ends({ since, doubted }: Loss): number {
    return doubted ? Math.max(since, this.#returned) + this.delayMs * DOUBTED_FACTOR : since + this.delayMs;
  }

  /** A doubted file is there again: a program is filling the folder. */
  fileReturned(now: number): void {
    this.#returned = now;
  }
}

/** A file that has not been read yet. */
export function newFile(path: string): KnownFile {
  return {
    path,
    objects: new Map(),
    missing: new Map(),
    lastGood: undefined,
    unfinished: false,
    documents: undefined,
    digest: '',
    stamp: '',
    absent: false,
    doubtEnds: undefined,
    problems: [],
    unsaved: undefined,
    timer: undefined,
  };
}
