// Compares what a worker lists with a text: whether each server is as the text says, and which others wait for their
// deletion. Pure.

import { parseAddress } from '../base/ip.ts';
import { parseServersState, type ServerState } from '../haproxy/socket/servers-state.ts';
import { OWN_PROXY } from './second-file.ts';
import type { PushedText } from './text/pushed-text.ts';
import type { ServerLine } from './text/server-line.ts';

export interface Readback {
  /** The first server that is not as the text says, in words; '' if all are. */
  readonly difference: string;
  /** Servers in maintenance that the text does not have, by backend. */
  readonly leaving: readonly { readonly backend: string; readonly server: ServerLine }[];
}

/** `answer`: to `show servers state`. Errors: RUNTIME_REPLY. */
export function readBack(answer: string, { sections }: PushedText): Readback {
  const leaving: { readonly backend: string; readonly server: ServerLine }[] = [];
  const found = new Set<string>();
  for (const state of parseServersState(answer)) {
    const { backend, server: name } = state;
    if (OWN_PROXY.test(backend)) continue;
    const section = sections.get(`backend ${backend}`);
    if (section === undefined) return { difference: `backend ${backend} is not in the text`, leaving: [] };
    const line = section.servers.get(name);
    if (line !== undefined) {
      const difference = differenceOf(state, line);
      if (difference !== '') return { difference: `server ${name} of ${backend} ${difference}`, leaving: [] };
      found.add(`${backend} ${name}`);
    } else if (state.state === 'maint') leaving.push({ backend, server: strangerOf(state) });
    else return { difference: `server ${name} of ${backend} is not in the text`, leaving: [] };
  }
  for (const { kind, name: backend, servers } of sections.values())
    for (const name of kind === 'backend' ? servers.keys() : [])
      if (!found.has(`${backend} ${name}`))
        return { difference: `server ${name} of ${backend} is missing`, leaving: [] };
  return { difference: '', leaving };
}

function differenceOf(state: ServerState, line: ServerLine): string {
  const isAt = sameAddress(state.address, line.address) && state.port === line.port;
  if (!isAt) return `is at ${state.address} port ${state.port}`;
  if (state.weight !== line.weight) return `has weight ${state.weight}`;
  if (state.state !== (line.isDisabled ? 'maint' : 'ready')) return `is in state "${state.state}"`;
  // That of a server which was added is off while it is disabled.
  const isOff = state.check === 'none' || (state.check === 'off' && !line.isDisabled);
  if (line.words.includes('check') ? isOff : state.check === 'on') return `has the check "${state.check}"`;
  return '';
}

function sameAddress(one: string, other: string): boolean {
  return one === other || parseAddress(one)?.address === parseAddress(other)?.address;
}

/** Its words are unknown, so that it is never made ready again. */
function strangerOf({ server: name, address, port, weight }: ServerState): ServerLine {
  const fault = 'an agent before this one has removed it';
  return { name, address, port, weight, isDisabled: true, words: [], line: '', fault };
}
