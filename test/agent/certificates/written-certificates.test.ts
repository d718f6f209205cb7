import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { writtenCertificates } from '../../../agent/certificates/written-certificates.ts';
import { certificateFile } from '../../../agent/haproxy/config/tls-config.ts';
import { API, WEB } from '../../support/values/certificates.ts';

test('Certificates of an earlier agent are found by their Secrets, also those of one section of a listener', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'hg-kept-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  writeFileSync(certificateFile(folder, 'default/web-tls'), `${WEB.cert}${WEB.key}`);
  writeFileSync(certificateFile(folder, 'shop/api-tls+0123456789abcdef'), `${API.cert}${API.key}`);
  writeFileSync(certificateFile(folder, 'shop/broken'), WEB.cert);
  writeFileSync(join(folder, 'default_web.list'), '');
  t.deepEqual([...writtenCertificates(folder).keys()].sort(), ['default/web-tls', 'shop/api-tls']);
});
