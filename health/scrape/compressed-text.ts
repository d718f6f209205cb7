// A compressed text that is kept, and becomes a gzip file (RFC 1952) together with the text that follows it: that text is
// compressed by itself, so the two only need to be joined. Compresses in another thread, piece by piece, with rests if asked.

import { constants, crc32, createDeflateRaw } from 'node:zlib';

export interface CompressedText {
  /** Deflated, without an end. */
  readonly bytes: Buffer;
  /** The checksum of the text. */
  readonly crc: number;
  readonly length: number;
}

const LEVEL = constants.Z_BEST_SPEED;
/** Magic number, method deflate, no flags, no time, fastest, unknown system. */
const HEAD = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255]);

/** Waits between two pieces. */
export type Rest = () => Promise<void>;

export function keep(pieces: Iterable<string>, rest?: Rest): Promise<CompressedText> {
  return deflated(pieces, 0, constants.Z_SYNC_FLUSH, rest);
}

/** The gzip file, in parts. */
export async function gzipFile(kept: CompressedText, rest: Iterable<string>): Promise<readonly Buffer[]> {
  const { bytes, crc, length } = await deflated(rest, kept.crc, constants.Z_FINISH);
  const tail = Buffer.alloc(8);
  tail.writeUInt32LE(crc, 0);
  tail.writeUInt32LE((kept.length + length) % 2 ** 32, 4);
  return [HEAD, kept.bytes, bytes, tail];
}

/** `crc`: of the text before. */
async function deflated(
  pieces: Iterable<string>,
  crc: number,
  end: number,
  rest?: Rest,
): Promise<CompressedText> {
  const stream = createDeflateRaw({ level: LEVEL });
  const compressed: Buffer[] = [];
  const { promise: failed, reject } = Promise.withResolvers<never>();
  stream.on('data', (bytes: Buffer) => compressed.push(bytes)).on('error', reject);
  const text = { crc, length: 0 };
  for (const each of pieces) {
    if (text.length > 0) await rest?.();
    const piece = Buffer.from(each);
    text.crc = crc32(piece, text.crc);
    text.length += piece.length;
    await Promise.race([failed, new Promise<void>((written) => stream.write(piece, () => written()))]);
  }
  await Promise.race([failed, new Promise<void>((flushed) => stream.flush(end, flushed))]);
  stream.close();
  return { ...text, bytes: Buffer.concat(compressed) };
}
