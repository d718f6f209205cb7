// A heartbeat on the wire: the compressed message, and an HMAC of it in hexadecimal digits. Pure.

import { createHmac } from 'node:crypto';
import { deflateSync } from 'node:zlib';

const LEVEL = 9;
const HMAC_DIGITS = 64;
/** The data of a UDP datagram over IPv4: a longer one cannot be sent. */
const MAX_BYTES = 65_507;

export function envelope(message: string, key: string): Buffer {
  const packed = deflateSync(message, { level: LEVEL });
  const digits = createHmac('sha256', key).update(packed).digest('hex');
  return Buffer.concat([packed, Buffer.from(digits, 'ascii')]);
}

export function fitsDatagram(bytes: Buffer): boolean {
  return bytes.length <= MAX_BYTES;
}

/** The part of a message that must go so that the rest fits, from 0 to 1, with some to spare. */
export function excessOf(bytes: Buffer): number {
  return Math.min(1, Math.max(0, 1 - (MAX_BYTES - HMAC_DIGITS) / bytes.length) * 1.02 + 0.001);
}
