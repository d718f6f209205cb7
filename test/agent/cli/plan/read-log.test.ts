import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import { logReader } from '../../../../agent/cli/plan/read-log.ts';
import type { RequestDifferences } from '../../../../agent/report/difference/request-differences.ts';

const LINE = '{"method":"GET","host":"shop.example.org","path":"/a?token=secret","client":"192.0.2.1"}\n';

async function read(t: ExecutionContext, files: readonly (string | Buffer)[], host = '') {
  const folder = mkdtempSync(join(tmpdir(), 'hg-log-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const paths = files.map((content, at) => {
    const path = join(folder, `${at}.log`);
    writeFileSync(path, content);
    return path;
  });
  const asked: string[] = [];
  const differences = {
    ask: (_: unknown, __: unknown, words: () => string) => asked.push(words()),
    get asked() {
      return asked.length;
    },
  } as unknown as RequestDifferences;
  const { unread, firstUnread } = await logReader(paths, host)(differences);
  return { asked, unread, firstUnread, folder };
}

test('Several logs are read, also compressed ones, with lines that span pieces', async (t) => {
  const many = LINE.repeat(30_000);
  const { asked, unread } = await read(t, [LINE, gzipSync(many), zstdCompressSync(Buffer.from(LINE.trim()))]);
  t.is(asked.length, 30_002);
  t.is(unread, 0);
  t.is(asked[0], 'GET shop.example.org/a from 192.0.2.1');
});

test('Lines without a request are counted, and the first is shown without its query', async (t) => {
  const { unread, firstUnread } = await read(t, [`${LINE}rubbish /x?token=secret "y"\n\n\u0000\u001b[2J\n`]);
  t.deepEqual([unread, firstUnread], [2, 'rubbish /x?… "y"']);
});

for (const [what, content, message] of [
  ['an empty log', '', /Cannot use the log ".*": it is empty$/],
  [
    'a log of something else',
    'a\nb\n',
    /: none of its 2 lines has a request, such as "a"; lines without a host need --host$/,
  ],
  ['a log that is cut off', gzipSync(LINE).subarray(0, 30), /: unexpected end of file$/],
  ['one line of megabytes', 'x'.repeat(3_000_000), /: none of its 1 line has a request, such as "x+…"/],
] as const)
  test(`The plan refuses ${what}: it would look as if nothing differed`, async (t) => {
    await t.throwsAsync(read(t, [content]), { code: 'USAGE', message });
  });

test('A log that is not there is an error', async (t) => {
  await t.throwsAsync(logReader(['/nowhere/x.log'], '')({ asked: 0 } as RequestDifferences), {
    code: 'USAGE',
    message: /^Cannot use the log "\/nowhere\/x.log": ENOENT/,
  });
});
