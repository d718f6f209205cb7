// The hosts that serve the same VIPs at once, and which of them live. Values only.

/** A host of the setting `hosts`. */
export interface LbHost {
  /** A DNS label, the same on every host. */
  readonly name: string;
  /** Between the agents, and between the HAProxies; canonical. */
  readonly address: string;
  /** Its addresses of the network between the hosts, at most one of each family, IPv4 first; [] without such a network. */
  readonly back: readonly string[];
  /** The source addresses of its packets to members, which routers lead to another host when it is dead; [] for its own address. */
  readonly anchors: readonly string[];
}

export interface HostGroup {
  /** This host. */
  readonly self: LbHost;
  /** All hosts, this one too, by name: the order of the ring, the same on every host. */
  readonly hosts: readonly LbHost[];
}

/** Which hosts live, as BFD between them finds out. */
export interface LivingHosts {
  /**
   * Their names: this host's, and those whose BFD session is up. Until that is known for the first time, all of them; while BIRD
   * of this host does not answer, or has just started, those that lived before, and so for a host that says that its own BIRD
   * does not. None but this host without `back`.
   */
  living(): ReadonlySet<string>;
  /** Calls `onChange` after each change of living(); returns what ends that. */
  follow(onChange: () => void): () => void;
}
