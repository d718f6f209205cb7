// Bundles the agent and its packages into dist/agent.mjs, which bin/headgate runs while no source is newer. One file
// instead of hundreds of modules starts faster and takes less memory.
// bundle.ts [FILE] writes another file, in a folder beside agent/, health/ and templates/.

import { mkdirSync, readFileSync, renameSync, utimesSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build, type Plugin } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Only some kubeconfigs need this package. */
const EXTERNAL = ['@kubernetes/client-node'];

export async function bundle(file: string): Promise<void> {
  // A source that changes during the build must be newer than the bundle.
  const began = new Date();
  const draft = join(dirname(file), `.${process.pid}.${basename(file)}`);
  mkdirSync(dirname(file), { recursive: true });
  await build({
    entryPoints: [join(root, 'agent/main.ts')],
    outfile: draft,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    external: EXTERNAL,
    plugins: [ownPlaces, withoutUnused],
    // Names and lines stay, so that stacks of errors are readable.
    minifyWhitespace: true,
    minifySyntax: true,
    lineLimit: 120,
    // V8 stores a source in one byte for each character only if all characters are Latin.
    charset: 'ascii',
    // CommonJS packages call require().
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module';\nconst require = requireFrom(import.meta.url);",
    },
    logLevel: 'warning',
  });
  utimesSync(draft, began, began);
  renameSync(draft, file);
}

/** A source finds templates and pages relative to its own path, so each source in the bundle keeps its original URL. */
const ownPlaces: Plugin = {
  name: 'own places',
  setup: ({ onLoad }) => {
    onLoad({ filter: /\/(agent|health)\/.*\.ts$/ }, ({ path }) => {
      const place = relative(root, path);
      if (place.startsWith('..') || place.startsWith('node_modules')) return undefined;
      const here = `new URL(${JSON.stringify(`../${place}`)}, import.meta.url).href`;
      return { contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', here), loader: 'ts' };
    });
  },
};

/** Modules of packages for features that the agent does not use: pushing metrics, logging in threads, traces. */
const UNUSED = /^(?:\.\/lib\/pushgateway|thread-stream|@opentelemetry\/api)$/;

const withoutUnused: Plugin = {
  name: 'without unused',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: UNUSED }, ({ path }) => ({ path, namespace: 'unused' }));
    onLoad({ filter: /.*/, namespace: 'unused' }, () => ({ contents: 'module.exports = {};', loader: 'js' }));
  },
};

if (import.meta.main) {
  // A flag is no file.
  const [file = join(root, 'dist/agent.mjs')] = parseArgs({ allowPositionals: true }).positionals;
  await bundle(resolve(file));
}
