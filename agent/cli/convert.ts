// `headgate convert metallb FILE...`: writes MetalLB's pools and peers as AddressPools and BGPPeers to stdout, and to stderr what has
// no match.
// Needs no agent and no cluster.

import { readFileSync } from 'node:fs';
import { counted } from '../base/counted.ts';
import { HeadgateError, messageOf } from '../base/errors.ts';
import { printable, quote } from '../base/quote.ts';
import { parseYamlDocuments } from '../base/yaml.ts';
import type { Command } from './command.ts';
import { usageError } from './command-line.ts';
import { convertMetallb } from './convert-metallb.ts';

const STDIN = 0;

export const convert: Command = {
  name: 'convert',
  purpose: "write another load balancer's objects as Headgate's",
  details: [
    'Reads files, or - for standard input: objects of MetalLB, or its ConfigMap from before 0.13. Prints AddressPools, with what advertisements say of them, and BGPPeers for kubectl apply, and as a comment the settings that each host needs. Each field without a match is a line on stderr, with its object and its value.',
  ],
  arguments: [{ name: 'metallb' }, { name: 'FILE...' }],
  flags: {},
  settings: 'none',
  exits: { 0: 'everything has a match', 1: 'something has none, or cannot be read' },
  examples: [
    {
      line: 'kubectl get ipaddresspools,l2advertisements,bgpadvertisements,bgppeers,bfdprofiles,communities.metallb.io -A -o yaml | headgate convert metallb - > pools.yaml',
      doc: 'the objects of a cluster with MetalLB',
    },
    { line: 'headgate convert metallb metallb.yaml', doc: 'a file' },
  ],
  run: ({ positionals: [from = '', ...files] }) => {
    if (from !== 'metallb')
      throw usageError(`Cannot convert from ${quote(from)}: the only choice is "metallb"`);
    const { text, pools, peers, notes } = convertMetallb(files.flatMap(documentsOf));
    if (text !== '') process.stdout.write(text);
    for (const note of notes) console.error(printable(note));
    const objects = [counted(pools, 'AddressPool'), ...(peers > 0 ? [counted(peers, 'BGPPeer')] : [])];
    console.error(`${objects.join(', ')}, ${counted(notes.length, 'line')} without a match`);
    return notes.length === 0 ? 0 : 1;
  },
};

/** Errors: USAGE. */
function documentsOf(file: string): readonly unknown[] {
  let text: string;
  try {
    text = readFileSync(file === '-' ? STDIN : file, 'utf8');
  } catch (error) {
    throw new HeadgateError('USAGE', `Cannot read "${file}": ${messageOf(error)}`, { cause: error });
  }
  const { documents, errors } = parseYamlDocuments(text);
  const [error] = errors;
  if (error !== undefined)
    throw new HeadgateError('USAGE', `Cannot read "${file}": line ${error.line}: ${error.message}`);
  return documents.map(({ value }) => value);
}
