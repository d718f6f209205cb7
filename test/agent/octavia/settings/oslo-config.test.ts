import test from 'ava';
import { listOf, readOsloConfig } from '../../../../agent/octavia/settings/oslo-config.ts';

const read = (...lines: string[]) => {
  const { config, faults } = readOsloConfig(lines.join('\n'));
  return { faults, of: (section: string, key: string) => config.get(section)?.get(key) };
};

test('readOsloConfig() keeps comment signs and equals signs in a value', (t) => {
  const { of, faults } = read('[health_manager]', 'heartbeat_key = a#b;c=d: e ');
  t.deepEqual(faults, []);
  t.is(of('health_manager', 'heartbeat_key'), 'a#b;c=d: e');
});

test('readOsloConfig() ends a key at the first equals sign or colon', (t) => {
  const { of } = read('[a]', 'one: x=y', 'two = x:y');
  t.is(of('a', 'one'), 'x=y');
  t.is(of('a', 'two'), 'x:y');
});

test('readOsloConfig() takes the last line of a key, also of a section that comes again', (t) => {
  const { of } = read('[a]', 'k = 1', '[b]', 'k = 2', '[a]', 'k = 3');
  t.is(of('a', 'k'), '3');
  t.is(of('b', 'k'), '2');
});

test('readOsloConfig() skips comments and empty lines, and has DEFAULT before the first section', (t) => {
  const { of, faults } = read('debug = True', '# x = 1', '; y = 1', '', '[a]', 'k =');
  t.deepEqual(faults, []);
  t.is(of('DEFAULT', 'debug'), 'True');
  t.is(of('a', 'k'), '');
});

test('readOsloConfig() continues a value with an indented line', (t) => {
  const { of } = read('[a]', 'k = 1,', '  2');
  t.deepEqual(listOf(of('a', 'k') ?? ''), ['1', '2']);
});

test('readOsloConfig() gives a dollar sign for two, or for one with a backslash', (t) => {
  const { of } = read('[a]', 'k = a$$b', 'l = a\\$b', 'm = a$b');
  t.is(of('a', 'k'), 'a$b');
  t.is(of('a', 'l'), 'a$b');
  t.is(of('a', 'm'), 'a$b');
});

test('readOsloConfig() removes quotes around a whole value only', (t) => {
  const { of } = read('[a]', 'k = "x y"', 'l = "x" y', 'm = "');
  t.is(of('a', 'k'), 'x y');
  t.is(of('a', 'l'), '"x" y');
  t.is(of('a', 'm'), '"');
});

test('readOsloConfig() names each line that it cannot read', (t) => {
  const { faults } = read(' x', '[a', 'no value', '= v');
  t.deepEqual(faults, [
    'line 1 is indented, but continues no value',
    'line 2 is no section such as [haproxy_amphora]',
    'line 3 has no key and value',
    'line 4 has no key and value',
  ]);
});
