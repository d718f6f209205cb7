// From the units of the one load balancer of a host to those of an instance, of which a host has several: each has its
// folders, its settings and its network namespace. Pure.

/** What differs, in the order in which it is applied. */
const CHANGES: readonly [from: RegExp, to: string][] = [
  [/^# The agent\. /m, '# The agent of an instance. '],
  [/^(Description=.*)$/m, '$1, instance %i\nRequires=headgate-prepare@%i.service'],
  [/^After=/m, 'After=headgate-prepare@%i.service '],
  [/^\[Service\]$/m, '[Service]\nNetworkNamespacePath=/run/netns/%i'],
  [/headgate-haproxy\.service/g, 'headgate-haproxy@%i.service'],
  [/\/etc\/headgate\/headgate\.yaml/g, '/etc/headgate/%i.yaml'],
  [/(\/var\/lib|\/run)\/headgate\b/g, '$1/headgate@%i'],
  [/:headgate\.(kubeconfig|pair)$/gm, ':headgate@%i.$1'],
];

/** The units that have instances. */
export const instantiated = ['headgate', 'headgate-haproxy', 'headgate-keepalived'];

/** `text` is the unit of the host's one load balancer. */
export function instanceUnit(text: string): string {
  return CHANGES.reduce((unit, [from, to]) => unit.replace(from, to), text);
}
