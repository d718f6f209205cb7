// A compressed text that is kept, and becomes a gzip file (RFC 1952) together with the text that follows it. Each piece
// is compressed in another thread and refers to no piece before it, so the compressed pieces only need to be joined.

import { constants, crc32, deflateRaw } from 'node:zlib';

export interface KeptText {
  /** Deflated, without an end. */
  readonly bytes: Buffer;
  /** Of the text. */
  readonly crc: number;
  readonly length: number;
}

const LEVEL = constants.Z_BEST_SPEED;
/** Magic number, method deflate, no flags, no time, fastest, unknown system. */
const HEAD = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255]);

export async function keep(pieces: Iterable<Buffer>): Promise<KeptText> {
  const compressed: Buffer[] = [];
  let [crc, length] = [0, 0];
  for (const piece of pieces) {
    compressed.push(await deflated(piece, constants.Z_SYNC_FLUSH));
    crc = crc32(piece, crc);
    length += piece.length;
  }
  return { bytes: Buffer.concat(compressed), crc, length };
}

/** The gzip file, in parts. */
export async function gzipFile(kept: KeptText, rest: Buffer): Promise<readonly Buffer[]> {
  const tail = Buffer.alloc(8);
  tail.writeUInt32LE(crc32(rest, kept.crc), 0);
  tail.writeUInt32LE((kept.length + rest.length) % 2 ** 32, 4);
  return [HEAD, kept.bytes, await deflated(rest, constants.Z_FINISH), tail];
}

function deflated(text: Buffer, finishFlush: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    deflateRaw(text, { level: LEVEL, finishFlush }, (error, bytes) =>
      error ? reject(error) : resolve(bytes),
    );
  });
}
