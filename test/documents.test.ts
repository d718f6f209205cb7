import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { anchorsOf, firstCells, linksOf } from './support/repository/markdown.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);

test('Every relative link in a document has a target', (t) => {
  const documents = markdownBelow(root);
  t.true(documents.length > 1);
  t.deepEqual(
    documents.flatMap((document) => brokenLinks(document, readFileSync(document, 'utf8'))),
    [],
  );
});

test('brokenLinks() finds a missing file and a missing anchor, and nothing else', (t) => {
  const text = [
    'See [errors](errors.md), [reasons](errors.md#reasons), [here](#here), [the web](https://example.org/x.md),',
    '[gone](gone.md), [nowhere](errors.md#nowhere), `[code](code.md)`.',
    '## Here',
    '```',
    '[fenced](fenced.md)',
    '```',
  ].join('\n');
  t.deepEqual(brokenLinks(join(root, 'docs/made-up.md'), text), [
    'docs/made-up.md: gone.md does not exist',
    'docs/made-up.md: errors.md has no heading for #nowhere',
  ]);
});

for (const script of readdirSync(join(root, 'scripts')).filter((name) => /^write-.+-docs\.ts$/.test(name))) {
  test(`The document that ${script} writes is up to date`, async (t) => {
    await t.notThrowsAsync(run(process.execPath, [join('scripts', script), '--check'], { cwd: root }));
  });
}

test('docs/errors.md lists exactly the error codes and the reasons', (t) => {
  const codes = unionOf('agent/base/errors.ts', 'ErrorCode');
  const reasons = unionOf('agent/model/load-balancer.ts', 'ProblemReason');
  t.true(codes.includes('SETTINGS_INVALID') && reasons.includes('AddressInUse'));
  const [errorTable = '', reasonTable = ''] = readFileSync(join(root, 'docs/errors.md'), 'utf8').split(
    '## Reasons',
  );
  t.deepEqual(firstCells(errorTable).sort(), codes.sort());
  t.deepEqual(firstCells(reasonTable).sort(), reasons.sort());
});

test('No document names an unknown metric', (t) => {
  const metrics = new Set(firstCells(readFileSync(join(root, 'docs/metrics.md'), 'utf8')));
  t.true(metrics.has('headgate_build_info'));
  const unknown = markdownBelow(root).flatMap((document) =>
    [...readFileSync(document, 'utf8').matchAll(/`(headgate_[a-z0-9_]+)[`{]/g)]
      .map(([, name = '']) => name)
      .filter((name) => !metrics.has(name) && !metrics.has(name.replace(/_(bucket|count|sum)$/, '')))
      .map((name) => `${relative(root, document)}: ${name}`),
  );
  t.deepEqual(unknown, []);
});

/** The members of a union of strings in the source. */
function unionOf(path: string, name: string): string[] {
  const [, union = ''] =
    new RegExp(`type ${name} =([^;]+);`).exec(readFileSync(join(root, path), 'utf8')) ?? [];
  return [...union.matchAll(/'(\w+)'/g)].map(([, member = '']) => member);
}

function brokenLinks(document: string, text: string): string[] {
  const broken: string[] = [];
  for (const link of linksOf(text)) {
    if (/^[a-z][a-z0-9+.-]*:/i.test(link)) continue;
    const [path = '', anchor] = decodeURIComponent(link).split('#', 2);
    const target =
      path === ''
        ? document
        : resolve(path.startsWith('/') ? root : dirname(document), path.replace(/^\//, ''));
    const place = relative(root, document);
    if (target !== document && !existsSync(target)) broken.push(`${place}: ${path} does not exist`);
    else if (anchor !== undefined && target.endsWith('.md')) {
      const anchors = anchorsOf(target === document ? text : readFileSync(target, 'utf8'));
      if (!anchors.includes(anchor)) broken.push(`${place}: ${path} has no heading for #${anchor}`);
    }
  }
  return broken;
}

function markdownBelow(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory())
      return /^(node_modules|\.git|\.cache)$/.test(entry.name) ? [] : markdownBelow(path);
    return entry.name.endsWith('.md') ? [path] : [];
  });
}
