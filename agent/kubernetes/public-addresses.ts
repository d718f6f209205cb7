// The field `public` of a pool: which addresses clients use instead of those of the pool, because a NAT outside the load balancer
// translates them. They follow from the pool's only block, or an owner names one, or the provisioner answers one. Pure.

import { type AddressRange, addressNumber, addressText, parseBlock, rangeText } from '../base/ip-range.ts';
import { boolean, listOf, object, textReader } from '../base/validate.ts';

export type PublicRule =
  /** One to one; both have the same size. */
  | { readonly kind: 'from'; readonly inside: AddressRange; readonly outside: AddressRange }
  /** The owner's annotation names one of these. */
  | { readonly kind: 'allowed'; readonly ranges: readonly AddressRange[] }
  /** The provisioner's answer; until then nothing is published. */
  | { readonly kind: 'provisioner' };

const NOT =
  'is not a CIDR without host bits (203.0.113.0/28), a range (203.0.113.1-203.0.113.9) or an address';
const FORM = {
  type: 'string',
  maxLength: 83,
  pattern: '^[0-9A-Fa-f:.]+(/[0-9]{1,3}| *- *[0-9A-Fa-f:.]+)?$',
} as const;
const ONE_WAY = 'names none, or several, of from, allowed and provisioner: true';

const range = textReader((text) => parseBlock(text)?.range, NOT);

export const publicSchema = object({
  from: range
    .meta({
      ...FORM,
      description:
        'As many addresses as the only block of the pool has: the first is for its first, and so on.',
    })
    .nullish(),
  allowed: listOf(range.meta(FORM))
    .meta({
      minItems: 1,
      maxItems: 100,
      description:
        'The addresses one of which an owner may name in the annotation headgate.io/public-address, if no other has it.',
    })
    .nullish(),
  provisioner: boolean()
    .meta({
      description: 'True: the answer of the provisioner names the address; until then none is published.',
    })
    .nullish(),
})
  .refine(({ from, allowed, provisioner }, refuse) => {
    const ways = [from !== undefined, allowed !== undefined && allowed.length > 0, provisioner === true];
    if (ways.filter(Boolean).length !== 1) refuse([], ONE_WAY);
  })
  .meta({
    description:
      'The addresses that clients use, where a NAT translates them to those of the pool: statuses show them.',
    'x-kubernetes-validations': [
      {
        rule: '(has(self.from) ? 1 : 0) + (has(self.allowed) ? 1 : 0) + (has(self.provisioner) && self.provisioner ? 1 : 0) == 1',
        message: 'public names one of from, allowed and provisioner: true',
      },
    ],
  });

/** In CEL; whether the sizes are equal is left to the agent. */
export const ONE_BLOCK = {
  rule: '!has(self.public) || !has(self.public.from) || size(self.blocks) == 1',
  message: 'a pool with public.from has one block',
} as const;

/** undefined if the sizes of `from` and of the block differ, or their families. */
export function publicRule(
  inside: AddressRange,
  {
    from,
    allowed,
  }: { readonly from?: AddressRange | undefined; readonly allowed?: readonly AddressRange[] | undefined },
): PublicRule | undefined {
  if (allowed !== undefined) return { kind: 'allowed', ranges: allowed };
  if (from === undefined) return { kind: 'provisioner' };
  const isSame = inside.family === from.family && inside.last - inside.first === from.last - from.first;
  return isSame ? { kind: 'from', inside, outside: from } : undefined;
}

/** The address that clients use; `address` itself if it does not follow from the pool. */
export function toPublic(of: PublicRule | undefined, address: string): string {
  return of?.kind === 'from' ? (moved(address, of.inside, of.outside) ?? address) : address;
}

/** The address of the pool; undefined if it is not the public one of any, or does not follow from the pool. */
export function toLocal(of: PublicRule | undefined, address: string): string | undefined {
  return of?.kind === 'from' ? moved(address, of.outside, of.inside) : undefined;
}

/** Completes `its pool "a" `; undefined if an owner may name the address. */
export function whyNotNamed(of: PublicRule | undefined, address: string): string | undefined {
  if (of?.kind !== 'allowed') return 'has no public addresses to name (public.allowed)';
  if (of.ranges.some((each) => offsetIn(each, address) !== undefined)) return undefined;
  return `allows only ${of.ranges.map(rangeText).join(', ')} (public.allowed)`;
}

function moved(address: string, from: AddressRange, to: AddressRange): string | undefined {
  const offset = offsetIn(from, address);
  return offset === undefined ? undefined : addressText(to.first + offset, to.family);
}

function offsetIn({ family, first, last }: AddressRange, address: string): bigint | undefined {
  if (address.includes(':') !== (family === 'v6')) return undefined;
  const number = addressNumber(address);
  return number < first || number > last ? undefined : number - first;
}
