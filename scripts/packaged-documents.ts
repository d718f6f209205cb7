// The documents, definitions and examples of the Debian package, which keep their paths below /usr/share/doc/headgate,
// so that links between them hold. A link to any other file of the repository becomes its text.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface PackagedFile {
  /** From the root of the repository. */
  readonly path: string;
  readonly content: string;
}

const root = fileURLToPath(new URL('..', import.meta.url));
const PACKAGED = [
  'docs',
  'deploy/kubernetes',
  'deploy/kubeconfig.sh',
  'deploy/helm',
  'deploy/egress',
  'deploy/policies',
  'deploy/tls',
  'deploy/prometheus',
  'deploy/grafana',
  'examples/manifests',
  'examples/options.yaml',
  'examples/control-plane',
  'deploy/ansible',
  'examples/tls',
  'examples/cloud-init',
  'examples/provisioner',
  'examples/metrics-proxy',
];

export function packagedDocuments(): readonly PackagedFile[] {
  const paths = PACKAGED.flatMap(filesBelow);
  const packaged = new Set(paths);
  return paths.map((path) => {
    const text = readFileSync(join(root, path), 'utf8');
    return { path, content: path.endsWith('.md') ? withoutLinksOutside(path, text, packaged) : text };
  });
}

/** Pure. `path` is that of the document, `packaged` all paths of the package, from the root of the repository. */
export function withoutLinksOutside(path: string, markdown: string, packaged: ReadonlySet<string>): string {
  return markdown.replaceAll(/\[([^\]]*)\]\(([^)\s]+)\)/g, (link: string, text: string, target: string) => {
    const [file = ''] = target.split('#', 1);
    const isOutside =
      file !== '' && !/^[a-z]+:/.test(file) && !packaged.has(normalize(join(path, '..', file)));
    return isOutside ? text : link;
  });
}

function filesBelow(path: string): readonly string[] {
  if (!statSync(join(root, path)).isDirectory()) return [path];
  return readdirSync(join(root, path), { withFileTypes: true }).flatMap(({ name }) =>
    filesBelow(join(path, name)),
  );
}
