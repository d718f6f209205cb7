// The lower bound on a folder of manifests: `bound-process.ts FOLDER HAPROXY`. Answers any message when it serves.

import { readdirSync, readFileSync, watch } from 'node:fs';
import { join } from 'node:path';
import { answer, over } from '../support/parent.ts';
import { withScratch } from '../support/scratch.ts';
import { Bound } from './bound.ts';
import { readPlain } from './plain-service.ts';

const [folder = '', haproxy = ''] = process.argv.slice(2);
const read = (name: string) => readPlain(readFileSync(join(folder, name), 'latin1'));

await withScratch(async (scratch) => {
  const services = readdirSync(folder)
    .filter((name) => name.endsWith('.yaml') && !name.startsWith('.'))
    .map(read);
  const bound = await Bound.start(scratch, haproxy, services);
  let queue = Promise.resolve();
  const watcher = watch(folder, (_, name) => {
    if (name === null || name.startsWith('.')) return;
    queue = queue.then(async () => {
      const remove = await bound.change(read(name));
      setTimeout(() => {
        queue = queue.then(remove);
      }, 1_000);
    });
  });
  process.on('message', () => answer({ pids: [bound.haproxy.pid] }));
  await over;
  watcher.close();
});
process.exit();
