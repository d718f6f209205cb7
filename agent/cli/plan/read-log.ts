// Asks the requests of logs of both states: whole files, also compressed ones, or standard input. A log without a request is an error,
// because it would look as if nothing differed.

import { closeSync, createReadStream, openSync, readSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { counted } from '../../base/counted.ts';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import type { RequestDifferences } from '../../report/difference/request-differences.ts';
import { loggedRequest } from '../../report/difference/request-log.ts';
import type { LogReader } from './answer.ts';

const STDIN = '-';
/** More of a line is not read: HAProxy's longest have 64 KB. */
const MAX_LINE_CHARACTERS = 256 * 1_024;
const MAX_SHOWN = 200;
const CHUNK_BYTES = 1_024 * 1_024;

interface Unread {
  count: number;
  first: string;
}

/** `host`: of lines that have none. Errors when it is called: USAGE if a log cannot be read, or has no request. */
export function logReader(paths: readonly string[], host: string): LogReader {
  return async (differences) => {
    const unread: Unread = { count: 0, first: '' };
    for (const path of paths) {
      const [asked, missed] = [differences.asked, unread.count];
      try {
        for await (const lines of linesOf(bytesOf(path)))
          for (const line of lines) ask(differences, line, host, unread);
      } catch (error) {
        throw unusable(path, messageOf(error), error);
      }
      if (differences.asked === asked)
        throw unusable(path, noRequest(unread.count - missed, unread.first, host));
    }
    return { unread: unread.count, firstUnread: unread.first };
  };
}

function ask(differences: RequestDifferences, line: string, host: string, unread: Unread): void {
  if (line.trim() === '') return;
  const found = loggedRequest(line, host);
  if (found === undefined) {
    // A query may have secrets.
    if (unread.count === 0) unread.first = line.slice(0, MAX_SHOWN).replace(/\?[^\s"]*/g, '?…');
    unread.count++;
    return;
  }
  const { request, place, client } = found;
  const words = (): string => {
    const from = client.from === undefined ? '' : ` from ${client.from.address}`;
    return `${request.method} ${request.host}${request.path}${from}`;
  };
  differences.ask(request, place, words, client);
}

function noRequest(lines: number, first: string, host: string): string {
  if (lines === 0) return 'it is empty';
  const hint = host === '' ? '; lines without a host need --host' : '';
  return `none of its ${counted(lines, 'line')} has a request, such as ${quote(first)}${hint}`;
}

function unusable(path: string, why: string, cause?: unknown): HeadgateError {
  return new HeadgateError('USAGE', `Cannot use the log ${quote(path)}: ${why}`, { cause });
}

/** Errors: those of files, and of compressed data. */
function bytesOf(path: string): Readable {
  if (path === STDIN) return process.stdin;
  const decompress = decompressorOf(path);
  const input = createReadStream(path, { highWaterMark: CHUNK_BYTES });
  if (decompress === undefined) return input;
  input.on('error', (error) => decompress.destroy(error));
  return input.pipe(decompress);
}

function decompressorOf(
  path: string,
): ReturnType<typeof createGunzip | typeof createZstdDecompress> | undefined {
  const magic = Buffer.alloc(4);
  const file = openSync(path, 'r');
  try {
    readSync(file, magic, 0, magic.length, null);
  } finally {
    closeSync(file);
  }
  if (magic.readUInt16BE(0) === 0x1f8b) return createGunzip();
  return magic.readUInt32LE(0) === 0xfd2fb528 ? createZstdDecompress() : undefined;
}

/** The lines of each piece. A longer line than the most is cut, so that no file takes much memory. */
async function* linesOf(bytes: AsyncIterable<Buffer>): AsyncGenerator<readonly string[]> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  for await (const piece of bytes) {
    const lines = (rest + decoder.write(piece)).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > MAX_LINE_CHARACTERS) rest = rest.slice(0, MAX_LINE_CHARACTERS);
    yield lines;
  }
  yield [rest + decoder.end()];
}
