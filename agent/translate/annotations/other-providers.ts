// Annotations by which a Service asks other load balancers for something; Headgate ignores those without an equivalent, and
// reports them. Pure. Sources: the documents of each provider's controller.

/** Beginnings of names. */
const ASKING: readonly string[] = [
  // AWS, Azure, DigitalOcean, Linode, Vultr, Scaleway, OVH, Alibaba and others.
  'service.beta.kubernetes.io/',
  'service.kubernetes.io/ibm-load-balancer-',
  'service.kubernetes.io/qcloud-loadbalancer-',
  'cloud.google.com/load-balancer-type',
  'cloud.google.com/l4-rbs',
  'networking.gke.io/load-balancer-',
  'networking.gke.io/internal-load-balancer-',
  'load-balancer.hetzner.cloud/',
  'oci.oraclecloud.com/',
  'oci-network-load-balancer.oraclecloud.com/',
  'loadbalancer.openstack.org/',
  'metallb.io/',
  'metallb.universe.tf/',
  'kube-vip.io/',
  'lbipam.cilium.io/',
  'io.cilium/lb-ipam-',
];

/** What Headgate reads elsewhere, and what the controllers write themselves. */
const NOT_ASKING: ReadonlySet<string> = new Set([
  'service.beta.kubernetes.io/load-balancer-source-ranges',
  'load-balancer.hetzner.cloud/id',
  'load-balancer.hetzner.cloud/ipv4',
  'load-balancer.hetzner.cloud/ipv6',
  'loadbalancer.openstack.org/load-balancer-id',
  'loadbalancer.openstack.org/load-balancer-address',
  'metallb.io/ip-allocated-from-pool',
  'metallb.universe.tf/ip-allocated-from-pool',
  'kube-vip.io/vipHost',
  'kube-vip.io/hwaddr',
  'kube-vip.io/requestedIP',
  'kube-vip.io/active-endpoint',
  'kube-vip.io/active-endpoint-ipv6',
]);

/** True for the name, with its prefix, of an annotation that asks another load balancer for something. */
export function asksAnother(name: string): boolean {
  return ASKING.some((beginning) => name.startsWith(beginning)) && !NOT_ASKING.has(name);
}
