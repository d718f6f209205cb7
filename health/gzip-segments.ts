// A gzip file (RFC 1952) put together from segments that are packed one by one, each without a look at those before it:
// so that one that has not changed can be used again, wherever in the file it stands. Pure.

import { constants, crc32, deflateRawSync } from 'node:zlib';

/** A text as it stands in the file. */
export interface Segment {
  readonly bytes: Buffer;
  /** Of the text: its check sum, and what the sum of all before it is multiplied with when this one follows. */
  readonly crc: number;
  readonly shift: number;
  readonly length: number;
}

/** What is like the line before it lies near: a small window finds it, and takes less memory for each segment. */
const OPTIONS = {
  level: constants.Z_BEST_SPEED,
  windowBits: 13,
  chunkSize: 4_096,
  // Ends at a whole byte, with more to follow.
  finishFlush: constants.Z_SYNC_FLUSH,
};
const HEAD = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255]);
/** A last block with nothing in it. */
const LAST = [0x03, 0x00];

/** `memory`: of a segment that nobody needs any more, used again where there is room in it. */
export function packed(text: Buffer, memory?: Buffer): Segment {
  return {
    bytes: held(deflateRawSync(text, OPTIONS), memory),
    crc: crc32(text),
    shift: power(text.length),
    length: text.length,
  };
}

/** What stands around the segments; each must be told of in its order. */
export class GzipFile {
  readonly head: Buffer = HEAD;
  #crc = 0;
  #length = 0;

  follows({ crc, shift, length }: Segment): void {
    this.#crc = (multiplied(shift, this.#crc) ^ crc) >>> 0;
    this.#length = (this.#length + length) % 2 ** 32;
  }

  tail(): Buffer {
    const tail = Buffer.from([...LAST, 0, 0, 0, 0, 0, 0, 0, 0]);
    tail.writeUInt32LE(this.#crc, 2);
    tail.writeUInt32LE(this.#length, 6);
    return tail;
  }
}

/**
 * Copied from where they were packed, which is longer, into memory that has some room for more: what is packed again at
 * each scrape would otherwise leave its memory to the garbage collector each time, which comes seldom for it.
 */
function held(bytes: Buffer, memory: Buffer | undefined): Buffer {
  const { length } = bytes;
  const own =
    memory !== undefined && memory.buffer.byteLength >= length
      ? Buffer.from(memory.buffer, 0, length)
      : Buffer.allocUnsafeSlow(length + (length >> 3)).subarray(0, length);
  bytes.copy(own);
  return own;
}

/*
 * Check sums are polynomials over GF(2) modulo CRC-32's, with the coefficient of x^0 in the highest bit. The sum of two
 * texts one after the other is that of the first times x^(8 × length of the second), plus that of the second.
 */
const POLYNOMIAL = 0xedb88320;
const ONE = 0x80000000;
/** x^(2^n). */
const SQUARES: readonly number[] = squares();

function multiplied(a: number, b: number): number {
  let product = 0;
  let factor = b;
  for (let bit = ONE; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) product ^= factor;
    factor = (factor & 1) === 0 ? factor >>> 1 : (factor >>> 1) ^ POLYNOMIAL;
  }
  return product >>> 0;
}

function squares(): readonly number[] {
  const all = [ONE >>> 1];
  while (all.length < 35) {
    const last = all.at(-1) ?? 0;
    all.push(multiplied(last, last));
  }
  return all;
}

/** x^(8 × length); up to 4 GiB. */
function power(length: number): number {
  let product = ONE;
  for (let rest = length, at = 3; rest > 0; rest = Math.floor(rest / 2), at++)
    if (rest % 2 === 1) product = multiplied(SQUARES[at] as number, product);
  return product;
}
