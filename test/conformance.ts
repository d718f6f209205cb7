// What Kubernetes asks of a load balancer, field by field and trap by trap, each with the tests that show what we do.
// docs/conformance.md is written from it; conformance.test.ts fails where a test that is named here is gone.
// Values only.

export interface Section {
  readonly title: string;
  readonly rows: readonly Row[];
}

export interface Row {
  /** A field, or a trap in few words. */
  readonly field: string;
  /** What we do, one sentence each. */
  readonly rule: readonly string[];
  /** What the rule asks for and is not built; absent where nothing is. */
  readonly notYet?: string;
  /** A test file below test/ to titles of its tests, or a folder of cases to the names of its files. */
  readonly shownBy: Readonly<Record<string, readonly string[]>>;
}

const VIPS = 'agent/translate/service/service-vips.test.ts';
const RANGES = 'agent/translate/service/source-ranges.test.ts';
const ENDPOINTS = 'agent/translate/service/select-endpoints.test.ts';
const MEMBERS = 'agent/translate/service/members.test.ts';
const IGNORED = 'agent/translate/service/fields-without-effect.test.ts';
const TRANSLATE = 'agent/translate/translate.test.ts';
const PARSE = 'agent/kubernetes/parse-object.test.ts';
const STATUS = 'agent/kubernetes/writers/service-status.test.ts';
const WRITER = 'agent/kubernetes/writers/status-writer.test.ts';
const CLUSTER = 'agent/kubernetes/cluster.test.ts';
const REFLECTOR = 'agent/kubernetes/api/reflector.test.ts';
const LEASE = 'agent/kubernetes/writers/lease.test.ts';
const EVENTS = 'agent/kubernetes/writers/events.test.ts';
const CLIENT = 'agent/kubernetes/api/client.test.ts';
const PLUGINS = 'agent/kubernetes/access/exec-plugin.test.ts';
const KUBECONFIG = 'agent/kubernetes/access/kubeconfig.test.ts';
const WRITER_PROPERTY = 'agent/kubernetes/writers/status-writer.property.test.ts';
const SNAPSHOT = 'agent/kubernetes/api/api-snapshot.test.ts';
const ALLOCATION = 'agent/addresses/allocation.test.ts';
const PROPERTY = 'agent/addresses/allocation.property.test.ts';
const REQUEST = 'agent/addresses/request.test.ts';
const REAL_AGENT = 'real/kubernetes-agent.test.ts';
const REAL_WRITER = 'real/kubernetes-writer.test.ts';
const REAL_SOURCE = 'real/kubernetes-source.test.ts';
const REAL_CREDENTIALS = 'real/kubernetes-credentials.test.ts';
const REAL_DEAD = 'real/kubernetes-dead-haproxy.test.ts';
const REAL_FAULTS = 'real/kubernetes-faults.test.ts';
const REAL_POOLS = 'real/kubernetes-pools.test.ts';
const REAL_NODES = 'real/kubernetes-nodes.test.ts';
const REAL_PROVISIONER = 'real/kubernetes-provisioner.test.ts';
const REAL_RBAC = 'real/rbac.test.ts';
const REAL_SERVICES = 'real/services.test.ts';
const REAL_TRAFFIC = 'real/traffic.test.ts';
const CASES = 'cases/';
const TRANSITIONS = 'transitions/';

const SERVICE: Section = {
  title: 'Fields of a Service',
  rows: [
    {
      field: 'spec.type',
      rule: [
        'A load balancer exists if and only if the type is `LoadBalancer`.',
        'When it changes to another one everything goes: listeners, addresses, status, conditions, finalizer; also where the change came while no agent ran.',
      ],
      shownBy: {
        [VIPS]: ['A Service of type ClusterIP is not ours, whatever its class'],
        [TRANSLATE]: [
          'A change of type away from LoadBalancer takes the load balancer away and frees its address',
          'A change of type to LoadBalancer makes the load balancer',
        ],
        [STATUS]: ['clearedStatus() takes only what is ours, not the address that a successor has written'],
        [REAL_WRITER]: ['A Service that becomes another type loses address, conditions and finalizer'],
        [REAL_AGENT]: [
          'The status of a Service says what is served, once it is served, and goes with its type',
          'A Service that ceased to be ours while no agent ran is let go of by the next one',
        ],
      },
    },
    {
      field: 'spec.loadBalancerClass',
      rule: [
        'Ours is a setting; a Service of another class is never touched.',
        'A Service without a class is ours only where the setting `handleUnclassed` is on.',
      ],
      shownBy: {
        [VIPS]: [
          'A Service of our class is ours',
          'A Service of another class is never ours, not even where unclassed ones are',
          'A Service without a class is ours with handleUnclassed',
          'A Service without a class is not ours without handleUnclassed',
          'The class that is ours is a setting',
        ],
        [STATUS]: ['servicePatch() releases what is ours and leaves another load balancer its finalizer'],
        [REAL_POOLS]: ['A Service that goes to another class loses all that is ours, and is then left alone'],
      },
    },
    {
      field: 'spec.loadBalancerIP',
      rule: [
        'Deprecated, but honoured where no annotation says otherwise.',
        'It is only read: no agent may write a spec.',
      ],
      shownBy: {
        [VIPS]: [
          'The annotation wins over spec.loadBalancerIP and over the status',
          'spec.loadBalancerIP wins over the status',
          'Blanks around spec.loadBalancerIP do not count',
          'A hostname where an address has to be is a problem',
        ],
        [REAL_RBAC]: ['The status subresource leaves the spec as it is, whatever the patch says'],
      },
    },
    {
      field: 'spec.loadBalancerSourceRanges',
      rule: [
        'Enforced here, because kube-proxy never sees the client.',
        'Where the field is empty the annotation `service.beta.kubernetes.io/load-balancer-source-ranges` counts, else everybody may connect.',
        'A range counts for its own family: a list of IPv4 ranges closes IPv6.',
        'What cannot be read lets nobody in.',
      ],
      notYet: 'Ranges of UDP and SCTP ports, which need the kernel path.',
      shownBy: {
        [RANGES]: [
          'Everybody may connect where neither the field nor the annotation says otherwise',
          'The annotation counts where the field is empty',
          'The field wins over the annotation',
          'Blanks around ranges do not count',
          'A list of IPv4 ranges closes IPv6',
          'A list of IPv6 ranges closes IPv4',
          'A range that cannot be read lets nobody in and says so',
          'An entry of the field that is empty, as a template without its value leaves it, opens nothing',
        ],
        [CASES]: ['source-ranges-by-annotation', 'source-ranges-close-the-other-family'],
        [REAL_SERVICES]: ['Source ranges open and close at runtime'],
      },
    },
    {
      field: 'spec.externalIPs',
      rule: [
        'No matter of a load balancer (CVE-2020-8554, KEP-5707): served only where the setting `externalIPs` is on, and never in the status.',
      ],
      shownBy: {
        [VIPS]: [
          'External IPs do not make a Service ours unless the setting says so',
          'External IPs are no VIPs unless the setting says so',
          'External IPs make a Service of any type ours with the setting externalIPs',
          "Another class's Service that is ours for its external IPs does not lend us its load-balancer address",
        ],
        [STATUS]: ['Addresses of both families have their own entries; external and cluster IPs have none'],
      },
    },
    {
      field: 'spec.externalTrafficPolicy',
      rule: [
        'With pods as members all ready pods are used under both policies; with nodes `Local` leaves those that have an endpoint in use.',
        'The field of the owner is never rewritten.',
      ],
      shownBy: {
        [TRANSLATE]: [
          'With members by pods all ready pods are used under both external traffic policies',
          'With members by nodes and externalTrafficPolicy Local, nodes with ready endpoints are members',
          'With members by nodes and externalTrafficPolicy Local, the last pods that terminate count',
          'With members by nodes, nodes are members of Cluster Services also where no pod is ready',
        ],
        [CASES]: ['node-members-with-local-traffic-policy'],
        [REAL_NODES]: ['With externalTrafficPolicy Local the nodes of the endpoints get the traffic'],
        [TRANSITIONS]: ['node-gets-the-first-pod'],
        [REAL_RBAC]: ['Nothing else is allowed'],
      },
    },
    {
      field: 'spec.healthCheckNodePort',
      rule: [
        'Which nodes have endpoints, and how many, is known from the slices before any probe could tell; so is what the header `X-Load-Balancing-Endpoint-Weight` would say.',
        'With `headgate.io/health-monitor: kube-proxy`, or that as the default for all, nodes with `externalTrafficPolicy: Local` are probed there besides.',
      ],
      shownBy: {
        [IGNORED]: ['healthCheckNodePort has no effect without a monitor by kube-proxy'],
        [CASES]: ['monitor-kube-proxy-with-local-traffic-policy'],
      },
    },
    {
      field: 'kube-proxy’s :10256/healthz',
      rule: [
        'Probed with `headgate.io/health-monitor: kube-proxy`, or that as the default for all, where members are nodes and the policy is `Cluster`; pods are not.',
      ],
      shownBy: {
        [CASES]: ['monitor-kube-proxy', 'monitor-kube-proxy-of-pods'],
        'agent/haproxy/config/listener-config.test.ts': [
          'A check on a port of its own does not send the PROXY protocol header, one on the member’s port does',
        ],
      },
    },
    {
      field: 'spec.internalTrafficPolicy',
      rule: ['For clients inside the cluster only; it changes nothing.'],
      shownBy: { [IGNORED]: ['internalTrafficPolicy has no effect'] },
    },
    {
      field: 'spec.sessionAffinity, sessionAffinityConfig',
      rule: [
        '`ClientIP` keeps a client address at its member, for each Service port, for `timeoutSeconds` after its last connection began: 10,800 by default, at most a day.',
        'It survives a reload, and the other host of a pair has the same table; clients of a draining member are given another one.',
      ],
      shownBy: {
        [PARSE]: ['parseObject() gives session affinity three hours where the Service does not say'],
        [TRANSLATE]: ['sessionAffinity ClientIP becomes persistence for as many seconds as it says'],
        [CASES]: ['session-affinity'],
        [TRANSITIONS]: ['member-begins-to-terminate-with-session-affinity'],
        [REAL_SERVICES]: ['Session affinity survives a reload'],
        'real/pair.test.ts': ['A client keeps its member on the other host, and over a reload there'],
      },
    },
    {
      field: 'spec.publishNotReadyAddresses',
      rule: ['The controller has put it into `ready` already, so `ready` is trusted, not `serving`.'],
      shownBy: {
        [ENDPOINTS]: [
          'ready is trusted, so that publishNotReadyAddresses works: a terminating endpoint that is ready is used',
        ],
      },
    },
    {
      field: 'spec.allocateLoadBalancerNodePorts',
      rule: [
        '`false` means pods as members, whatever else says nodes.',
        'A port that needs a node port and has none is never sent to port 0: it has no members, an error in the status, and a condition that says so.',
      ],
      shownBy: {
        [TRANSLATE]: [
          'allocateLoadBalancerNodePorts false sends traffic to pods, whatever setting or annotation say',
          'A port without a nodePort has no members by nodes, and says so',
        ],
        [STATUS]: ['A port that needs a nodePort and has none has an error'],
        [CASES]: ['node-members-without-node-ports'],
      },
    },
    {
      field: 'spec.ports[].protocol',
      rule: [
        'TCP, UDP and SCTP may stand in one Service, also on one port number (KEP-1435).',
        'A protocol that is not served has its error in the status and the condition `LoadBalancerPortsError`; the ports beside it are served.',
      ],
      notYet: 'UDP and SCTP themselves, which need the kernel path.',
      shownBy: {
        [TRANSLATE]: [
          'Ports of TCP, UDP and SCTP on one Service are told apart, and what is not served is said port by port',
          'Two Services share an address on different ports, or on different protocols of one port',
        ],
        [STATUS]: [
          'UDP beside TCP, not served: the port has an error, and the condition its name from KEP-1435',
          'UDP alone, not served: the address is not published',
        ],
        [CASES]: ['udp-and-sctp-beside-tcp'],
        [REAL_SERVICES]: ['A UDP port is reported while the TCP port beside it is served'],
      },
    },
    {
      field: 'spec.ports[].appProtocol',
      rule: ['A hint that TCP mode need not know; it changes nothing.'],
      shownBy: { [IGNORED]: ['appProtocol has no effect'] },
    },
    {
      field: 'spec.ipFamilies, spec.ipFamilyPolicy',
      rule: [
        'The secondary family may come and go while the Service lives; the other family never notices.',
        '`PreferDualStack` puts up with one family, `RequireDualStack` waits for both; without pools it is served in the family that it has, and says which it misses.',
      ],
      shownBy: {
        [TRANSLATE]: [
          'With both families each port has two listeners, IPv4 before IPv6, each with members of its family',
          'A dual-stack Service that got an address of one family is served in that family alone',
          'A second family that a living Service gets or loses is a listener more or less',
          'RequireDualStack with v4 and v6 and 192.0.2.10 is served and misses IPv6',
        ],
        [REQUEST]: [
          'A single-stack Service asks for the family that the API server gave it',
          'PreferDualStack asks for as many as can be had, the primary family first',
          'PreferDualStack on a cluster of one family asks for that one',
        ],
        [ALLOCATION]: [
          'PreferDualStack puts up with one family and gets the other when there is one; RequireDualStack waits',
          'A Service that gives up a family keeps the other one',
        ],
        [REAL_POOLS]: [
          'PreferDualStack takes the family there is and later the other one; RequireDualStack waits for both',
        ],
        [TRANSITIONS]: ['second-family-added'],
      },
    },
    {
      field: 'spec.trafficDistribution',
      rule: ['The field itself changes nothing: it reaches a load balancer as hints in the slices.'],
      shownBy: { [IGNORED]: ['trafficDistribution has no effect'], [CASES]: ['zone-hints'] },
    },
    {
      field: 'no selector',
      rule: ['A Service without a selector is served by the slices that others write for it.'],
      shownBy: {
        [TRANSLATE]: ['A Service without a selector is served by the slices that others write for it'],
      },
    },
    {
      field: 'clusterIP: None, type: ExternalName',
      rule: ['Headless and ExternalName Services are not served, and `why` says so.'],
      shownBy: {
        [VIPS]: [
          'A headless Service is not ours',
          'An ExternalName Service is not ours, even with external IPs that are served',
        ],
      },
    },
    {
      field: 'labels service.kubernetes.io/service-proxy-name, service.kubernetes.io/headless',
      rule: ['Services with either are passed over, as by kube-proxy.'],
      shownBy: {
        [VIPS]: [
          'A Service that another proxy serves by label service-proxy-name is not ours',
          'A Service with label headless is not ours, even where its value is empty',
        ],
      },
    },
    {
      field: 'metadata.deletionTimestamp',
      rule: ['What is being deleted is served no more, though finalizers still hold it.'],
      shownBy: {
        [VIPS]: ['A Service that only waits for its finalizers is not ours any more'],
        [REAL_AGENT]: [
          'A Service that is being deleted is served no more, though a finalizer still holds it',
        ],
      },
    },
  ],
};

const TOLD: Section = {
  title: 'What is written to a Service',
  rows: [
    {
      field: 'status.loadBalancer.ingress[].ip',
      rule: [
        'An address is there once HAProxy has confirmed a port of it, never before, and then stays while the Service has it.',
      ],
      shownBy: {
        [STATUS]: [
          'An address is not published before the dataplane has confirmed a port of it',
          'A published address stays while the dataplane is silent, its ports say that they wait',
          'A Service of another type gets no address, which the API would refuse',
        ],
      },
    },
    {
      field: 'status.loadBalancer.ingress[].ipMode',
      rule: [
        '`Proxy`, so that kube-proxy does not short-cut traffic from inside past source ranges and PROXY protocol headers (KEP-1860).',
      ],
      shownBy: {
        [STATUS]: [
          'A Service whose ports are all served has its address with every port, and both conditions true',
        ],
        [REAL_WRITER]: [
          'A status with ports, errors and conditions is taken by the API server as it was meant',
        ],
      },
    },
    {
      field: 'status.loadBalancer.ingress[].ports',
      rule: ['Every port with its protocol, and an error where it is not served, on that very address.'],
      shownBy: {
        [STATUS]: [
          'A port that another Service holds on one of two addresses has the error there only',
          'What HAProxy cannot listen on is not served, though the listener is there for its other address',
          'Every error and reason has the form that the API asks for',
        ],
      },
    },
    {
      field: 'status.conditions',
      rule: [
        '`headgate.io/IPAllocated`, `headgate.io/Programmed`, and Kubernetes’ own `LoadBalancerPortsError`.',
        'Conditions of others are left alone, and a time changes only with its status.',
        'A Service without a ready member is programmed; the reason `NoMembers` says so.',
      ],
      shownBy: {
        [STATUS]: [
          'Without an address the reason is the one that keeps it from having one',
          'mergeStatus() keeps the time of a condition whose status stays, and sets it where it changes',
          'mergeStatus() leaves what others wrote where it is, and takes our ports condition away',
          'A Service without ready members is programmed, and the condition names the ports that nobody answers',
        ],
        [REAL_WRITER]: ['Two who write to one Service at a time both have their way'],
      },
    },
    {
      field: 'finalizer service.kubernetes.io/load-balancer-cleanup',
      rule: [
        'Put there before an address is claimed for the Service, or with its first status where none is, taken away when HAProxy has confirmed that nothing serves it (KEP-980).',
        'A dead load balancer holds up no namespace: after two minutes it goes all the same.',
      ],
      shownBy: {
        [STATUS]: [
          'servicePatch() adds finalizer and status in one patch, guarded by UID and version',
          'servicePatch() adds no finalizer to what is being deleted, nor where that is turned off',
        ],
        [WRITER]: [
          'A release waits for the teardown, then takes status and finalizer away in one write',
          'A teardown that is never confirmed holds up a namespace for two minutes, not for ever',
        ],
        [REAL_WRITER]: [
          'claimed() puts the finalizer there first; deletion then waits for the teardown, and no longer',
          'A teardown that is never confirmed does not keep a Service for ever',
        ],
        [REAL_DEAD]: [
          'A HAProxy that hangs holds up the deletion of a namespace for two minutes, not for ever',
          'A HAProxy that has died and cannot be started does not, either',
        ],
      },
    },
    {
      field: 'what somebody else writes over it',
      rule: ['It is seen by the watch and put right; no Service is asked for one by one.'],
      shownBy: {
        [WRITER]: ['What somebody else changes in our part is set right when the watch shows it'],
        [REAL_AGENT]: [
          'What somebody else writes over a status is written again, and no Service is asked for',
        ],
        [WRITER_PROPERTY]: [
          'Whatever the watch shows and whenever, the API has in the end what was wished for last',
        ],
      },
    },
    {
      field: 'a Service that is deleted and made again',
      rule: [
        'It is told apart by its UID: nothing that was meant for the old one is written to the new one.',
      ],
      shownBy: {
        [WRITER]: ['The status of a Service that was made anew is not written by a wish for the old one'],
        [REAL_WRITER]: [
          'A Service that was made anew under its name is not touched by what was meant for the old one',
        ],
        [REAL_SOURCE]: ['A Service that is deleted and made again is removed and added'],
      },
    },
    {
      field: 'events.k8s.io/v1 Event',
      rule: [
        'Times have six digits; the same once more is counted in the series; each object and all together are held to a rate; what fails is dropped.',
      ],
      shownBy: {
        [EVENTS]: [
          'An Event has everything that events.k8s.io/v1 asks for',
          'The same once more is counted in the Event that is there, at most every half minute',
          'One object may say ten things at once and one a minute; others are not held up by it',
          'What fails is dropped and not tried again',
        ],
        [REAL_WRITER]: ['Events are there, in both versions of their API, and repetitions are counted'],
      },
    },
    {
      field: 'coordination.k8s.io/v1 Lease',
      rule: [
        'One agent writes: expiry is judged by when the record was last seen to change, on a monotonic clock, never by the clock of the other.',
        'Every write of it is guarded by resourceVersion, and its times have six digits.',
      ],
      shownBy: {
        [LEASE]: [
          'Of two agents one leads; the other takes over when the first is silent for the duration',
          'A clock that is set wrong by hours makes nobody take over',
          'Whoever cannot confirm a renewal leads no longer when the deadline is over, even while a request hangs',
          'A conflict is no renewal: the record is read again, and another holder is respected until it is silent',
        ],
        [REAL_WRITER]: [
          'A time with the three digits of a Date is refused: microTime() is not for show',
          'Of two agents one leads; the other follows at once when it is closed',
        ],
      },
    },
    {
      field: 'RBAC',
      rule: ['The account may do what the agent asks, and nothing else.'],
      shownBy: {
        [REAL_RBAC]: [
          'An agent at work writes what it is to write with these rights, and is refused nothing',
          'Everything that the agent asks is allowed',
          'Nothing else is allowed',
          'The rights are those and no more, as the API server itself lists them',
        ],
      },
    },
  ],
};

const SLICES: Section = {
  title: 'Fields of an EndpointSlice, and which endpoints are used',
  rows: [
    {
      field: 'endpoints[].conditions',
      rule: ['`ready` that is not said is true, `serving` is `ready`, `terminating` is false.'],
      shownBy: {
        [PARSE]: [
          'An endpoint without conditions is ready',
          'An endpoint whose conditions are null is ready',
          'An endpoint that is not ready does not serve unless it says so',
          'An endpoint that terminates may still serve',
        ],
      },
    },
    {
      field: 'endpoints[].addresses',
      rule: ['Only the first one counts.'],
      shownBy: { [PARSE]: ['Only the first address of an endpoint counts'] },
    },
    {
      field: 'the largest slice',
      rule: ['A slice may hold 1,000 endpoints and 100 ports.'],
      shownBy: { [PARSE]: ['A slice may have 1,000 endpoints and 100 ports'] },
    },
    {
      field: 'label kubernetes.io/service-name',
      rule: ['It joins slices and Service, within their namespace; it may change.'],
      shownBy: {
        [TRANSLATE]: ['The slices of another Service or another namespace give no members'],
        [CLUSTER]: [
          'A slice that moves to another Service marks the old one and the new one',
          'A slice of no Service marks nothing',
        ],
      },
    },
    {
      field: 'ports[].name',
      rule: [
        'Ports are joined by name and protocol, slice by slice: a target port may differ between slices.',
      ],
      shownBy: {
        [ENDPOINTS]: [
          'Ports are joined by name',
          'Ports of one name are told apart by protocol',
          'Each slice has its own target port',
          'A slice without ports gives no members',
        ],
        [CASES]: ['target-ports-that-differ-by-slice'],
      },
    },
    {
      field: 'duplicates',
      rule: [
        'An endpoint may stand in two slices while the controller moves it: it is one member, at its best.',
      ],
      shownBy: {
        [ENDPOINTS]: ['An endpoint that two slices list while it moves counts once, at its best'],
        [TRANSITIONS]: ['endpoint-moves-between-slices'],
      },
    },
    {
      field: 'addressType',
      rule: ['Each family serves the VIPs of its own; `FQDN` is not served and says so.'],
      shownBy: {
        [ENDPOINTS]: ['Only endpoints of the family of the VIP are used'],
        [PARSE]: ['parseObject() drops a slice of FQDN addresses, and says so'],
      },
    },
    {
      field: 'the last pods (KEP-1669)',
      rule: ['Where none is ready, endpoints that terminate but serve are used.'],
      shownBy: {
        [ENDPOINTS]: [
          'Ready endpoints are used, those that are neither ready nor terminating are only counted',
          'Endpoints that terminate but serve are used where none is ready: the last-pod rule',
          'An endpoint that terminates and does not serve is not used, not even as the last one',
        ],
        [CASES]: ['last-pods-that-terminate'],
        [TRANSITIONS]: ['last-members-terminate'],
      },
    },
    {
      field: 'established connections',
      rule: ['An endpoint that terminates but serves keeps its connections and gets no new ones.'],
      shownBy: {
        [ENDPOINTS]: ['An endpoint that terminates but serves is drained while others are ready'],
        [TRANSITIONS]: ['member-begins-to-terminate', 'terminating-member-goes'],
        [REAL_TRAFFIC]: ['A terminating member keeps its connection and gets no new one'],
      },
    },
    {
      field: 'endpoints[].hints.forZones',
      rule: [
        'Used where the setting `zone` is set, every ready endpoint has hints, and one names our zone; not with `externalTrafficPolicy: Local`.',
      ],
      shownBy: {
        [ENDPOINTS]: [
          'Zone hints narrow to our zone where every ready endpoint has some',
          'Zone hints are ignored where one ready endpoint has none',
          'Zone hints are ignored where none names our zone',
          'Zone hints are ignored where we are in no zone',
          'An endpoint that is not ready needs no hint for the others to count',
          'Zone hints do not narrow the last pods that terminate',
        ],
        [TRANSLATE]: ['Zone hints are ignored with externalTrafficPolicy Local'],
      },
    },
    {
      field: 'endpoints[].hints.forNodes',
      rule: ['Never used: a load balancer off the cluster is on no node.'],
      shownBy: { [ENDPOINTS]: ['Same-node hints are ignored: a load balancer is no node of the cluster'] },
    },
    {
      field: 'annotation endpoints.kubernetes.io/last-change-trigger-time',
      rule: [
        'The beginning of [network programming latency](metrics.md#network-programming-latency), counted as kube-proxy counts it.',
      ],
      shownBy: {
        'agent/report/programming-latency.test.ts': [
          'What commands make live is counted when they are acknowledged, each change by itself',
          'What needs a listener is counted when a worker with that listener is there',
          'A change from the future took no time',
        ],
        [REAL_SOURCE]: [
          'Only an event tells when the pods changed, and only of what changed since the start',
        ],
        [REAL_AGENT]: [
          'The time from a change of pods to its traffic is counted, by commands and by reload, as kube-proxy counts it',
        ],
      },
    },
    {
      field: 'Endpoints, the old kind',
      rule: ['Read in manifests only, and only where the Service has no EndpointSlice.'],
      shownBy: {
        [CLUSTER]: ['Endpoints count only where the Service has no EndpointSlice'],
        [CASES]: ['endpoints-of-the-old-kind'],
      },
    },
  ],
};

const NODES: Section = {
  title: 'Fields of a Node, where members are nodes',
  rows: [
    {
      field: 'label node.kubernetes.io/exclude-from-external-load-balancers',
      rule: [
        'Its value is read as a bool, as the cloud provider library does it: `false` includes, anything else excludes.',
      ],
      shownBy: {
        [MEMBERS]: [
          'The exclude label with value "false" includes the node',
          'The exclude label with value "" excludes the node',
          'A node without the exclude label is included',
        ],
      },
    },
    {
      field: 'condition Ready, taints',
      rule: [
        'A node that is NotReady or unreachable stays a member (KEP-3458): checks find what it cannot serve.',
        'One that an operator empties with a NoExecute taint of their own is none.',
      ],
      shownBy: {
        [PARSE]: ['Taints that only say that a node does not answer do not count, those of an operator do'],
        [MEMBERS]: [
          'With externalTrafficPolicy Cluster every node is a member',
          'A node that a NoExecute taint empties is no member',
        ],
        [REAL_NODES]: [
          'Nodes come and go as their labels, taints and deletion say, without a failed request',
          'A node that flaps between Ready and NotReady tells HAProxy nothing',
        ],
      },
    },
    {
      field: 'metadata.deletionTimestamp of a Node',
      rule: ['It keeps its connections and gets no new ones.'],
      shownBy: { [MEMBERS]: ['A node that is being deleted is drained'], [TRANSITIONS]: ['node-is-deleted'] },
    },
    {
      field: 'status.addresses',
      rule: ['The first InternalIP of the family; a node without one is no member of that family.'],
      shownBy: {
        [MEMBERS]: [
          'A node is a member at its InternalIP of the family and the nodePort',
          'A node without an address of the family is no member of that family',
        ],
      },
    },
  ],
};

const WATCHING: Section = {
  title: 'Watching the API',
  rows: [
    {
      field: '410 Gone, as an event or as a status',
      rule: ['A new list follows, and the difference is told.'],
      shownBy: {
        [REFLECTOR]: [
          'A watch that has expired, by status or by event, is followed by a list of now that tells the difference',
        ],
        [REAL_FAULTS]: ['Where events have been compacted away the list of all pages tells what differs'],
      },
    },
    {
      field: 'a watch that the server ends',
      rule: ['It goes on from the last version, those of bookmarks included.'],
      shownBy: {
        [REFLECTOR]: [
          'The first list may be of the cache; a watch goes on from it, and the next from the last bookmark',
        ],
      },
    },
    {
      field: 'connection reset, 5xx, 429, 401, a list that fails',
      rule: [
        'Tried again for ever, with growing pauses; Retry-After is honoured; a token is read again after a 401.',
      ],
      shownBy: {
        [REFLECTOR]: [
          'Failures are tried again for ever, less and less often, and say what happened',
          'Retry-After is honoured',
        ],
        [CLIENT]: ['A 401 reads a token from its file again: of a kubeconfig, and of a pod'],
        [REAL_SOURCE]: [
          'No update is lost under 200 writes a second while connections are reset',
          'A token that is refused is read again from its file',
        ],
        [REAL_FAULTS]: ['A restart of the API server takes nothing away, and nothing is lost by it'],
      },
    },
    {
      field: 'credentials',
      rule: [
        'Tokens, token files, certificates, a pod’s account, credential plugins, users who act as another, proxies.',
        'The auth providers of a kubeconfig are refused by name: kubectl lost all but one of them in 1.26.',
        'A plugin that hangs is ended after 15 s with all that it has started, and asked again.',
      ],
      shownBy: {
        [REAL_CREDENTIALS]: [
          'A token, and a token file',
          'A client certificate, in the file and beside it',
          'The certificate and the token of a credential plugin',
          'Who acts as another is seen as that one, with the groups that are said',
          'The server is checked by the name that is said, and not at all where that is said',
          'An HTTP proxy that the kubeconfig names, and says who we are to it',
          'An HTTP proxy that the environment names is not for the loopback, nor for whom NO_PROXY names',
          'A SOCKS proxy that the kubeconfig names',
        ],
        [CLIENT]: [
          'A 401 reads a token from its file again: of a kubeconfig, and of a pod',
          'A credential plugin is asked once, again after a 401, and its output is in no error',
        ],
        [PLUGINS]: [
          'The certificate that a credential plugin gives is shown to the API server',
          'A plugin gets its arguments and variables, and is asked again when what it gave is over',
          'A plugin that hangs is ended with what it has started, and the next one may do better',
        ],
        [KUBECONFIG]: ['An auth provider is refused, with the user and what is read instead'],
      },
    },
    {
      field: 'several API servers',
      rule: ['They are tried in turn, and the one that answers is kept.'],
      shownBy: {
        [CLIENT]: [
          'Servers are tried in turn, and the one that answers is kept',
          'A server that is not ready is passed over next time',
        ],
        [REAL_SOURCE]: ['The next API server is asked where one does not answer, and asked on while it does'],
      },
    },
    {
      field: 'a connection that has fallen silent',
      rule: ['It is given up, by the bookmarks that do not come.'],
      shownBy: {
        [REFLECTOR]: ['Silence ends a watch, which then goes on from where it was'],
        [REAL_SOURCE]: [
          'A connection that has fallen silent is given up, and nothing is lost',
          'Late bytes are only late',
        ],
      },
    },
    {
      field: 'pages of a list',
      rule: ['500 objects each; a page that has expired begins the list anew.'],
      shownBy: { [REAL_FAULTS]: ['A list whose next page has expired is begun again'] },
    },
    {
      field: 'before everything is there',
      rule: ['Nothing is reported before Services, slices, nodes, pools and claims have all been listed.'],
      shownBy: {
        'agent/kubernetes/api/api-source.test.ts': [
          'Nothing is reported as long as the list of endpointslices is under way, then all as one change',
        ],
        [REAL_SOURCE]: ['What is there comes as one change, what happens then comes at once'],
      },
    },
    {
      field: 'items of a list',
      rule: [
        'They carry no kind and no apiVersion, which the list has for them; unknown fields harm nothing.',
      ],
      shownBy: { [PARSE]: ['parseObject() reads lists, whose items take their kind from the list'] },
    },
    {
      field: 'lists that lack most of what was there',
      rule: [
        'They are not believed until a second list says the same; an API server that has lost everything is found out.',
      ],
      shownBy: {
        [REFLECTOR]: [
          'An empty list is doubted, however few there were',
          'After a connection broke the store is looked at: an older version or another first object means a list',
        ],
        [REAL_FAULTS]: [
          'Removal of most Services by a list counts only when a second list confirms it',
          'An API server that has lost everything is found out, and what comes back is another object',
        ],
      },
    },
    {
      field: 'no API server at the start',
      rule: ['The last good state is served from disk, and then what differs.'],
      shownBy: {
        [SNAPSHOT]: ['What is read is what was written, to the last field'],
        [REAL_SOURCE]: [
          'An agent that starts without an API server serves the last good state, and then what differs',
        ],
        [REAL_AGENT]: [
          'An agent that restarts without an API server serves on, and reloads nothing when it is back',
        ],
      },
    },
    {
      field: 'an object that cannot be read',
      rule: ['It keeps its last good value and is a problem until it can be.'],
      shownBy: {
        [REFLECTOR]: [
          'An object that cannot be read keeps its last good value and is a problem, until it can be',
        ],
      },
    },
  ],
};

const ADDRESSES: Section = {
  title: 'Addresses',
  rows: [
    {
      field: 'the record, not the status, is the truth',
      rule: ['Claims are read first, then statuses, and only then is anything new given.'],
      shownBy: {
        [ALLOCATION]: [
          'At the start claims count before statuses, statuses before wishes',
          'An address in the status is adopted where it is in a pool and free, before anything new is given',
        ],
        [PROPERTY]: ['Who starts anew from the claims comes to the same, without a write'],
      },
    },
    {
      field: 'an assigned address never moves',
      rule: ['Not because of another Service, a pool that changed, or a restart.'],
      shownBy: {
        [ALLOCATION]: ['A draining pool gives nothing new and takes nothing away'],
        [PROPERTY]: ['An address moves only when its Service asks for another one or for another family'],
      },
    },
    {
      field: 'a Service that is deleted and made again keeps its address',
      rule: ['The address is held for `releaseAfter`; reservations exist without any Service.'],
      shownBy: {
        [ALLOCATION]: [
          'A Service that is deleted and made again gets its address back, and the claim is the same',
          'With releaseAfter 0 an address is free at once',
          'A reservation keeps its address from everybody',
        ],
      },
    },
    {
      field: 'the same input, the same choice',
      rule: ['The choice depends on the name of the Service, so that two allocators agree.'],
      shownBy: {
        [ALLOCATION]: [
          'The choice depends on the name of the Service and not on what other Services there are',
        ],
        [PROPERTY]: ['The order in which objects come makes no difference'],
      },
    },
    {
      field: 'a second claimant',
      rule: ['It waits, says for whom, and gets the address when the first is gone.'],
      shownBy: {
        [ALLOCATION]: [
          'A second claimant waits, says for whom, and gets the address at once when the first of its namespace is gone',
        ],
        [TRANSITIONS]: ['address-passes-to-another-service'],
      },
    },
    {
      field: 'shared addresses',
      rule: [
        'By a key, on disjoint ports and protocols, within a namespace unless the pool says otherwise.',
        'Services that shared one before a pool had it go on sharing it, without a key.',
      ],
      shownBy: {
        [ALLOCATION]: [
          'Services that show one address share it without a key, if each has ports of its own, until one is alone',
          'Services with the same key share an address as long as their ports are disjoint',
          'An address is shared within one namespace, and across them only where the pool says so',
        ],
        [PROPERTY]: [
          'Whatever happens, no address and no port is given twice, and the store holds exactly the claims',
        ],
      },
    },
    {
      field: 'pools for some',
      rule: ['A pool may be for namespaces and labels only; what it has given stays when they change.'],
      shownBy: {
        [ALLOCATION]: [
          'A pool may be for some namespaces and labels only, also when it is asked for by name or address',
        ],
        [REAL_POOLS]: ['A pool for a namespace and labels gives to nobody else, not even who names it'],
      },
    },
    {
      field: 'counts',
      rule: ['Free, used and held addresses of each pool and family are counted.'],
      shownBy: { [ALLOCATION]: ['Counts add up, and a /64 counts as what it is'] },
    },
    {
      field: 'a network that has to be told of addresses',
      rule: [
        'A program of the operator’s is told of each address once its claim is kept, until it succeeds, and of its release; by who writes only.',
      ],
      shownBy: {
        [REAL_PROVISIONER]: [
          'The program is told once the cluster has the claim, again until it succeeds, and of the release when the hold is over',
          'Whoever takes over tells the program of every address in use; who follows tells it nothing',
        ],
      },
    },
    {
      field: 'a pool that is deleted and made again',
      rule: ['Its status names the pool by UID, so that a new one of the name gets its own.'],
      shownBy: {
        [REAL_POOLS]: ['A pool that is deleted and made again has its status again, with the same counts'],
      },
    },
    {
      field: 'an address that somebody else has',
      rule: ['An address that another host of the network already uses is not probed for.'],
      notYet: 'The probe before an address is first announced.',
      shownBy: {},
    },
  ],
};

const WHOLE: Section = {
  title: 'As a whole, for months',
  rows: [
    {
      field: 'churn',
      rule: ['Under 200 writes a second no update is lost, and memory stays as it is.'],
      shownBy: {
        'real/kubernetes-churn.test.ts': [
          'Under 200 endpoint writes a second no update is lost and memory stays flat',
        ],
        [REAL_SOURCE]: ['No update is lost under 200 writes a second while connections are reset'],
      },
    },
    {
      field: 'an API server that is gone',
      rule: [
        'Traffic goes on, also over a restart of the agent or of the host, and nothing is done over after it.',
      ],
      shownBy: {
        'real/kubernetes-away.test.ts': [
          'Without an API server traffic goes on, also over an agent restart after SIGKILL',
          'A host that boots without an API server serves what it served before',
        ],
      },
    },
    {
      field: 'two agents on one cluster',
      rule: [
        'They give the same addresses and render the same bytes; one writes, and the other one takes over.',
      ],
      shownBy: {
        'real/kubernetes-two-agents.test.ts': [
          'Two agents serve the same, one writes and tells what is wrong, and the other one follows when it is killed',
        ],
      },
    },
    {
      field: 'the API server behind a VIP of this host',
      rule: ['What a folder says is served before and without any API server, which may be what it serves.'],
      shownBy: {
        'real/kubernetes-control-plane.test.ts': [
          'A control plane is served before it is there, and its Services are then served through it',
          'An agent that served a folder alone is led to an API server behind a VIP of the same folder',
        ],
      },
    },
    {
      field: 'a part of the cluster',
      rule: ['Settings choose namespaces and a label selector of Services.'],
      shownBy: {
        [REAL_SOURCE]: ['Settings narrow what is watched to namespaces and Services of a selector'],
      },
    },
    {
      field: 'a Service that is gone',
      rule: ['Nothing is kept of it, also where only a list that broke off had shown it.'],
      shownBy: {
        'agent/kubernetes/api/api-source.test.ts': [
          'A Service that was seen only in a list that broke off is not there for those who write',
        ],
      },
    },
  ],
};

export const conformance: readonly Section[] = [SERVICE, TOLD, SLICES, NODES, WATCHING, ADDRESSES, WHOLE];
