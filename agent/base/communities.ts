// The forms of BGP communities (RFC 1997) and large communities (RFC 8092). Pure.

import { textReader } from './validate.ts';

const WELL_KNOWN: Readonly<Record<string, string>> = {
  'no-export': '65535:65281',
  'no-advertise': '65535:65282',
};

export const community = textReader(
  (text) => WELL_KNOWN[text] ?? numbers(text, 2, 65_535),
  'is not a community such as 65001:100, no-export or no-advertise',
).meta({ type: 'string', maxLength: 32, pattern: '^([0-9]{1,5}:[0-9]{1,5}|no-export|no-advertise)$' });
export const largeCommunity = textReader(
  (text) => numbers(text, 3, 4_294_967_295),
  'is not a large community such as 65001:1:2',
).meta({ type: 'string', maxLength: 32, pattern: '^[0-9]{1,10}:[0-9]{1,10}:[0-9]{1,10}$' });

/** `65001:100` if it is so many numbers up to the largest. */
function numbers(text: string, count: number, largest: number): string | undefined {
  const parts = text.split(':');
  const isRight =
    parts.length === count && parts.every((part) => /^\d{1,10}$/.test(part) && Number(part) <= largest);
  return isRight ? parts.map(Number).join(':') : undefined;
}
