// What a reflector is told and what it tells: the resource, its patience, what it observes, its status. Values only.

import type { HeadgateError } from '../../base/errors.ts';
import type { ParseObject } from './reflected.ts';

/** What is reflected. */
export interface ReflectedResource<T> {
  readonly kind: string;
  /** `v1`, `discovery.k8s.io/v1`. */
  readonly apiVersion: string;
  /** As in the path: `endpointslices`. */
  readonly plural: string;
  /** '' for all namespaces, and for what has none. */
  readonly namespace: string;
  /** '' for all. */
  readonly labelSelector: string;
  /**
   * The API server may not know the kind (yet), or not let us read it: the others do not wait for it, and it is asked
   * again.
   */
  readonly isOptional?: boolean;
  /** Gets kind and apiVersion filled in. */
  readonly parse: ParseObject<T>;
  /** Objects whose loss would hurt, see Reflected; default all. */
  readonly weighs?: (object: T) => boolean;
}

export type ListReason = 'start' | 'expired' | 'confirm' | 'backwards' | 'malformed';
export type WatchEnd =
  | 'ended'
  | 'expired'
  | 'confirm'
  | 'backwards'
  | 'malformed'
  | 'silence'
  | 'broken'
  | 'refused';

/** For metrics and the log; none may throw. */
export interface ReflectorObserver {
  readonly onEvent?: (kind: string, type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK') => void;
  readonly onList?: (kind: string, reason: ListReason, objects: number, milliseconds: number) => void;
  readonly onWatchEnd?: (kind: string, end: WatchEnd) => void;
  /** Most of the objects were missing from a list; they count until another list confirms it. */
  readonly onDoubt?: (kind: string, missing: number, of: number) => void;
  /** Nothing is lost by it: it is tried again. */
  readonly onFailure?: (kind: string, error: HeadgateError) => void;
}

export interface ReflectorTimes {
  /** Milliseconds without a byte on a watch after which its connection counts as dead; a list has 30 s at most. */
  readonly silence: number;
  /** Milliseconds from a list that lacks most objects to the one that confirms it; up to twice as long. */
  readonly confirm: number;
  /** Seconds after which the API server is to end a watch; up to twice as long. */
  readonly watch: number;
  /** Milliseconds until an API server that gives nothing of an optional kind is asked again; up to twice as long. */
  readonly absent: number;
}

/**
 * Bookmarks come about once a minute on a quiet watch: one may be late, but not by half a minute. A connection whose
 * other end is gone is noticed by TCP's own probes after 25 s already.
 */
export const defaultTimes: ReflectorTimes = { silence: 90_000, confirm: 2_000, watch: 240, absent: 10_000 };

/** Why there is nothing of an optional kind: the API server does not know it, or does not let this account read it. */
export type Lack = 'none' | 'unknown' | 'forbidden';

export interface ReflectorStatus {
  readonly kind: string;
  readonly namespace: string;
  /** A watch is open. */
  readonly connected: boolean;
  readonly synced: boolean;
  readonly lack: Lack;
  readonly objects: number;
  /** Objects that count although the last list lacked them. */
  readonly doubted: number;
  /** Up to where events have been seen; '' before the first list. */
  readonly resourceVersion: string;
  /** Of the last event or bookmark, milliseconds since the epoch; 0 before. */
  readonly lastEvent: number;
  readonly lists: number;
  readonly watches: number;
  /** Why the last attempt failed; '' once a watch is open again, and where the API server does not know the kind. */
  readonly fault: string;
}
