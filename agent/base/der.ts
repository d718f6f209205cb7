// Reads values of DER (X.690): certificates and revocation lists are sequences of them. Pure.

export interface DerValue {
  readonly tag: number | undefined;
  readonly content: Buffer;
}

export const INTEGER = 0x02;
export const BIT_STRING = 0x03;
export const SEQUENCE = 0x30;

/** The values that follow each other; empty if one is cut off. */
export function valuesIn(der: Buffer): readonly DerValue[] {
  const values: DerValue[] = [];
  for (let at = 0; at < der.length; ) {
    const first = der[at + 1] ?? 0x80;
    const lengthBytes = first < 0x80 ? 0 : first - 0x80;
    const start = at + 2 + lengthBytes;
    if (first === 0x80 || lengthBytes > 4 || start > der.length) return [];
    const end = start + (lengthBytes === 0 ? first : der.readUIntBE(at + 2, lengthBytes));
    if (end > der.length) return [];
    values.push({ tag: der[at], content: der.subarray(start, end) });
    at = end;
  }
  return values;
}
