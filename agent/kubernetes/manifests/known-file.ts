// What is known of one file of manifests: what counts of it, and what there is to doubt.

import type { Problem } from '../../model/load-balancer.ts';
import type { KubernetesObject } from '../objects.ts';
import type { Loss } from './loss-policy.ts';
import type { Manifest } from './manifest-file.ts';
import type { ManifestContent } from './read-manifest.ts';

/** Two maps keyed by identity, as `Claimant` says. */
export interface KnownFile {
  readonly path: string;
  /** What counts of it. */
  readonly objects: Map<string, KubernetesObject>;
  /** Objects that are not in it any more but still count. */
  readonly missing: Map<string, Loss>;
  /** undefined where no content has been good yet. */
  lastGood: 'Read' | 'Restored' | undefined;
  /** How the last good content ended. */
  unfinished: boolean;
  /** The documents it knows already, `Manifest.documents`; undefined until it has been read. */
  documents: Manifest['documents'] | undefined;
  /** Of the content last judged; '' where there was none. */
  digest: string;
  /** Of the file when it was last read. */
  stamp: string;
  absent: boolean;
  /** When a content that looks half written is judged all the same, by performance.now(). */
  doubtEnds: number | undefined;
  problems: readonly Problem[];
  /** Good content that no snapshot has been made of yet. */
  unsaved: ManifestContent | undefined;
  timer: NodeJS.Timeout | undefined;
}

/** Nothing has been read of it. */
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
