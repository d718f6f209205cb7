// The addresses that clients use instead of those of a pool, because a NAT outside the load balancer translates them: a
// range of the size of the pool's only block, one to one. Pure.

import { type AddressRange, addressNumber, addressText, parseBlock } from '../base/ip-range.ts';
import { object, textReader } from '../base/validate.ts';

/** Both have the same size. */
export interface PublicAddresses {
  readonly inside: AddressRange;
  readonly outside: AddressRange;
}

const NOT =
  'is not a CIDR without host bits (203.0.113.0/28), a range (203.0.113.1-203.0.113.9) or an address';

export const publicSchema = object({
  from: textReader((text) => parseBlock(text)?.range, NOT).meta({
    type: 'string',
    maxLength: 83,
    pattern: '^[0-9A-Fa-f:.]+(/[0-9]{1,3}| *- *[0-9A-Fa-f:.]+)?$',
    description:
      'As many addresses as the only block of the pool has: the first is for its first, and so on.',
  }),
}).meta({
  description:
    'The addresses that clients use, where a NAT translates them to those of the pool: statuses show them.',
});

/** In CEL; whether the sizes are equal is left to the agent. */
export const ONE_BLOCK = {
  rule: '!has(self.public) || size(self.blocks) == 1',
  message: 'a pool with public addresses has one block',
} as const;

/** undefined if the sizes differ, or the families. */
export function publicAddresses(inside: AddressRange, outside: AddressRange): PublicAddresses | undefined {
  const isSame = inside.family === outside.family;
  return isSame && inside.last - inside.first === outside.last - outside.first
    ? { inside, outside }
    : undefined;
}

/** The address that clients use; `address` itself if the pool has no other one. */
export function toPublic(of: PublicAddresses | undefined, address: string): string {
  return of === undefined ? address : (moved(address, of.inside, of.outside) ?? address);
}

/** The address of the pool; undefined if it is not the public one of any. */
export function toLocal(of: PublicAddresses | undefined, address: string): string | undefined {
  return of && moved(address, of.outside, of.inside);
}

function moved(address: string, from: AddressRange, to: AddressRange): string | undefined {
  if (address.includes(':') !== (from.family === 'v6')) return undefined;
  const number = addressNumber(address);
  if (number < from.first || number > from.last) return undefined;
  return addressText(to.first + (number - from.first), to.family);
}
