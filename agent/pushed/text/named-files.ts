// The files whose content a pushed text takes: certificates, lists of certificates, authorities, revocations, the program of
// external checks. Pure.

const TAKES_FILE = new Set(['crt', 'crt-list', 'ca-file', 'crl-file']);

export interface NamedFiles {
  readonly files: ReadonlySet<string>;
  /** Their lines name further files. */
  readonly lists: ReadonlySet<string>;
}

export function filesOf(text: string): NamedFiles {
  const files = new Set<string>();
  const lists = new Set<string>();
  for (const raw of text.split('\n')) {
    const line = raw.trim();
    if (line.startsWith('#')) continue;
    const words = line.split(/[ \t]+/);
    for (const [at, word] of words.entries()) {
      const path = words[at + 1] ?? '';
      if (!TAKES_FILE.has(word) || !path.startsWith('/')) continue;
      files.add(path);
      if (word === 'crt-list') lists.add(path);
    }
    if (line.startsWith('external-check command /')) files.add(words[2] ?? '');
  }
  return { files, lists };
}

/** The files in a crt-list: the first word of each line. */
export function filesInList(list: string): readonly string[] {
  return list
    .split('\n')
    .map((line) => line.trim().split(/\s+/)[0] ?? '')
    .filter((path) => path.startsWith('/'));
}
