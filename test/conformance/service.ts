// What Kubernetes asks of a load balancer: the fields of a Service, and what is written to it.

import type { Section } from './row.ts';

export const SERVICE: Section = {
  title: 'Fields of a Service',
  rows: [
    {
      field: 'spec.type',
      rule: [
        'A load balancer exists if and only if the type is `LoadBalancer`.',
        'If it changes to another type, listeners, addresses, status, conditions and finalizer are removed, also if no agent ran at the time.',
      ],
    },
    {
      field: 'spec.loadBalancerClass',
      rule: [
        'The class that Headgate serves is a setting; a Service of another class is never touched.',
        'A Service without a class is served only if the setting `handleUnclassed` is on.',
      ],
    },
    {
      field: 'spec.loadBalancerIP',
      rule: [
        'The field is deprecated, but counts if no annotation names an address.',
        'It is only read: an agent may not write a spec.',
      ],
    },
    {
      field: 'spec.loadBalancerSourceRanges',
      rule: [
        'Enforced by HAProxy, because kube-proxy does not see the client.',
        'If the field is empty, the annotation `service.beta.kubernetes.io/load-balancer-source-ranges` counts; without either, every client may connect.',
        'A range counts for its own family: a list of IPv4 ranges closes IPv6.',
        'A range that cannot be read admits no client.',
      ],
    },
    {
      field: 'spec.externalIPs',
      rule: [
        'Served only if the setting `externalIPs` is on, and never in the status (CVE-2020-8554, KEP-5707).',
      ],
    },
    {
      field: 'spec.externalTrafficPolicy',
      rule: [
        'With pods as members, all ready pods are used under both policies; with nodes, `Local` leaves the nodes that have an endpoint in use.',
        'The field is never written.',
      ],
    },
    {
      field: 'spec.healthCheckNodePort',
      rule: [
        'The slices say which nodes have endpoints, and how many, sooner than a probe or the header `X-Load-Balancing-Endpoint-Weight`.',
        'With the health monitor `kube-proxy`, by annotation or as the default, nodes are probed there in addition if `externalTrafficPolicy` is `Local`.',
      ],
    },
    {
      field: 'kube-proxy’s :10256/healthz',
      rule: [
        'With the health monitor `kube-proxy`, by annotation or as the default, nodes are probed there if `externalTrafficPolicy` is `Cluster`; pods are not.',
      ],
    },
    {
      field: 'spec.internalTrafficPolicy',
      rule: ['It is for clients inside the cluster and has no effect.'],
    },
    {
      field: 'spec.sessionAffinity, sessionAffinityConfig',
      rule: [
        '`ClientIP` keeps a client address at its member, for each Service port, for `timeoutSeconds` after its last connection began: 10,800 by default, at most a day.',
        'It survives a reload, and the other host of a pair has the same table; clients of a draining member get another one.',
      ],
    },
    {
      field: 'spec.publishNotReadyAddresses',
      rule: ['The endpoint controller copies it into `ready`, so `ready` is used, not `serving`.'],
    },
    {
      field: 'spec.allocateLoadBalancerNodePorts',
      rule: [
        '`false` means pods as members, also if settings or annotation say nodes.',
        'A port that needs a node port and has none is never sent to port 0: it has no members, an error in the status, and a condition.',
      ],
    },
    {
      field: 'spec.ports[].protocol',
      rule: [
        'One Service may have TCP, UDP and SCTP ports, also with one port number (KEP-1435).',
        'A protocol that is not served has an error in the status and the condition `LoadBalancerPortsError`; the other ports are served.',
      ],
    },
    {
      field: 'spec.ports[].appProtocol',
      rule: ['It is a hint that TCP mode does not need, and has no effect.'],
    },
    {
      field: 'spec.ipFamilies, spec.ipFamilyPolicy',
      rule: [
        'The secondary family may be added and removed while the Service is served; the primary family does not change.',
        '`PreferDualStack` accepts one family, `RequireDualStack` waits for both; without pools the Service is served in the family that it has, and its status names the missing one.',
      ],
    },
    {
      field: 'spec.trafficDistribution',
      rule: ['The field itself has no effect: it reaches a load balancer as hints in the slices.'],
    },
    {
      field: 'no selector',
      rule: ['A Service without a selector is served by the slices that other programs write for it.'],
    },
    {
      field: 'clusterIP: None, type: ExternalName',
      rule: ['Headless and ExternalName Services are not served, and `why` says so.'],
    },
    {
      field: 'labels service.kubernetes.io/service-proxy-name, service.kubernetes.io/headless',
      rule: ['A Service with either label is ignored, as by kube-proxy.'],
    },
    {
      field: 'metadata.deletionTimestamp',
      rule: ['A Service that is being deleted is no longer served, although finalizers still hold it.'],
    },
  ],
};

export const SERVICE_STATUS: Section = {
  title: 'What is written to a Service',
  rows: [
    {
      field: 'status.loadBalancer.ingress[].ip',
      rule: [
        'An address is written after HAProxy has confirmed a port of it, never before, and stays while the Service has it.',
      ],
    },
    {
      field: 'status.loadBalancer.ingress[].ipMode',
      rule: [
        '`Proxy`, so that kube-proxy does not lead traffic from inside past source ranges and PROXY protocol headers (KEP-1860); `VIP` if members see the client’s address on every port of it.',
      ],
    },
    {
      field: 'status.loadBalancer.ingress[].ports',
      rule: ['Every port with its protocol, and an error if it is not served at that address.'],
    },
    {
      field: 'status.conditions',
      rule: [
        '`headgate.io/IPAllocated`, `headgate.io/Programmed`, and Kubernetes’ own `LoadBalancerPortsError`.',
        'Conditions of other writers are left alone, and a time changes only with its status.',
        'A Service without a ready member is programmed, with the reason `NoMembers`.',
      ],
    },
    {
      field: 'finalizer service.kubernetes.io/load-balancer-cleanup',
      rule: [
        'Added before an address is claimed for the Service, or with its first status if none is; removed after HAProxy has confirmed that nothing serves it (KEP-980).',
        'A HAProxy that does not answer does not block a namespace: after two minutes the finalizer is removed.',
      ],
    },
    {
      field: 'a status that another writer changes',
      rule: ['The watch shows it and the agent repairs it; no Service is read on its own.'],
    },
    {
      field: 'a Service that is deleted and created again',
      rule: ['The UID tells them apart: nothing meant for the old one is written to the new one.'],
    },
    {
      field: 'events.k8s.io/v1 Event',
      rule: [
        'Times have six digits; a repeated event is counted in its series; each object, and all together, have a rate limit; an event that fails is dropped.',
      ],
    },
    {
      field: 'coordination.k8s.io/v1 Lease',
      rule: [
        'One agent writes: expiry is measured from the last change of the record, on a monotonic clock, never on the clock of the other agent.',
        'Every write of it is guarded by resourceVersion, and its times have six digits.',
      ],
    },
    {
      field: 'RBAC',
      rule: ['The account may do what the agent requests, and nothing else.'],
    },
  ],
};
