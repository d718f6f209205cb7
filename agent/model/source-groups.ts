// The addresses from which members get packets of the kernel: groups that move between hosts together with VIPs. Values only.

export interface SourceGroup {
  /** 1 to 255. */
  readonly id: number;
  /** Addresses of both families, in the same order on both hosts: the hash of a flow chooses one. */
  readonly addresses: readonly string[];
}

export interface SourceGroups {
  readonly groups: readonly SourceGroup[];
  /** The group whose addresses move with a VIP; 0 if none has an address of its family: this host's own is used. */
  readonly groupOf: (vip: string) => number;
}
