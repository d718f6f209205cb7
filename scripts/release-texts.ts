// The texts of a release: its notes, its bill of materials, and the Release file of the repository for apt. Pure.

import { createHash } from 'node:crypto';

/** The section of CHANGELOG.md below this heading, such as `0.1.0`; undefined if there is none. */
export function notesOf(changelog: string, heading: string): string | undefined {
  const sections = changelog.split(/^## /m).slice(1);
  const own = sections.find((section) => /^\S+/.exec(section)?.[0] === heading);
  return own === undefined ? undefined : `## ${own.trim()}\n`;
}

/**
 * The version and the notes of a release. Without a section of its own a version is not released yet: it becomes a
 * pre-release of this commit, which Debian sorts before the release. undefined if there is no section of either.
 */
export function releaseOf(
  changelog: string,
  version: string,
  { date, commit }: { readonly date: Date; readonly commit: string },
): { readonly version: string; readonly notes: string } | undefined {
  const own = notesOf(changelog, version);
  if (own !== undefined) return { version, notes: own };
  const next = notesOf(changelog, 'Unreleased');
  const day = date.toISOString().slice(0, 10).replaceAll('-', '');
  return next === undefined ? undefined : { version: `${version}~git${day}.${commit}`, notes: next };
}

interface SpdxPackage {
  readonly SPDXID: string;
  readonly [field: string]: unknown;
}

interface Spdx {
  readonly packages: readonly SpdxPackage[];
  readonly relationships: readonly unknown[];
  readonly documentDescribes: readonly string[];
  readonly [field: string]: unknown;
}

/**
 * The bill of npm's packages (SPDX, as `npm sbom` writes it) with Node, which the package contains as well. The same packages
 * give the same text.
 */
export function billOfMaterials(
  npm: string,
  { date, node }: { readonly date: Date; readonly node: string },
): string {
  const bill = JSON.parse(npm) as Spdx;
  const version = node.replace(/^v/, '');
  const ofNode: SpdxPackage = {
    name: 'node',
    SPDXID: `SPDXRef-Package-node-${version}`,
    versionInfo: version,
    downloadLocation: `https://nodejs.org/dist/${node}/`,
    filesAnalyzed: false,
    licenseDeclared: 'MIT',
    externalRefs: [
      {
        referenceCategory: 'PACKAGE-MANAGER',
        referenceType: 'purl',
        referenceLocator: `pkg:generic/node@${version}`,
      },
    ],
  };
  const packages = [...bill.packages, ofNode];
  const [described = ''] = bill.documentDescribes;
  const relation = {
    spdxElementId: described,
    relatedSpdxElement: ofNode.SPDXID,
    relationshipType: 'CONTAINS',
  };
  const digest = createHash('sha256').update(JSON.stringify(packages)).digest('hex').slice(0, 32);
  const whole = {
    ...bill,
    documentNamespace: `https://spdx.org/spdxdocs/headgate-${digest}`,
    creationInfo: { created: `${date.toISOString().slice(0, 19)}Z`, creators: ['Tool: headgate-release'] },
    packages,
    relationships: [...bill.relationships, relation],
  };
  return `${JSON.stringify(whole, undefined, 2)}\n`;
}

export interface RepositoryContent {
  readonly version: string;
  readonly architectures: readonly string[];
  readonly date: Date;
  /** Paths below dists/stable. */
  readonly files: readonly { readonly path: string; readonly content: Buffer }[];
}

/** In the format that apt reads (DebianRepository/Format). */
export function releaseFile({ version, architectures, date, files }: RepositoryContent): string {
  const sums = files.map(({ path, content }) => {
    const sum = createHash('sha256').update(content).digest('hex');
    return ` ${sum} ${content.length} ${path}`;
  });
  return [
    'Origin: Headgate',
    'Label: Headgate',
    'Suite: stable',
    'Codename: stable',
    `Version: ${version}`,
    `Date: ${date.toUTCString().replace('GMT', 'UTC')}`,
    `Architectures: ${architectures.join(' ')}`,
    'Components: main',
    'SHA256:',
    ...sums,
    '',
  ].join('\n');
}
