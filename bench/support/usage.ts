// The processor time, memory and sockets of processes, from /proc. Values of a process that has ended are 0.

import { readFileSync } from 'node:fs';

/** Milliseconds of processor time of all threads so far, in steps of 10. */
export function processorTime(pid: number): number {
  // utime and stime are the 12th and 13th fields after the name in brackets.
  const fields = read(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ') ?? [];
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * 10;
}

/** Resident memory in megabytes (10^6 bytes). */
export function residentMemory(pid: number): number {
  return status(pid, 'VmRSS');
}

/** The highest resident memory so far. */
export function peakMemory(pid: number): number {
  return status(pid, 'VmHWM');
}

/** The process and all its descendants. */
export function processTree(pid: number): number[] {
  const children = read(`/proc/${pid}/task/${pid}/children`).trim();
  const below = children === '' ? [] : children.split(' ').map(Number);
  return [pid, ...below.flatMap(processTree)];
}

/** Counts the sockets that listen on `port` of one of these IPv4 addresses. */
export function listeningSockets(port: number, addresses: Iterable<string>): number {
  const places = new Set([...addresses].map((address) => inHex(address, port)));
  let count = 0;
  for (const line of read('/proc/net/tcp').split('\n')) {
    const [, local = '', , state] = line.trim().split(/\s+/, 4);
    if (state === '0A' && places.has(local)) count++;
  }
  return count;
}

/** The form of /proc/net/tcp on a little-endian machine: the last byte of the address first. */
function inHex(address: string, port: number): string {
  const hex = (value: number, digits: number): string =>
    value.toString(16).toUpperCase().padStart(digits, '0');
  const bytes = address.split('.').map((byte) => hex(Number(byte), 2));
  return `${bytes.reverse().join('')}:${hex(port, 4)}`;
}

function status(pid: number, field: string): number {
  const [, kilobytes = '0'] =
    new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(read(`/proc/${pid}/status`)) ?? [];
  return (Number(kilobytes) * 1024) / 1e6;
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
