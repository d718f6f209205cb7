// Segments that the kernel has dropped because of their MD5 signature (RFC 2385): the only sign of another password, since
// the session is silent then. Counted for a network namespace, so another speaker in it counts too.

import { readFile } from 'node:fs/promises';

export interface SignatureFaults {
  /** Signed with another password. */
  readonly wrong: number;
  /** Not signed, though this host has a password. */
  readonly missing: number;
  /** Signed, though this host has no password. */
  readonly unexpected: number;
}

/** `pid`: a process in the network namespace. Zeros if the kernel does not count. */
export async function signatureFaults(pid: number): Promise<SignatureFaults> {
  const text = await readFile(`/proc/${pid}/net/netstat`, 'utf8').catch(() => '');
  return parseSignatureFaults(text);
}

/** The names of a protocol stand in one line, the numbers in the next. */
export function parseSignatureFaults(text: string): SignatureFaults {
  const [names = [], numbers = []] = text
    .split('\n')
    .filter((line) => line.startsWith('TcpExt:'))
    .map((line) => line.split(' '));
  const of = (name: string): number => Number(numbers[names.indexOf(name)] ?? 0) || 0;
  return {
    wrong: of('TCPMD5Failure'),
    missing: of('TCPMD5NotFound'),
    unexpected: of('TCPMD5Unexpected'),
  };
}
