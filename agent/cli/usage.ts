// What `headgate help` and the manual page say of each command. Pure.

export interface Usage {
  /** The command with its arguments and flags of its own. */
  readonly command: string;
  readonly purpose: string;
}

export const usages: readonly Usage[] = [
  { command: 'run [FLAGS]', purpose: 'serve what the objects ask for, until SIGTERM' },
  { command: 'render --output DIR [--json] [FLAGS]', purpose: 'write the files that run would write' },
  {
    command: 'check [--json] [FLAGS]',
    purpose: 'settings, versions, rights, limits, ports in use, API server',
  },
  { command: 'status [--json]', purpose: 'what the running agent does' },
  { command: 'why NAMESPACE/SERVICE [--json]', purpose: 'why a Service is served, or not' },
  { command: 'failover [--force] [--json]', purpose: 'hand the traffic over to the peer' },
  {
    command: 'maintenance on|off [--json]',
    purpose: 'lock this host, so that its peer has the traffic; unlock it',
  },
];

export const exitStatus: Readonly<Record<number, string>> = {
  0: 'well',
  1: 'the answer is bad news',
  2: 'the question was wrong',
  3: 'no agent answers',
};
