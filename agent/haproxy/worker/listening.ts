// Finds in the kernel's list of sockets whether a process listens on an address and port, also in a network namespace to
// which the agent cannot connect: /proc of a process there has the list. Needs no right to enter the namespace.
// Why: docs/design/decisions/0012-standby-reads-listeners.md

import { open } from 'node:fs/promises';
import { endianness } from 'node:os';
import { messageOf } from '../../base/errors.ts';
import { addressNumber } from '../../base/ip-range.ts';
import { isShortage } from '../../host/shortage.ts';

export interface SocketAddress {
  /** Canonical. */
  readonly address: string;
  readonly port: number;
}

/** Bytes of one read; a thousand sockets take 150,000. */
const CHUNK_BYTES = 65_536;
/** TCP_LISTEN, in the fourth column. */
const LISTENS = '0A';
/** The fourth column of the first line. */
const HEADER = 'st';

/** '' if a process listens, or if that is unknown: process `pid` has ended, or the agent may open no more files. */
export async function whyNotListening(pid: number, to: SocketAddress): Promise<string> {
  const { address, port } = to;
  const table = address.includes(':') ? 'tcp6' : 'tcp';
  try {
    if (await isListed(`/proc/${pid}/net/${table}`, socketText(to))) return '';
    return `Nothing listens on ${address} port ${port}`;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ESRCH' || isShortage(error) ? '' : messageOf(error);
  }
}

/** As the kernel writes it: each 32 bits of the address as a number of this machine. */
export function socketText({ address, port }: SocketAddress): string {
  const digits = addressNumber(address)
    .toString(16)
    .padStart(address.includes(':') ? 32 : 8, '0');
  const words = digits.match(/.{8}/g) ?? [];
  const inOrder = endianness() === 'LE' ? words.map(reversed) : words;
  return `${inOrder.join('')}:${port.toString(16).padStart(4, '0')}`.toUpperCase();
}

/** Listening sockets come first in the list, so that the rest is not read. */
async function isListed(path: string, socket: string): Promise<boolean> {
  const file = await open(path, 'r');
  try {
    const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
    for (let rest = ''; ; ) {
      const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES, null);
      const text = rest + buffer.toString('latin1', 0, bytesRead);
      const end = text.lastIndexOf('\n') + 1;
      const at = text.indexOf(`: ${socket} `);
      if (at >= 0 && at < end) return stateOf(text.slice(text.lastIndexOf('\n', at) + 1)) === LISTENS;
      const last = text.slice(text.lastIndexOf('\n', end - 2) + 1, end);
      if (bytesRead === 0 || ![LISTENS, HEADER].includes(stateOf(last))) return false;
      rest = text.slice(end);
    }
  } finally {
    await file.close();
  }
}

function stateOf(line: string): string {
  return line.trimStart().split(/\s+/, 4)[3] ?? '';
}

function reversed(word: string): string {
  return (word.match(/../g) ?? []).reverse().join('');
}
