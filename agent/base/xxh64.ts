// XXH64 with seed 0, with which HAProxy makes values of cookies: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md. Pure.

const [P1, P2, P3, P4, P5] = [
  0x9e3779b185ebca87n,
  0xc2b2ae3d27d4eb4fn,
  0x165667b19e3779f9n,
  0x85ebca77c2b2ae63n,
  0x27d4eb2f165667c5n,
] as const;
const STRIPE_BYTES = 32;

export function xxh64(bytes: Buffer): bigint {
  let at = 0;
  let sum: bigint = P5;
  if (bytes.length >= STRIPE_BYTES) {
    const lanes = [P1 + P2, P2, 0n, -P1].map(u64);
    for (; at + STRIPE_BYTES <= bytes.length; at += STRIPE_BYTES)
      for (const [lane, value] of lanes.entries())
        lanes[lane] = round(value, bytes.readBigUInt64LE(at + lane * 8));
    sum = u64(
      lanes.reduce((total, lane, index) => total + rotated(lane, [1n, 7n, 12n, 18n][index] ?? 0n), 0n),
    );
    for (const lane of lanes) sum = u64((sum ^ round(0n, lane)) * P1 + P4);
  }
  sum = u64(sum + BigInt(bytes.length));
  for (; at + 8 <= bytes.length; at += 8)
    sum = u64(rotated(sum ^ round(0n, bytes.readBigUInt64LE(at)), 27n) * P1 + P4);
  if (at + 4 <= bytes.length) {
    sum = u64(rotated(sum ^ u64(BigInt(bytes.readUInt32LE(at)) * P1), 23n) * P2 + P3);
    at += 4;
  }
  for (const byte of bytes.subarray(at)) sum = u64(rotated(sum ^ u64(BigInt(byte) * P5), 11n) * P1);
  sum = u64((sum ^ (sum >> 33n)) * P2);
  sum = u64((sum ^ (sum >> 29n)) * P3);
  return sum ^ (sum >> 32n);
}

function round(value: bigint, lane: bigint): bigint {
  return u64(rotated(u64(value + lane * P2), 31n) * P1);
}

function rotated(value: bigint, bits: bigint): bigint {
  return u64((value << bits) | (value >> (64n - bits)));
}

function u64(value: bigint): bigint {
  return BigInt.asUintN(64, value);
}
