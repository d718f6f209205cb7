// `headgate run`: the agent itself, which main.ts starts.

import type { Command } from './command.ts';

export const run: Command = {
  name: 'run',
  purpose: 'run the agent until SIGTERM',
  details: [
    'HAProxy continues to serve after the end of the agent, and the next agent takes it over; with --stop-dataplane-on-exit the agent ends both.',
  ],
  flags: {},
  settings: 'all',
  exits: { 0: 'stopped by a signal', 1: 'cannot start', 2: 'settings cannot be used' },
  examples: [
    {
      line: 'headgate run --manifests examples/manifests',
      doc: 'serves the Services of a folder, or of one file',
    },
    { line: 'headgate run --kubeconfig /etc/headgate/kubeconfig', doc: 'serves the Services of a cluster' },
    { line: 'headgate run --config /etc/headgate/headgate.yaml', doc: 'takes the settings from a file' },
  ],
};
