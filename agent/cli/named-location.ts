// The address, address with a port, pod or node that an argument of a command means. Pure.

import { parseAddress } from '../base/ip.ts';
import type { Arguments } from './command.ts';
import { isName, namespaceOf } from './command-line.ts';

/** The query for the agent; undefined if the argument has another form. */
export function locationFrom(given: Arguments): Readonly<Record<string, string>> | undefined {
  const [text = ''] = given.positionals;
  const [, v6, v4 = '', port = ''] = /^(?:\[([0-9a-fA-F:.]+)\]|([\d.]+)):(\d{1,5})$/.exec(text) ?? [];
  const address = parseAddress(port === '' ? text : (v6 ?? v4))?.address;
  if (address !== undefined) return { address, ...(port !== '' && { port }) };
  const [kind = '', ...rest] = text.split('/');
  const [first = '', second] = rest;
  if (/^pods?$/i.test(kind) && rest.length > 0 && rest.length < 3 && rest.every(isName)) {
    const namespace = second === undefined ? (namespaceOf(given) ?? 'default') : first;
    return { target: `Pod/${second ?? first}`, namespace };
  }
  // A namespace may have the name "node", in lower case.
  return kind === 'Node' && rest.length === 1 && isName(first) ? { target: `Node/${first}` } : undefined;
}
