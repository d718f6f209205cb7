import { execFileSync } from 'node:child_process';
import { gunzipSync } from 'node:zlib';
import test from 'ava';
import fc from 'fast-check';
import { GzipFile, packed, type Segment } from '../../health/gzip-segments.ts';

function fileOf(segments: readonly Segment[]): Buffer {
  const file = new GzipFile();
  const parts: Buffer[] = [file.head];
  for (const segment of segments) {
    file.follows(segment);
    parts.push(segment.bytes);
  }
  return Buffer.concat([...parts, file.tail()]);
}

test('Segments in any order and number are one gzip file, whose check sum a reader verifies', (t) => {
  const texts = fc.array(fc.oneof(fc.string(), fc.string({ minLength: 3_000, maxLength: 9_000 })));
  fc.assert(
    fc.property(texts, fc.infiniteStream(fc.nat()), (all, choice) => {
      const segments = all.map((text) => packed(Buffer.from(text)));
      // Each may be used again.
      const order = all.flatMap((_, at) => [at, (choice.next().value as number) % all.length]);
      const text = order.map((at) => all[at]).join('');
      t.is(gunzipSync(fileOf(order.map((at) => segments[at] as Segment))).toString(), text);
    }),
    { numRuns: 100 },
  );
});

test('gzip itself takes such a file', (t) => {
  const line = packed(Buffer.from('a line\n'.repeat(10_000)));
  const text = execFileSync('gzip', ['-dc'], { input: fileOf([line, line]), maxBuffer: 1e6 }).toString();
  t.is(text, 'a line\n'.repeat(20_000));
});

test('A segment keeps little more memory than it has bytes', (t) => {
  const { bytes } = packed(Buffer.from('x'.repeat(50_000)));
  t.true(bytes.buffer.byteLength <= bytes.length * 1.125);
  const again = packed(Buffer.from('y'.repeat(50_000)), bytes).bytes;
  t.is(again.buffer, bytes.buffer, 'It is used again where there is room');
  const longer = packed(Buffer.from(JSON.stringify([...Array(5_000).keys()])), bytes).bytes;
  t.not(longer.buffer, bytes.buffer);
});
