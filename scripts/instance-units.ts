// Turns the units of a host's only load balancer into template units for several instances, each with its own folders,
// settings and network namespace. Pure.

/** The differences, in the order in which they are applied. */
const CHANGES: readonly [from: RegExp, to: string][] = [
  [/^# The agent\. /m, '# The agent of an instance. '],
  [/^(Description=.*)$/m, '$1, instance %i\nRequires=headgate-prepare@%i.service'],
  [/^After=/m, 'After=headgate-prepare@%i.service '],
  [/^\[Service\]$/m, '[Service]\nNetworkNamespacePath=/run/netns/%i'],
  [/headgate-haproxy\.service/g, 'headgate-haproxy@%i.service'],
  [/^Before=headgate\.service$/m, 'Before=headgate@%i.service'],
  [/\/etc\/headgate\/headgate\.yaml/g, '/etc/headgate/%i.yaml'],
  [/(\/var\/lib|\/run)\/headgate\b/g, '$1/headgate@%i'],
  [/:headgate\.(kubeconfig|pair)$/gm, ':headgate@%i.$1'],
];

/** The units with a template unit. */
export const instantiated = ['headgate', 'headgate-haproxy', 'headgate-keepalived', 'headgate-rules'];

/** `text` is the unit without an instance. */
export function instanceUnit(text: string): string {
  return CHANGES.reduce((unit, [from, to]) => unit.replace(from, to), text);
}
