// Turns the units of a host's only load balancer into template units for several instances, each with its own folders,
// settings and network namespace. Pure.

/** The differences, in the order in which they are applied. */
const CHANGES: readonly [from: RegExp, to: string][] = [
  [/^# The agent\. /m, '# The agent of an instance. '],
  [/^(Description=.*)$/m, '$1, instance %i\nRequires=headgate-prepare@%i.service'],
  [/^After=/m, 'After=headgate-prepare@%i.service '],
  [/^\[Service\]$/m, '[Service]\nNetworkNamespacePath=/run/netns/%i'],
  [/headgate-haproxy(-landing)?\.service/g, 'headgate-haproxy$1@%i.service'],
  [/headgate-rules\.service/g, 'headgate-rules@%i.service'],
  [/^Before=headgate\.service$/m, 'Before=headgate@%i.service'],
  [/\/etc\/headgate\/headgate\.yaml/g, '/etc/headgate/%i.yaml'],
  [/(\/var\/lib|\/run)\/headgate\b/g, '$1/headgate@%i'],
  [/:headgate\.(kubeconfig|pair)$/gm, ':headgate@%i.$1'],
];

/** The units with a template unit. */
export const instantiated = [
  'headgate',
  'headgate-haproxy',
  'headgate-haproxy-landing',
  'headgate-keepalived',
  'headgate-rules',
  'headgate-conntrackd',
  'headgate-bird',
];

/**
 * The unit of the landing, from that of the main HAProxy. It is active before HAProxy runs, so that keepalived can start after
 * it, and stop before it, also if the agent never writes the landing's file.
 */
export function landingUnit(text: string): string {
  const wait = /^# At the first start.*\nExecStartPre=\/bin\/sh -c '(until .*; do) sleep 0\.1; (done)'\n/m;
  const [, begin = '', end = ''] = wait.exec(text) ?? [];
  return text
    .replace(/^# HAProxy with .*$/m, '# The landing: a second, small HAProxy that serves new Services first.')
    .replace(/^(Description=.*)$/m, '$1, the landing')
    .replace(/^Wants=.*$/m, 'PartOf=headgate-haproxy.service')
    .replace(wait, '')
    .replace('Type=notify', 'Type=exec')
    .replace(
      "ExecStart=/bin/bash -c '",
      `# With "landing: false" the agent never writes the file.\nExecStart=/bin/bash -c '${begin} sleep 1; ${end}; `,
    )
    .replaceAll(/(\/var\/lib|\/run)\/headgate\/haproxy\b(?!\.)/g, '$1/headgate/haproxy-landing');
}

/** `text` is the unit without an instance. */
export function instanceUnit(text: string): string {
  return CHANGES.reduce((unit, [from, to]) => unit.replace(from, to), text);
}
