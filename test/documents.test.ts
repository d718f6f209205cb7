import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { packagedDocuments, withoutLinksOutside } from '../scripts/packaged-documents.ts';
import { anchorsOf, firstCells, linksOf } from './support/repository/markdown.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);
/** keepalived's own. */
const FOREIGN_MESSAGES = new Set(['Unable to read build config options file']);
/** Their comments, rules and units name documents. */
const SOURCE_FOLDERS = ['agent', 'health', 'templates', 'systemd', 'bench', 'deploy', 'examples', 'scripts'];

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

test('Every relative link in a packaged document leads to a packaged file', (t) => {
  const files = packagedDocuments();
  const packaged = new Set(files.map(({ path }) => path));
  const documents = files.filter(({ path }) => path.endsWith('.md'));
  t.true(documents.length > 1);
  const broken = documents.flatMap(({ path, content }) =>
    linksOf(content)
      .map((link) => link.replace(/#.*/, ''))
      .filter((file) => file !== '' && !isUrl(file) && !packaged.has(normalize(join(dirname(path), file))))
      .map((file) => `${path}: ${file}`),
  );
  t.deepEqual(broken, []);
});

test('withoutLinksOutside() keeps links to packaged files, headings and the web, and the text of all others', (t) => {
  const packaged = new Set(['docs/a.md', 'docs/design/b.md', 'deploy/kubernetes/rbac.yaml']);
  const kept =
    '[b](design/b.md#x), [rights](../deploy/kubernetes/rbac.yaml), [here](#here), [the web](https://example.org/)';
  t.is(withoutLinksOutside('docs/a.md', `${kept}, [a test](../test/a.test.ts)`, packaged), `${kept}, a test`);
});

test('Every document that a source names exists, with the heading that it names', (t) => {
  const sources = SOURCE_FOLDERS.flatMap((folder) => filesBelow(join(root, folder)));
  t.true(sources.length > 1);
  const broken = sources.flatMap((source) => {
    const names = readFileSync(source, 'utf8').match(/\bdocs\/[\w/-]+\.md(?:#[\w-]+)?/g) ?? [];
    return brokenLinks(source, names.map((name) => `[](/${name})`).join('\n'));
  });
  t.deepEqual(broken, []);
});

for (const script of readdirSync(join(root, 'scripts')).filter((name) => /^write-.+-docs\.ts$/.test(name))) {
  test(`The document that ${script} writes is up to date`, async (t) => {
    await t.notThrowsAsync(run(process.execPath, [join('scripts', script), '--check'], { cwd: root }));
  });
}

test('ARCHITECTURE.md names in code only what the sources have, and each file with what it exports', (t) => {
  const architecture = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');
  const identifiers = new Set(sourceText().match(/\w+/g));
  const named = [...architecture.matchAll(/`([\w.]+)(?:\(\))?`/g)].map(([, name = '']) => name);
  t.true(named.length > 30);
  t.deepEqual(
    named.filter((name) => !name.split('.').every((part) => identifiers.has(part))),
    [],
  );
  const located = [...architecture.matchAll(/`(\w+)[\w.]*(?:\(\))?` (?:\(|in )\[[^\]]+\]\(([^)]+)\)/g)];
  t.true(located.length > 10);
  const misplaced = located.filter(
    ([, name = '', path = '']) =>
      !new RegExp(`^export .*\\b${name}\\b`, 'm').test(readFileSync(join(root, path), 'utf8')),
  );
  t.deepEqual(
    misplaced.map(([text]) => text),
    [],
  );
});

test('Every message that a page quotes is in a source', (t) => {
  const sources = sourceText();
  const unknown = filesBelow(join(root, 'docs'))
    .filter((path) => path.endsWith('.md') && !path.includes('/design/') && !path.endsWith('conformance.md'))
    .flatMap((path) =>
      quotedMessages(readFileSync(path, 'utf8'))
        .filter((part) => !sources.includes(part) && !FOREIGN_MESSAGES.has(part))
        .map((part) => `${relative(root, path)}: ${part}`),
    );
  t.deepEqual(unknown, []);
});

test('docs/errors.md lists every error code and every reason, and no others', (t) => {
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
  const pages = ['docs/metrics.md', 'docs/octavia.md'];
  const metrics = new Set(pages.flatMap((page) => firstCells(readFileSync(join(root, page), 'utf8'))));
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

/** The agent's. */
function sourceText(): string {
  const paths = ['agent', 'health'].flatMap((folder) => filesBelow(join(root, folder)));
  return paths.map((path) => readFileSync(path, 'utf8')).join('\n');
}

/** Code spans that are sentences, with an upper-case letter first and three words, in parts between `...` and numbers. */
function quotedMessages(markdown: string): string[] {
  return [...markdown.matchAll(/`([A-Z][a-z]*(?: [^\s`]+){2,})`/g)]
    .flatMap(([, message = '']) => message.split(/\.\.\.|\d+/))
    .map((part) => part.trim())
    .filter((part) => part.length > 3);
}

function brokenLinks(document: string, text: string): string[] {
  const broken: string[] = [];
  for (const link of linksOf(text)) {
    if (isUrl(link)) continue;
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

function isUrl(link: string): boolean {
  return /^[a-z][a-z0-9+.-]*:/i.test(link);
}

function markdownBelow(directory: string): string[] {
  return filesBelow(directory).filter((path) => path.endsWith('.md'));
}

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (!entry.isDirectory()) return [path];
    return /^(node_modules|\.git|\.cache)$/.test(entry.name) ? [] : filesBelow(path);
  });
}
