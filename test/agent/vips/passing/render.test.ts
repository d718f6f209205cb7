import test from 'ava';
import { NO_ADOPTION } from '../../../../agent/vips/passing/adoption.ts';
import { renderChange, renderPassing, renderRemoval } from '../../../../agent/vips/passing/render.ts';

const RING = { next: 'b', own: 3, before: [11], all: [3, 7, 11] };
const RULES = {
  ...{ table: 'passing', ring: RING, device: 'back', next: ['10.9.9.2'] },
  ...{ vips: ['198.51.100.1', '2001:db8::1'], knowsSockets: true, isLoose: true, adoption: NO_ADOPTION },
};

test('renderPassing() replaces the table of a family, and removes that of one without a back network', (t) => {
  const text = renderPassing(RULES);
  t.regex(text, /^table ip passing \{\n\}\n.*flush table ip passing\n/s);
  t.regex(renderPassing(RULES, true), /^table ip passing \{\n\}\ndelete table ip passing\n/);
  t.true(text.includes('dup to 10.9.9.2 device "back" drop'));
  t.true(text.includes('ip dscp { 11 } goto onward'));
  t.true(text.includes('add element ip passing vips { 198.51.100.1 }'));
  t.true(text.endsWith('table ip6 passing\ndelete table ip6 passing\n'));
});

test('renderPassing() knows connections by conntrack alone without sockets, and by no guess without nf_conntrack_tcp_loose', (t) => {
  const text = renderPassing({
    ...RULES,
    knowsSockets: false,
    isLoose: false,
    ring: { ...RING, before: [] },
  });
  t.false(/socket|skuid|ct state invalid tcp/.test(text));
  t.is(text.match(/goto onward/g)?.length, 3);
});

const ADOPTION = {
  groups: [
    { id: 1, addresses: ['10.77.0.1'] },
    { id: 3, addresses: ['10.77.0.3'] },
  ],
  own: ['10.77.0.1'],
};

test('renderPassing() gives unknown connections of the kernel path to the heir, and the heir the mark of the dead host', (t) => {
  const of = (last: number, heir: readonly string[]) =>
    renderPassing({ ...RULES, adoption: { ...ADOPTION, last, heir } });
  const heir = of(3, []);
  t.true(heir.includes('ct mark set 0x4c430003'));
  t.true(heir.includes('1 : goto notice_1, 9 : goto notice_3'));
  const other = of(3, ['10.9.9.2']);
  t.true(other.includes('ip dscp set 2\n    dup to 10.9.9.2 device "back" drop'));
  t.false(other.includes('chain adopt '));
  t.false(/chain adopt |ip dscp set 2/.test(of(0, [])));
  const alone = renderPassing({
    ...RULES,
    ring: { ...RING, next: '' },
    adoption: { ...ADOPTION, last: 3, heir: [] },
  });
  t.false(alone.includes('dup to'));
});

test('renderChange() changes single elements of the set of VIPs', (t) => {
  t.is(
    renderChange('passing', ['198.51.100.2'], ['2001:db8::1', '198.51.100.1']),
    'add element ip passing vips { 198.51.100.2 }\ndelete element ip passing vips { 198.51.100.1 }\ndelete element ip6 passing vips { 2001:db8::1 }\n',
  );
  t.is(renderChange('passing', [], []), '');
  t.regex(renderRemoval('passing'), /^table ip passing\ndelete table ip passing\ntable ip6 passing\n/);
});
