import test from 'ava';
import { isRefusal, ReplyReader } from '../../../../agent/vips/bird/replies.ts';

test('ReplyReader gives whole replies, however the text is cut', (t) => {
  const text =
    '0001 BIRD 2.0.12 ready.\n0002-Reading configuration from /x\n0003 Reconfigured\n1007-Table announced4:\n 198.51.100.1/32 blackhole\n0000 \n';
  const expected = [
    { code: 1, lines: ['BIRD 2.0.12 ready.'] },
    { code: 3, lines: ['Reading configuration from /x', 'Reconfigured'] },
    { code: 0, lines: ['Table announced4:', '198.51.100.1/32 blackhole'] },
  ];
  for (const size of [1, 2, 7, 1_000]) {
    const reader = new ReplyReader();
    const chunks = text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
    t.deepEqual(
      chunks.flatMap((chunk) => reader.take(chunk)),
      expected,
    );
  }
});

test('ReplyReader refuses what is no reply of BIRD', (t) => {
  t.throws(() => new ReplyReader().take('HTTP/1.1 200 OK\n'), {
    message: '"HTTP/1.1 200 OK" is no line of a reply',
  });
});

test('isRefusal() knows refusals and syntax errors', (t) => {
  const codes = [0, 3, 4, 18, 8002, 8007, 9001];
  t.deepEqual(
    codes.filter((code) => isRefusal({ code, lines: [] })),
    [8002, 8007, 9001],
  );
});
