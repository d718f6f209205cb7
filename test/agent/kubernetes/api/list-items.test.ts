import test from 'ava';
import fc from 'fast-check';
import { Lines } from '../../../../agent/base/lines.ts';
import { ListItems, type ListMetadata } from '../../../../agent/kubernetes/api/list-items.ts';

function takeApart(text: string, cuts: readonly number[]): { items: unknown[]; metadata: ListMetadata } {
  const list = new ListItems();
  const items: unknown[] = [];
  for (const chunk of chunksOf(text, cuts)) for (const item of list.push(chunk)) items.push(JSON.parse(item));
  return { items, metadata: list.end() };
}

/** Cut where a fraction of 0 to 1 says. */
function chunksOf(text: string, cuts: readonly number[]): Buffer[] {
  const bytes = Buffer.from(text);
  const places = [
    0,
    ...cuts.map((cut) => Math.floor(cut * bytes.length)).sort((a, b) => a - b),
    bytes.length,
  ];
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end));
}

const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 8 });
const item = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue());

test('ListItems gives items and metadata of any list, however it is cut', (t) => {
  fc.assert(
    fc.property(
      fc.array(item),
      item,
      cuts,
      fc.boolean(),
      fc.boolean(),
      (items, other, places, last, spaced) => {
        const metadata = { resourceVersion: '7', continue: 'x"]}', items: [1] };
        const { items: _, metadata: __, ...more } = other;
        const list = last ? { ...more, metadata, items } : { items, ...more, metadata };
        const text = JSON.stringify(list, undefined, spaced ? 2 : undefined);
        const found = takeApart(text, places);
        t.deepEqual(found.items, JSON.parse(JSON.stringify(items)));
        t.deepEqual(found.metadata, { resourceVersion: '7', continue: 'x"]}' });
      },
    ),
  );
});

test('ListItems takes a list without items, and one whose items are null', (t) => {
  const metadata = { resourceVersion: '7', continue: '' };
  t.deepEqual(takeApart('{"metadata":{"resourceVersion":"7"}}', []), { items: [], metadata });
  t.deepEqual(takeApart('{"items":null,"metadata":{"resourceVersion":"7"}}', []), { items: [], metadata });
});

test('ListItems throws for an incomplete list, and for other text', (t) => {
  const whole = '{"metadata":{"resourceVersion":"7"},"items":[{"a":1},{"b":[2]}]}';
  for (let length = 0; length < whole.length; length++) t.throws(() => takeApart(whole.slice(0, length), []));
  for (const text of ['[]', 'null', '{}', '}', '{"items":[]}', '"items":[', 'Unauthorized']) {
    t.throws(() => takeApart(text, []), undefined, text);
  }
});

test('Lines gives complete lines, however the bytes are cut', (t) => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' })), cuts, (texts, places) => {
      const wanted = texts.map((text) => text.replaceAll('\n', ' '));
      const lines = new Lines();
      const text = [...wanted, 'without an end'].join('\n');
      const found = chunksOf(text, places).flatMap((chunk) => [...lines.push(chunk)]);
      t.deepEqual(
        found,
        wanted.map((line) => Buffer.from(line).toString()).filter((line) => line !== ''),
      );
    }),
  );
});
