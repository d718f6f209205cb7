import test from 'ava';
import { billOfMaterials, notesOf, releaseFile, releaseOf } from '../../scripts/release-texts.ts';

const CHANGELOG =
  '# Changelog\n\n## Unreleased\n\n- new\n\n## 0.2.0 - 2026-12-01\n\n- second\n\n## 0.1.0\n\n- first\n';

test('The notes are the section of the version', (t) => {
  t.is(notesOf(CHANGELOG, '0.2.0'), '## 0.2.0 - 2026-12-01\n\n- second\n');
  t.is(notesOf(CHANGELOG, '0.1.0'), '## 0.1.0\n\n- first\n');
  t.is(notesOf(CHANGELOG, '0.1'), undefined);
});

test('releaseOf() makes a pre-release of a version that has no section yet, and nothing without any notes', (t) => {
  const made = { date: new Date('2026-11-26T08:00:00Z'), commit: '01234567' };
  t.deepEqual(releaseOf(CHANGELOG, '0.1.0', made), { version: '0.1.0', notes: '## 0.1.0\n\n- first\n' });
  t.deepEqual(releaseOf(CHANGELOG, '0.3.0', made), {
    version: '0.3.0~git20261126.01234567',
    notes: '## Unreleased\n\n- new\n',
  });
  t.is(releaseOf('# Changelog\n', '0.1.0', made), undefined);
});

test('The bill of materials has Node, and the same packages give the same text', (t) => {
  const npm = (created: string) =>
    JSON.stringify({
      creationInfo: { created },
      documentNamespace: `http://example.org/${created}`,
      documentDescribes: ['SPDXRef-headgate'],
      packages: [{ SPDXID: 'SPDXRef-headgate', name: 'headgate' }],
      relationships: [],
    });
  const given = { date: new Date('2026-11-26T08:00:00Z'), node: 'v24.21.0' };
  const text = billOfMaterials(npm('today'), given);
  t.is(text, billOfMaterials(npm('tomorrow'), given));
  const bill = JSON.parse(text);
  t.is(bill.creationInfo.created, '2026-11-26T08:00:00Z');
  t.deepEqual(bill.relationships, [
    {
      spdxElementId: 'SPDXRef-headgate',
      relatedSpdxElement: 'SPDXRef-Package-node-24.21.0',
      relationshipType: 'CONTAINS',
    },
  ]);
});

test('The Release file has the size and the checksum of each list', (t) => {
  const files = [{ path: 'main/binary-amd64/Packages', content: Buffer.from('abc') }];
  const date = new Date('2026-11-26T08:00:00Z');
  const text = releaseFile({ version: '0.1.0', architectures: ['amd64', 'arm64'], date, files });
  t.regex(text, /^Architectures: amd64 arm64$/m);
  t.regex(text, /^Date: Thu, 26 Nov 2026 08:00:00 UTC$/m);
  t.regex(
    text,
    /^ ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad 3 main\/binary-amd64\/Packages$/m,
  );
});
