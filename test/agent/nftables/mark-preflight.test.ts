import test from 'ava';
import { markFindings } from '../../../agent/nftables/mark-preflight.ts';

/** As `nft -y list chains` says it. */
function listed(table: string, hook: string, priority: number): string {
  return `table ip ${table} {\n\tchain pre {\n\t\ttype filter hook ${hook} priority ${priority}; policy accept;\n\t}\n\tchain free {\n\t}\n}\n`;
}

const isOwn = (table: string): boolean => table.startsWith('headgate');

test('markFindings() names a chain of another table between those that set a mark and read it', (t) => {
  const found = markFindings(listed('plugin', 'prerouting', -102), isOwn);
  t.is(found.length, 1);
  t.regex(found[0]?.detail ?? '', /^chain pre of table plugin .*\(hook prerouting, priority -102\)/);
  t.is(markFindings(listed('plugin', 'output', -101), isOwn).length, 1);
});

test('markFindings() is silent about own tables, other hooks and other priorities', (t) => {
  for (const text of [
    listed('headgate', 'prerouting', -102),
    listed('plugin', 'forward', -102),
    listed('plugin', 'prerouting', -104),
    listed('kube-proxy', 'prerouting', -100),
    '',
  ])
    t.deepEqual(markFindings(text, isOwn), [], text);
});
