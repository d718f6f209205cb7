// The types of a reflector: its resource, times, observer and status. Values only.
// Why: docs/design/decisions/0051-kinds-after-their-class.md

import type { HeadgateError } from '../../base/errors.ts';
import type { ParseObject } from './reflected.ts';

export interface ReflectedResource<T> {
  readonly kind: string;
  /** `v1`, `discovery.k8s.io/v1`. */
  readonly apiVersion: string;
  /** Requested if the API server does not know `apiVersion` of the kind. */
  readonly orVersion?: string;
  /** As in the path: `endpointslices`. */
  readonly plural: string;
  /** '' for all namespaces, and for what has none. */
  readonly namespace: string;
  /** '' for all. */
  readonly labelSelector: string;
  /** `type=kubernetes.io/tls`; undefined for all. */
  readonly fieldSelector?: string;
  /** The API server may not know the kind, or forbid it: the reflector repeats the request, other kinds do not wait. */
  readonly isOptional?: boolean;
  /** Gets JSON with kind and apiVersion. */
  readonly parse: ParseObject<T>;
  /** Objects that serve traffic, see Reflected; default all. */
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
  /** A request failed; it is repeated. */
  readonly onFailure?: (kind: string, error: HeadgateError) => void;
}

export const defaultTimes = {
  /**
   * Milliseconds without a byte after which a watch counts as dead; at most 30 s for a list. A quiet watch has a bookmark
   * about once a minute.
   */
  silence: 90_000,
  /** Milliseconds from a list that lacks most objects to the one that confirms it; up to twice as long. */
  confirm: 2_000,
  /** Seconds after which the API server ends a watch; up to twice as long. */
  watch: 240,
  /** Milliseconds until a missing optional kind is requested again; up to twice as long. */
  absent: 10_000,
};

export type ReflectorTimes = Readonly<typeof defaultTimes>;

/** Why there are no objects of an optional kind: the API server does not know it, or forbids this account to read it. */
export type Lack = 'none' | 'unknown' | 'forbidden';

export interface ReflectorStatus {
  readonly kind: string;
  readonly namespace: string;
  /** A watch is open. */
  readonly connected: boolean;
  readonly lack: Lack;
  /** The version of the last event; '' before the first list. */
  readonly resourceVersion: string;
  /** Time of the last answer, event or bookmark, milliseconds since the epoch; 0 before the first. */
  readonly lastAnswer: number;
  /** Why the last request failed; '' once a watch is open, and if the API server does not know the kind. */
  readonly fault: string;
}
