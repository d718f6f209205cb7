// The copyright file of the Debian package in Debian's machine-readable format (DEP-5). Pure.

export interface PackagedLicence {
  /** The name of the package, such as `js-yaml`; below node_modules. */
  readonly name: string;
  readonly version: string;
  /** SPDX identifier. */
  readonly licence: string;
  /** The licence file; '' if the package has none. */
  readonly text: string;
}

const COPYRIGHT = /^\W*(?:Copyright\b|\(c\)).*\d{4}.*$/i;

export function copyrightFile(packages: readonly PackagedLicence[]): string {
  return [
    paragraph([
      ['Format', 'https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/'],
      ['Upstream-Name', 'Headgate'],
    ]),
    paragraph([
      ['Files', '*'],
      ['Copyright', '2026 Headgate maintainers'],
      ['License', 'Apache-2.0'],
    ]),
    paragraph([
      ['Files', 'usr/lib/headgate/node_modules/node/*'],
      ['Copyright', 'Node.js contributors, and the authors of what is linked into it'],
      ['License', 'Node\nThe texts are in /usr/share/doc/headgate/LICENSE.node.gz'],
    ]),
    ...packages.map(({ name, version, licence, text }) =>
      paragraph([
        ['Files', `usr/lib/headgate/node_modules/${name}/*`],
        ['Copyright', holders(text) || `the authors of ${name}`],
        ['License', `${licence}${bodyOf(text)}`],
        ['Comment', `${name} ${version}`],
      ]),
    ),
    paragraph([
      ['License', 'Apache-2.0\nOn Debian systems the text is in /usr/share/common-licenses/Apache-2.0'],
    ]),
  ].join('\n');
}

/** The lines of a licence that name the holders of the copyright. */
function holders(text: string): string {
  const lines = text.split('\n').filter((line) => COPYRIGHT.test(line) && !/\[yyyy\]/.test(line));
  return lines.map((line) => line.trim().replace(/^\W*Copyright\s*/i, '')).join('\n');
}

/** '' if Debian has the text of the Apache licence. */
function bodyOf(text: string): string {
  if (text === '' || /Apache License\s+Version 2\.0/.test(text)) return '';
  return `\n${text.trim()}`;
}

function paragraph(fields: readonly (readonly [name: string, value: string])[]): string {
  return fields.map(([name, value]) => `${name}: ${continued(value)}\n`).join('');
}

/** Further lines of a value begin with a blank, and an empty one is a point. */
function continued(value: string): string {
  const [first = '', ...more] = value.split('\n');
  return [first, ...more.map((line) => (line.trim() === '' ? ' .' : ` ${line.trimEnd()}`))].join('\n');
}
