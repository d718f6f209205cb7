// Does what docs/install.md says without a booted machine: builds the package, unpacks it over this host, writes settings,
// checks and renders; platform-engineer.test.ts starts it. With systemd, test/image does the rest.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { blocksOf } from '../support/repository/markdown.ts';
import { Reader, textOf } from './reader.ts';

const folder = process.argv[2] ?? '';
const reader = new Reader(folder);
// A release for apt is in `make test-deb`, the image in test/image/boot.test.ts.
const [packaged = '', , instance = ''] = reader.blocks('docs/install.md', 4);
const page = textOf('docs/install.md');

// The package. apt's own part, with systemd, is in test/image/life.test.ts.
const [makeDeb = '', install = ''] = packaged.split('\n');
await reader.run(makeDeb);
assert.equal(install, 'apt install ./.cache/deb/headgate_*.deb');
const tree = join(folder, 'tree');
await reader.run(`dpkg-deb -x ${install.replace('apt install ', '')} ${tree}`);
await reader.run(`cp -r ${tree}/etc/headgate /etc/`);
execFileSync('mount', ['-t', 'overlay', 'overlay', '-o', `lowerdir=${tree}/usr:/usr`, '/usr']);
mkdirSync('/var/lib/headgate');

assert.equal(await reader.run('command -v headgate'), '/usr/bin/headgate\n');

// The page's table of units, and what else it says is in the package.
const units = [...page.matchAll(/^\| `(headgate[\w-]*\.service)` \|/gm)].map(([, unit = '']) => unit);
assert.ok(units.length > 5);
for (const unit of units) assert.ok(existsSync(join(tree, 'lib/systemd/system', unit)), unit);
assert.match(await reader.run('man -P cat 8 headgate'), /EXAMPLES/);
assert.match(await reader.run('man -P cat 5 headgate.yaml'), /EXAMPLES/);
assert.match(await reader.run('headgate version'), /^headgate \d+\.\d+\.\d+\n$/);
assert.match(await reader.run('head -1 /etc/headgate/headgate.yaml'), /\$schema=\/usr\/share\/headgate\//);
JSON.parse(readFileSync('/usr/share/headgate/headgate.schema.json', 'utf8'));

// The settings: a mistake has its place and the nearest name, and the example of docs/settings.md is right.
const CONFIG = '/etc/headgate/headgate.yaml';
const settings = readFileSync(CONFIG, 'utf8');
writeFileSync(CONFIG, `${settings}\nmanifest: [/etc/headgate/manifests]\n`);
assert.match(await reader.run('headgate check', 2), /manifest: Unknown key, the nearest is "manifests"/);
// The line that the file proposes, and what its comment says to do first.
writeFileSync(CONFIG, settings.replace('#manifests:', 'manifests:'));
assert.match(await reader.run('headgate check', 1), /^BAD +\/etc\/headgate\/manifests: /m);
const [, makeFolder = ''] = /`(mkdir [^`]+)`/.exec(settings) ?? [];
await reader.run(makeFolder);
await reader.run('cp examples/manifests/web.yaml /etc/headgate/manifests/');
const [example = ''] = blocksOf(textOf('docs/settings.md'), 'yaml');
writeFileSync(CONFIG, `${settings}\n${example}\n`);
const checked = await reader.run('headgate check');
assert.match(checked, /^ok +settings/im);

// What run would write; HAProxy takes it.
const rendered = join(folder, 'rendered');
assert.match(
  await reader.run(`headgate render --output ${rendered}`),
  /haproxy\/haproxy\.cfg: 1 load balancer$/m,
);
await reader.run(`haproxy -c -f ${rendered}/haproxy/haproxy.cfg`);
assert.match(readFileSync(join(rendered, 'haproxy/haproxy.cfg'), 'utf8'), /balance leastconn/);

// Several load balancers on one host: systemd is left out, the check is as the page has it.
const [addNamespace = '', loopback = ''] = instance.split('\n');
await reader.run(`${addNamespace}\n${loopback}`);
assert.match(instance, /^editor \/etc\/headgate\/lb1\.yaml$/m);
writeFileSync('/etc/headgate/lb1.yaml', `${example}\n`);
const [, check = ''] = /`(ip netns exec lb1 headgate check [^`]+)`/.exec(page) ?? [];
assert.match(await reader.run(check), /^ok +settings/im);

// Each file of the page that is in the repository is where it says.
for (const [, path = ''] of page.matchAll(/`((?:deploy|examples)\/[\w/-]+)`/g))
  assert.ok(readdirSync(join(reader.clone, path)).length > 0, path);
console.log('The walk is complete');
process.exit(0);
