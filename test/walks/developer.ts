// Does what README.md says, block by block, from `make demo` to the end of HAProxy; developer.test.ts starts it.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Reader, textOf } from './reader.ts';

const reader = new Reader(process.argv[2] ?? '');
const [demo = '', byHand = '', questions = '', packaged = ''] = reader.blocks('README.md', 4);
const readme = textOf('README.md');
const SERVED = /^default\/web +127\.0\.0\.1 +8080\/TCP,8082\/TCP +4\/4 +haproxy +served/m;

// Try it.
assert.equal(demo, 'make demo');
for (const command of ['make demo', 'make test'])
  assert.match(readme, new RegExp(`^\\| \`${command}\` \\|`, 'm'));
const shown = reader.start(demo);
const [, requests = ''] = await shown.printed(/^([\d,]+) requests, 0 failed, 0 reloads\.$/m);
assert.ok(Number(requests.replace(',', '')) > 1_000);
const [, demoPage = ''] = await shown.printed(/open (http:\S+) in a browser/);
assert.match(await reader.run(`curl -s ${demoPage}`), /<html/);
await shown.interrupt();

// By hand.
const agent = reader.start(byHand);
await reader.until('bin/headgate list', SERVED);
// The members start at the same time as the agent.
for (const port of [8080, 8082])
  await reader.until(`curl -s http://127.0.0.1:${port}/`, /^Hello from web-[12]\n$/);
const answers = await reader.run(questions);
// Curl's progress may stand before it in the line.
assert.equal(answers.match(/Hello from web-[12]$/gm)?.length, 2);
assert.match(answers, SERVED);
assert.match(answers, /^Service default\/web: served, ONLINE$/m);
const [, page = ''] = await agent.printed(/"page":"(http:[^"]+)"/);
assert.ok(readme.includes(`[${page}](${page})`));
assert.match(await reader.run(`curl -s ${page}`), /<html/);

// The edit that the file itself proposes.
const manifest = join(reader.clone, 'examples/manifests/web.yaml');
const before = readFileSync(manifest, 'utf8');
const edited = before.replace('# conditions: {', 'conditions: {');
assert.notEqual(edited, before);
writeFileSync(manifest, edited);
console.log(`Edited ${manifest}: web-2 drains`);
await reader.until('bin/headgate why web', /127\.0\.0\.3:8081 .*drain/);
await reader.until(
  'for each in 1 2 3 4; do curl -s http://127.0.0.1:8080/; done',
  /^(Hello from web-1\n){4}$/,
);

// Completion, of each shell; bash as it completes a line.
const [, source = ''] = /^`(source <\(.+completion bash\))`/m.exec(readme) ?? [];
const completed = (line: string) =>
  reader.run(`${source}; COMP_LINE='${line}' COMP_POINT=${line.length} _headgate; echo "\${COMPREPLY[@]}"`);
assert.match(await completed('bin/headgate why '), /\bdefault\/web\b/);
assert.match(await completed('bin/headgate sta'), /^status\b/m);
assert.match(await completed('bin/headgate list --'), /--json\b/);
for (const shell of ['zsh', 'fish'])
  assert.match(await reader.run(`bin/headgate completion ${shell}`), /headgate/);

// The end of the agent, which leaves HAProxy; the last line says how to end that.
assert.equal(await agent.interrupt(), 0);
assert.doesNotMatch(agent.output(), /"level":"(warn|error)"/);
assert.equal(await reader.run('curl -s http://127.0.0.1:8080/'), 'Hello from web-1\n');
await reader.run('bin/headgate status', 3);
const [, toEndIt = ''] =
  /"toEndIt":"(kill [\d ]+)","message":"HAProxy continues to serve"\}\n$/.exec(agent.output()) ?? [];
await reader.run(toEndIt);
const CANNOT_CONNECT = 7;
const ask = 'curl -s http://127.0.0.1:8080/ || echo "status $?"';
await reader.until(ask, new RegExp(`^status ${CANNOT_CONNECT}\n$`));

// With the flag the agent ends both.
assert.match(readme, /with `--stop-dataplane-on-exit` the agent ends both/);
const [, run = ''] = /^(bin\/headgate run .*)$/m.exec(byHand) ?? [];
const ending = reader.start(`${run} --stop-dataplane-on-exit`);
await reader.until(ask, /^Hello from web-1\n$/);
assert.equal(await ending.interrupt(), 0);
assert.equal(await reader.run(ask), `status ${CANNOT_CONNECT}\n`);

// A linter of manifests.
assert.match(textOf('docs/operations.md'), /`headgate render --strict --manifests PATH`/);
await reader.run('bin/headgate render --strict --manifests examples/manifests');
writeFileSync(manifest, edited.replace('port: 8082', 'port: 80820'));
assert.match(
  await reader.run('bin/headgate render --strict --manifests examples/manifests', 1),
  /web\.yaml.*80820/s,
);

// Another walk installs the package.
assert.deepEqual(packaged, reader.blocks('docs/install.md', 4)[0]);
console.log('The walk is complete');
process.exit(0);
