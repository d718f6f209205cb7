// What objects of the Gateway API have in common, and how they refer to one another.

/** What objects have whose status the agent writes. */
export interface DatedObject {
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Milliseconds since the epoch; Infinity if unknown: then the object counts as the youngest. */
  readonly created: number;
  /** `metadata.generation`, which conditions name; 0 in a manifest. */
  readonly generation: number;
}

export interface GroupKind {
  /** '' is the core group. */
  readonly group: string;
  readonly kind: string;
}

export interface ObjectReference extends GroupKind {
  /** '' if the reference has none: then it is that of the object that has the reference. */
  readonly namespace: string;
  readonly name: string;
}
