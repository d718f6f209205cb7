import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import {
  importFaults,
  importsOf,
  placesWithoutFiles,
  type SourceFile,
} from './support/repository/import-rules.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

test('Imports of the agent go one way, and each package comes in through one file', (t) => {
  const files = sourcesOf('agent').concat(sourcesOf('health'));
  t.true(files.length > 20);
  t.deepEqual(importFaults(files), []);
  t.deepEqual(placesWithoutFiles(files), [], 'The table names no place that is gone');
});

const refused = test.macro({
  exec(t, files: Record<string, string>, fault: string) {
    const made = Object.entries(files).map(([path, text]) => ({ path, text }));
    t.deepEqual(importFaults(made), [fault]);
  },
  title: (what) => `importFaults() refuses ${what}`,
});

test(
  'a dataplane that imports an announcer',
  refused,
  { 'agent/haproxy/plan.ts': "import { render } from '../vips/keepalived/files/render.ts';" },
  'agent/haproxy/plan.ts: haproxy-doors must not import keepalived-files, but it imports agent/vips/keepalived/files/render.ts',
);
test(
  'a room that imports the room above it',
  refused,
  { 'agent/haproxy/config/render.ts': "import type { Reloader } from '../worker/reloader.ts';" },
  'agent/haproxy/config/render.ts: haproxy-config must not import haproxy-worker, but it imports agent/haproxy/worker/reloader.ts',
);
test(
  'a folder that imports the loop, if only for a type',
  refused,
  { 'health/metrics.ts': "import type {\n  Loop,\n} from '../agent/loop.ts';" },
  'health/metrics.ts: health must not import loop, but it imports agent/loop.ts',
);
test(
  'translation that imports more of Kubernetes than its objects',
  refused,
  {
    'agent/translate/translate.ts':
      "import type { Listener } from '../model/load-balancer.ts';\nexport { x } from '../kubernetes/api/client.ts';",
  },
  'agent/translate/translate.ts: translate must not import api, but it imports agent/kubernetes/api/client.ts',
);
test(
  'a model that imports a package',
  refused,
  { 'agent/model/load-balancer.ts': "import { z } from 'zod';" },
  'agent/model/load-balancer.ts: The model imports nothing, but it imports zod',
);
test(
  'a package in two files',
  refused,
  {
    'agent/host/log.ts': "import mustache from 'mustache';",
    'agent/loop.ts': "const p = await import('mustache/file');",
  },
  'mustache: A package is imported in one file only, but agent/host/log.ts and agent/loop.ts do',
);
test(
  'a cycle',
  refused,
  {
    'agent/haproxy/a.ts': "import './b.ts';",
    'agent/haproxy/b.ts': "import { c } from './c.ts';",
    'agent/haproxy/c.ts': "import { a } from './a.ts';",
  },
  'agent/haproxy/a.ts: Imports go round: agent/haproxy/a.ts → agent/haproxy/b.ts → agent/haproxy/c.ts → agent/haproxy/a.ts',
);
test(
  'a file whose name says nothing',
  refused,
  { 'agent/haproxy/utils.ts': '' },
  'agent/haproxy/utils.ts: The name does not say what the file is',
);
test(
  'a file outside the table',
  refused,
  { 'agent/new/x.ts': '' },
  'agent/new/x.ts: The file has no place in the table',
);

test(
  'a timer outside the clock',
  refused,
  { 'agent/haproxy/apply.ts': 'setTimeout(() => undefined, 1);' },
  'agent/haproxy/apply.ts: Only agent/base/clock.ts has timers: take a Clock, or its sleep()',
);

test('importFaults() accepts what the table allows', (t) => {
  const files = [
    { path: 'agent/main.ts', text: "import { loop } from './loop.ts';\nimport './host/log.ts';" },
    {
      path: 'agent/loop.ts',
      text: "import type { Dataplane } from './dataplane/dataplane.ts';\nimport 'node:fs';",
    },
    {
      path: 'agent/haproxy/plan.ts',
      text: "import type { Listener } from '../model/load-balancer.ts';\nimport './config/render.ts';",
    },
    { path: 'agent/haproxy/config/render.ts', text: '' },
    {
      path: 'agent/model/load-balancer.ts',
      text: "// import { z } from 'zod';\nexport type Family = 'v4' | 'v6';",
    },
  ];
  t.deepEqual(importFaults(files), []);
});

test('importsOf() finds every form of import and nothing else', (t) => {
  const text = `
    import one from 'one';
    import { type Two, two } from "./two.ts";
    import type {
      Three,
    } from './three.ts';
    export { four } from './four.ts';
    export * from './five.ts';
    import 'six';
    const seven = await import('./seven.ts');
    // import eight from 'eight';
    /* import nine from 'nine'; */
    export const ten = 'ten';
    export type Eleven = 'eleven';
  `;
  t.deepEqual(importsOf(text), [
    'one',
    './two.ts',
    './three.ts',
    './four.ts',
    './five.ts',
    'six',
    './seven.ts',
  ]);
});

function sourcesOf(directory: string): SourceFile[] {
  return readdirSync(join(root, directory), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => ({
      path: join(directory, name),
      text: readFileSync(join(root, directory, name), 'utf8'),
    }));
}
