// What Kubernetes asks of a load balancer: the fields of EndpointSlices and Nodes, and which members they give.

import type { Section } from './row.ts';

export const ENDPOINT_SLICES: Section = {
  title: 'Fields of an EndpointSlice, and which endpoints are used',
  rows: [
    {
      field: 'endpoints[].conditions',
      rule: ['An absent `ready` is true, an absent `serving` is `ready`, an absent `terminating` is false.'],
    },
    {
      field: 'no ready endpoint',
      rule: [
        'If no endpoint is ready, or serving and terminating, new connections are refused, as by kube-proxy; a listener of HTTP answers 503.',
      ],
    },
    {
      field: 'endpoints[].addresses',
      rule: ['Only the first one is used.'],
    },
    {
      field: 'the largest slice',
      rule: ['A slice may hold 1,000 endpoints and 100 ports.'],
    },
    {
      field: 'label kubernetes.io/service-name',
      rule: ['It joins slices and Service, within their namespace; it may change.'],
    },
    {
      field: 'label service.kubernetes.io/headless',
      rule: ['A slice with it gives no Service members, as in kube-proxy.'],
    },
    {
      field: 'ports[].name',
      rule: [
        'Ports are joined by name and protocol, slice by slice: a target port may differ between slices.',
      ],
    },
    {
      field: 'duplicates',
      rule: [
        'An endpoint may be in two slices while the controller moves it: it is one member, with the better conditions.',
      ],
    },
    {
      field: 'addressType',
      rule: ['Each family serves the VIPs of its own; `FQDN` is not served and is reported.'],
    },
    {
      field: 'the last pods (KEP-1669)',
      rule: ['If none is ready, endpoints that terminate but serve are used.'],
    },
    {
      field: 'established connections',
      rule: ['An endpoint that terminates but serves keeps its connections and gets no new ones.'],
    },
    {
      field: 'endpoints[].hints.forZones',
      rule: [
        'Used if the setting `zone` is set, every ready endpoint has hints, and one names this zone; not with `externalTrafficPolicy: Local`.',
      ],
    },
    {
      field: 'endpoints[].hints.forNodes',
      rule: ['Never used: a load balancer outside the cluster is on no node.'],
    },
    {
      field: 'annotation endpoints.kubernetes.io/last-change-trigger-time',
      rule: [
        'The start of [network programming latency](metrics.md#network-programming-latency), counted as kube-proxy counts it.',
      ],
    },
    {
      field: 'Endpoints, the old kind',
      rule: ['Read in manifests only, and only if the Service has no EndpointSlice.'],
    },
  ],
};

export const NODES: Section = {
  title: 'Fields of a Node, if members are nodes',
  rows: [
    {
      field: 'label node.kubernetes.io/exclude-from-external-load-balancers',
      rule: [
        'Its value is read as a bool, as the cloud provider library does it: `false` includes the node, any other value excludes it.',
      ],
    },
    {
      field: 'condition Ready, taints',
      rule: [
        'A node that is NotReady or unreachable stays a member (KEP-3458): checks find what it cannot serve.',
        'A node that an operator empties with a NoExecute taint of their own is no member.',
      ],
    },
    {
      field: 'metadata.deletionTimestamp of a Node',
      rule: ['The node keeps its connections and gets no new ones.'],
    },
    {
      field: 'status.addresses',
      rule: ['The first InternalIP of the family; a node without one is no member of that family.'],
    },
  ],
};
