import test from 'ava';
import { loadTemplate, type View } from '../../../agent/base/template.ts';

const global = loadTemplate('haproxy/global');

/** A view with all keys of the template. */
const view: View = { ...blank(global.text), maxConnections: 100, threads: 4 };

test('A template is filled with the values of its view', (t) => {
  const text = global(view);
  t.regex(text, /^ {4}maxconn 100$/m);
  t.regex(text, /^ {4}nbthread 4$/m);
  t.notRegex(text, /[{}]/);
});

test('A boolean shows or hides a section', (t) => {
  const pool = loadTemplate('haproxy/pool');
  const full = blank(pool.text);
  t.notRegex(pool({ ...full, isConsistent: false }), /hash-type/);
  t.regex(pool({ ...full, isConsistent: true }), /^ {4}hash-type consistent$/m);
});

test('A section is hidden if its value is 0 or an empty text', (t) => {
  t.notRegex(global({ ...view, threads: 0 }), /nbthread/);
  t.notRegex(global({ ...view, user: '' }), /^ {4}user/m);
  t.regex(global({ ...view, user: 'haproxy' }), /^ {4}user haproxy$/m);
});

test('A key that the view does not have is an error', (t) => {
  const { maxConnections: _, ...lacking } = view;
  t.throws(() => global(lacking), {
    message: 'Template "haproxy/global" needs "maxConnections", which its view does not have',
  });
});

test('A key that the view does not have is an error also in a section', (t) => {
  const { user: _, ...lacking } = view;
  t.throws(() => global(lacking), { message: /needs "user"/ });
});

test('A name of Object.prototype is not found in a view', (t) => {
  const { description: _, ...lacking } = view;
  t.throws(() => global(Object.setPrototypeOf({ ...lacking }, { description: 'inherited' })), {
    message: /needs "description"/,
  });
});

test('A key that a row of a list does not have is not taken from the view around it', (t) => {
  const members = loadTemplate('haproxy/members');
  const full = { ...blank(members.text), name: 'around', address: 'around', keywords: 'around' };
  t.throws(() => members({ ...full, servers: [{ name: 'a', address: 'b' }] }), {
    message: 'Template "haproxy/members" needs "keywords", which its view does not have',
  });
  t.regex(members({ ...full, servers: [{ name: 'a', address: 'b', keywords: 'c' }] }), /^ {4}server a b c$/m);
});

test('Values are not escaped for HTML', (t) => {
  t.regex(global({ ...view, localPeer: `a&b<c>"d'e` }), /^ {4}localpeer a&b<c>"d'e$/m);
});

test('A template that does not exist is an error', (t) => {
  t.throws(() => loadTemplate('haproxy/nothing'), { code: 'ENOENT' });
});

/** A view with false for each key of a template. */
function blank(text: string): View {
  return Object.fromEntries([...text.matchAll(/\{\{[#/^]?(\w+)\}\}/g)].map(([, name = '']) => [name, false]));
}
