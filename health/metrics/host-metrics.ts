// Metrics of the hosts that serve the same VIPs by BGP: who lives, who is connected, and what each serves. Without the setting
// `hosts` they have no samples.

import type { MetricRegistry } from './metric-registry.ts';

/** undefined without the setting `hosts`. */
export type HostsState =
  | {
      readonly hosts: readonly HostState[];
      /** Milliseconds since the epoch; 0 if the credentials cannot be used. */
      readonly credentialsExpire: number;
    }
  | undefined;

interface HostState {
  readonly name: string;
  readonly isSelf: boolean;
  /** '' if both agents receive each other's reports. */
  readonly fault: string;
  readonly bfd: 'up' | 'down' | 'unknown' | '';
  readonly lowered: readonly string[];
  readonly parity: Readonly<Record<'model' | 'running', string>>;
}

export function hostMetrics(registry: MetricRegistry, state: () => HostsState): void {
  const all = () => state()?.hosts ?? [];
  const others = () => all().filter(({ isSelf }) => !isSelf);
  const perHost = (
    name: string,
    help: string,
    hosts: () => readonly HostState[],
    isSo: (host: HostState) => boolean,
  ): void =>
    registry.gauge(name, help, ['host'], () =>
      hosts().map((host) => [{ host: host.name }, Number(isSo(host))]),
    );
  perHost(
    'headgate_host_up',
    'Whether another host lives: by BFD over the back network, without one by the link between the agents',
    others,
    ({ bfd, fault }) => (bfd === '' ? fault === '' : bfd === 'up'),
  );
  perHost(
    'headgate_host_connected',
    'Whether the agents of this host and of another one receive reports of each other',
    others,
    ({ fault }) => fault === '',
  );
  perHost(
    'headgate_host_lowered',
    'Whether a reason lowers a host, so that its routes are the last choice of routers',
    all,
    ({ lowered }) => lowered.length > 0,
  );
  registry.gauge('headgate_host_parity', 'Whether another host has the same state', ['host', 'of'], () =>
    others().flatMap(({ name, parity }) =>
      (['model', 'running'] as const).map(
        (of) => [{ host: name, of }, Number(parity[of] === 'same')] as const,
      ),
    ),
  );
  registry.gauge(
    'headgate_host_credentials_expiry_timestamp_seconds',
    'When the certificate of the links between the hosts expires, since the Unix epoch; 0 if it cannot be used',
    [],
    () => {
      const now = state();
      return now === undefined ? [] : [[{}, now.credentialsExpire / 1000]];
    },
  );
}
