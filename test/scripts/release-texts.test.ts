import test from 'ava';
import { billOfMaterials, notesOf, releaseFile } from '../../scripts/release-texts.ts';

const CHANGELOG =
  '# Changelog\n\n## Unreleased\n\n- new\n\n## 0.2.0 - 2026-12-01\n\n- second\n\n## 0.1.0\n\n- first\n';

test('The notes are the section of the version', (t) => {
  t.is(notesOf(CHANGELOG, '0.2.0'), '## 0.2.0 - 2026-12-01\n\n- second\n');
  t.is(notesOf(CHANGELOG, '0.1.0'), '## 0.1.0\n\n- first\n');
  t.is(notesOf(CHANGELOG, '0.1'), undefined);
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
