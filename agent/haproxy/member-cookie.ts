// The value of the cookie by which clients keep a member: as HAProxy makes it of the pool's key, and of the member's address and port
// (`dynamic-cookie-key`). Pure.

import { addressBytes } from '../base/ip.ts';
import { xxh64 } from '../base/xxh64.ts';
import type { Listener, Member } from '../model/load-balancer.ts';
import { cookieKeyOf } from './config/listener-config.ts';

/** The member that has the value; undefined if none has. */
export function memberOfCookie(
  { name, pool }: Pick<Listener, 'name' | 'pool'>,
  value: string,
): Member | undefined {
  const key = cookieKeyOf(name, pool);
  return pool.members.find((member) => cookieOf(key, member) === value);
}

export function cookieOf(key: string, { address, port }: Pick<Member, 'address' | 'port'>): string {
  const ofPort = Buffer.alloc(4);
  ofPort.writeInt32BE(port);
  const bytes = Buffer.concat([Buffer.from(key), addressBytes(address), ofPort]);
  return xxh64(bytes).toString(16).padStart(16, '0');
}
