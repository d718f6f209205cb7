// `headgate version`: the version of the agent, and of the Node that runs it.

import { version as own } from '../base/version.ts';
import { type Command, JSON_FLAG } from './command.ts';
import { print } from './command-line.ts';

export const version: Command = {
  name: 'version',
  purpose: 'show the version',
  flags: JSON_FLAG,
  settings: 'none',
  exits: { 0: 'shown' },
  examples: [{ line: 'headgate version --json', doc: 'also the version of Node' }],
  run: (given) => {
    print(given, { version: own, node: process.versions.node }, [`headgate ${own}`]);
    return 0;
  },
};
