// The addresses from which members get packets of the kernel: groups that move between hosts together with VIPs. Values only.

export interface SourceGroup {
  /** 1 to 255. */
  readonly id: number;
  /** Addresses of both families, in the same order on both hosts: the hash of a flow chooses one. */
  readonly addresses: readonly string[];
}

/** The mark of conntrack on connections that this host has taken over from the host with these source addresses. */
export function adoptionMark(group: number): number {
  return ADOPTION_MARK + group;
}

/** The lowest byte is that of the group. */
const ADOPTION_MARK = 0x4c43_0000;
/** The bits that are the same for all groups. */
export const ADOPTION_MARKS = 0xffff_ff00;

export interface SourceGroups {
  readonly groups: readonly SourceGroup[];
  /** A connection with the mark of a group (adoptionMark) has a source of that group. */
  readonly areAdopted?: boolean;
  /** The group whose addresses move with a VIP; 0 if none has an address of its family: this host's own is used. */
  readonly groupOf: (vip: string) => number;
}
