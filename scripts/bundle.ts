// Puts the agent and the packages that it imports into one file, dist/agent.mjs, which bin/headgate runs while no source
// is newer: four hundred modules fewer to find, read and keep in memory. The only user of the esbuild package.
// bundle.ts [FILE]: another file to write, in a folder beside agent/, health/ and templates/.

import { mkdirSync, readFileSync, renameSync, utimesSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Loaded by the few agents whose kubeconfig needs it. */
const SELDOM = ['@kubernetes/client-node'];

export async function bundle(file: string): Promise<void> {
  // What is written from now on is newer than the bundle.
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
    external: SELDOM,
    plugins: [ownPlaces, withoutUnused],
    // Names and lines stay, so that the stack of an error can be read.
    minifyWhitespace: true,
    minifySyntax: true,
    lineLimit: 120,
    // V8 keeps a text in one byte for each character only where all are Latin; esbuild writes the others as escapes.
    charset: 'ascii',
    // CommonJS packages call it.
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module';\nconst require = requireFrom(import.meta.url);",
    },
    logLevel: 'warning',
  });
  utimesSync(draft, began, began);
  renameSync(draft, file);
}

/** A source finds templates and pages from where it stands, and still does so from inside the bundle. */
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

/** What packages load for what nobody here does: gateways to push metrics to, loggers in threads, traces. */
const UNUSED = /^(?:\.\/lib\/pushgateway|thread-stream|@opentelemetry\/api)$/;

const withoutUnused: Plugin = {
  name: 'without unused',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: UNUSED }, ({ path }) => ({ path, namespace: 'unused' }));
    onLoad({ filter: /.*/, namespace: 'unused' }, () => ({ contents: 'module.exports = {};', loader: 'js' }));
  },
};

if (import.meta.main) await bundle(resolve(process.argv[2] ?? join(root, 'dist/agent.mjs')));
