// What the routes of the REST API ask of the other parts of an amphora. Each part has its folder.

/** One subnet's part of a `plug` request. Values have passed their allow-lists. */
export interface FixedAddress {
  readonly address: string;
  readonly subnet: string;
  readonly gateway: string | undefined;
  readonly hostRoutes: readonly { readonly destination: string; readonly nextHop: string }[];
}

export interface VipPlug {
  readonly mac: string;
  readonly mtu: number | undefined;
  /** The amphora's own address on the VIP's subnet. */
  readonly vrrpAddress: string | undefined;
  readonly vip: FixedAddress;
  readonly additionalVips: readonly FixedAddress[];
  readonly isSriov: boolean;
}

export interface NetworkPlug {
  readonly mac: string;
  readonly mtu: number | undefined;
  readonly fixed: readonly FixedAddress[];
  /** Member subnets on the VIP's interface: its VIP part. */
  readonly vip: VipPlug | undefined;
  readonly isSriov: boolean;
}

export interface InterfaceRule {
  readonly protocol: 'TCP' | 'UDP' | 'SCTP' | 'VRRP';
  readonly cidr: string | undefined;
  readonly port: number | undefined;
}

/** The namespace and its interfaces. Errors: HeadgateError with OCTAVIA_* codes, see agent/octavia/network/. */
export interface AmphoraNetwork {
  /** Makes the namespace and all that was plugged before, by MAC. */
  restore(): Promise<void>;
  /** Answers the interface's name. */
  plugVip(plug: VipPlug): Promise<string>;
  /** Answers the interface's name, and whether it was there before. */
  plugNetwork(plug: NetworkPlug): Promise<{ readonly name: string; readonly isKnown: boolean }>;
  /** The interface that has the address; undefined if none has. */
  interfaceOf(address: string): Promise<string | undefined>;
  setRules(address: string, rules: readonly InterfaceRule[]): Promise<void>;
  /** Announces the VIPs of a SINGLE amphora by ARP and ND; does nothing in ACTIVE_STANDBY. */
  announce(): Promise<void>;
  /** Bytes by interface in the namespace. */
  traffic(): Promise<ReadonlyMap<string, { readonly tx: number; readonly rx: number }>>;
}

/** keepalived with the text that the controller pushed. */
export interface AmphoraVrrp {
  upload(text: string): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
  reload(): Promise<void>;
  /** Starts it again after a reboot if it was started before; adopts one that runs. */
  restore(): Promise<void>;
  /** What must answer so that this amphora may have the VIPs; nothing at all: it may not. */
  check(checked: { readonly sockets: readonly string[]; readonly hasDatagrams: boolean }): Promise<void>;
  /** False if a text was pushed and started, and keepalived does not run. */
  isWell(): Promise<boolean>;
  close(): Promise<void>;
}

export type DatagramMemberStatus = 'UP' | 'DOWN' | 'DRAIN' | 'MAINT' | 'no check';

/** One UDP or SCTP listener as the heartbeat reports it. Counters are totals. */
export interface DatagramListener {
  readonly id: string;
  readonly stats: {
    readonly tx: number;
    readonly rx: number;
    readonly conns: number;
    readonly totconns: number;
  };
  readonly pool:
    | {
        readonly id: string;
        readonly status: 'UP' | 'DOWN';
        readonly members: ReadonlyMap<string, DatagramMemberStatus>;
      }
    | undefined;
}

/** UDP and SCTP listeners, which the kernel path serves. */
export interface AmphoraDatagrams {
  /** Errors: OCTAVIA_INVALID with the line that cannot be read. Stores the text and serves it at once. */
  put(id: string, text: string): Promise<void>;
  get(id: string): Promise<string | undefined>;
  remove(id: string): Promise<void>;
  ids(): readonly string[];
  report(): Promise<readonly DatagramListener[]>;
}
