import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import {
  checkErrorPages,
  type ErrorPages,
  MAX_PAGE_BYTES,
  PAGE_STATUSES,
} from '../../../agent/certificates/error-pages.ts';
import { writtenErrorPages } from '../../../agent/certificates/written-error-pages.ts';
import { pageFile } from '../../../agent/haproxy/config/error-pages.ts';
import { pagesIn, pagesOf, pageTexts } from '../../../agent/haproxy/config/page-files.ts';
import { FileSet } from '../../../agent/host/file-set.ts';
import { parseObject } from '../../../agent/kubernetes/parse-object.ts';
import { gatewayOf } from '../../support/values/routes.ts';

function checked(fields: Readonly<Record<string, unknown>>): ErrorPages {
  const pages = checkErrorPages(fields);
  if (typeof pages === 'string') throw new Error(pages);
  return pages;
}

test('Pages are the bodies by status, and equal ones have one fingerprint', (t) => {
  const pages = checked({ 503: 'Soon back', 404: '<h1>Ä</h1>' });
  t.deepEqual(pages.statuses, ['404', '503']);
  t.deepEqual(pages.faults, []);
  t.deepEqual(pagesIn(pages.pem.reveal()), [
    ['404', '<h1>Ä</h1>'],
    ['503', 'Soon back'],
  ]);
  t.is(checked({ 404: '<h1>Ä</h1>', 503: 'Soon back' }).fingerprint, pages.fingerprint);
  t.not(checked({ 404: '<h1>Ä</h1>', 503: 'Soon' }).fingerprint, pages.fingerprint);
  t.deepEqual(
    checked(Object.fromEntries(PAGE_STATUSES.map((status) => [status, 'x']))).statuses,
    PAGE_STATUSES,
  );
});

test('A bad key, type or size is named with what is allowed, and the other pages count', (t) => {
  const pages = checked({
    404: 'Not here',
    408: 'too late',
    '503.html': 'x',
    500: '',
    502: 7,
    504: 'é'.repeat(MAX_PAGE_BYTES / 2 + 1),
  });
  t.deepEqual(pages.statuses, ['404']);
  const allowed = '400, 401, 403, 404, 413, 429, 500, 502, 503, 504';
  t.deepEqual(
    pages.faults,
    [
      `key "408" is not a status that can have a page: ${allowed}`,
      'the page of "500" is no text, or empty',
      'the page of "502" is no text, or empty',
      'key "503.html" is not a status that can have a page: '.concat(allowed),
      'the page of "504" has 12290 bytes, and at most 12288 are allowed',
    ].toSorted((a, b) => order(a) - order(b)),
  );
  t.is(checkErrorPages({ 599: 'x' }), `key "599" is not a status that can have a page: ${allowed}`);
  t.is(checkErrorPages({}), 'it has no page');
  t.deepEqual(checked({ 404: 'é'.repeat(MAX_PAGE_BYTES / 2) }).faults, []);
});

/** Keys are read in the order of their texts. */
function order(fault: string): number {
  return ['408', '500', '502', '503', '504'].findIndex((status) => fault.includes(`"${status}`));
}

test('Of ConfigMaps only those with pages or authorities are kept', (t) => {
  const kept = (data: object): number =>
    parseObject({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'pages' }, data }, '').objects
      .length;
  t.deepEqual([kept({ 503: 'x' }), kept({ '503.html': 'x' }), kept({ 'ca.crt': 'x' })], [1, 1, 1]);
  t.deepEqual([kept({ 'nginx.conf': 'x' }), kept({})], [0, 0]);
});

test('The next agent finds the pages that this one has written, and none of which a file is missing', async (t) => {
  const folder = join(await mkdtemp(join(tmpdir(), 'headgate-')), 'pages');
  t.teardown(() => rm(join(folder, '..'), { recursive: true }));
  const pages = checked({ 404: 'Not here', 503: '<h1>Ä "\\n" %[src]</h1>\n' });
  const { fingerprint, statuses } = pages;
  const errorPages = { name: 'configmap shop/web.pages', fingerprint, statuses };
  const gateway = gatewayOf({ address: '192.0.2.1', port: 80 }, [], { errorPages });
  const files = new FileSet({ folder, fileMode: 0o600, folderMode: 0o700 });
  const texts = pageTexts(pagesOf([gateway]), folder, () => pages.pem.reveal());
  t.deepEqual(writtenErrorPages(folder), new Map());
  await files.write(texts);
  const kept = writtenErrorPages(folder).get('configmap shop/web.pages');
  t.deepEqual([kept?.fingerprint, kept?.pem.reveal()], [fingerprint, pages.pem.reveal()]);

  await rm(pageFile(folder, errorPages, '404'));
  t.is(writtenErrorPages(folder).size, 0);
  await files.keep();
  t.is(writtenErrorPages(folder).size, 1);
  await writeFile(pageFile(folder, errorPages, '503'), 'changed');
  t.is(writtenErrorPages(folder).size, 0);
  await rm(folder, { recursive: true });
  await files.keep();
  t.is(writtenErrorPages(folder).size, 1);

  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'pages_configmap_a_b_00000000000000000000000000000000_503.html'), 'old');
  await files.keepOnly(new Set(texts.map((each) => each.path)));
  t.is(writtenErrorPages(folder).size, 1);

  // The pages of before are removed only when no worker has them.
  const older = checked({ 404: 'Of before' });
  const before = { name: errorPages.name, fingerprint: older.fingerprint, statuses: older.statuses };
  const path = pageFile(folder, before, '404');
  await writeFile(path, 'Of before');
  await utimes(path, 1, 1);
  t.is(writtenErrorPages(folder).get(errorPages.name)?.fingerprint, fingerprint);
  const later = Date.now() / 1_000 + 60;
  await utimes(path, later, later);
  t.is(writtenErrorPages(folder).get(errorPages.name)?.fingerprint, older.fingerprint);

  await files.keepOnly(new Set());
  t.is(writtenErrorPages(folder).size, 0);
});
