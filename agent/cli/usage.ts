// The commands and exit statuses as `headgate help`, the manual page and the completion show them. Pure.

export interface Usage {
  /** The command with its arguments and its own flags. */
  readonly command: string;
  readonly purpose: string;
}

export const usages: readonly Usage[] = [
  { command: 'run [FLAGS]', purpose: 'run the agent until SIGTERM' },
  { command: 'render --output DIR [--json] [FLAGS]', purpose: 'write the files that run would write' },
  {
    command: 'check [--json] [FLAGS]',
    purpose: 'check settings, versions, rights, limits, ports and the API server',
  },
  { command: 'status [--json]', purpose: 'state of the running agent' },
  { command: 'why NAMESPACE/SERVICE [--json]', purpose: 'why a Service is served or not' },
  { command: 'failover [--force] [--json]', purpose: 'hand the traffic over to the peer' },
  {
    command: 'maintenance on|off [--json]',
    purpose: 'lock this host, so that its peer gets the traffic, or unlock it',
  },
];

export const exitStatus: Readonly<Record<number, string>> = {
  0: 'success',
  1: 'problem found, or failure',
  2: 'invalid command line or settings',
  3: 'no agent answers',
};
