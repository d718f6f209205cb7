import test from 'ava';
import { changeOf, tablesOf } from '../../../../agent/haproxy/routes/tables.ts';
import type { HostRoutes, RouteSection } from '../../../../agent/model/routes.ts';
import { entryOf, gatewayOf, patternOf, sectionOf } from '../../../support/values/routes.ts';

const place = { address: '127.0.0.1', port: 80 };
const ROOT = [entryOf('/', 'a')];

function tables(sections: readonly RouteSection[]) {
  const [listener] = gatewayOf(place, sections).listeners;
  if (listener === undefined) throw new Error('No listener');
  return tablesOf(listener);
}

/** Host → section and hostname of its table; wider ones behind `>`. */
function waysOf(sections: readonly RouteSection[]): Readonly<Record<string, string>> {
  const all = [...tables(sections).values()].flat();
  const names = new Map(
    sections.flatMap(({ name }) =>
      [...tables([{ name, hostname: patternOf('*'), hosts: [] }]).keys()].map((key) => [
        key.split('.')[0] ?? '',
        name,
      ]),
    ),
  );
  const readable = (table: string): string => {
    const [id = '', ...host] = table.split('.');
    return `${names.get(id)} ${host.join('.')}`;
  };
  const wider = new Map(all.filter(({ map }) => map === 'wider').map(({ key, value }) => [key, value]));
  const chain = (table: string): string => {
    const next = wider.get(table);
    return next === undefined ? readable(table) : `${readable(table)} > ${chain(next)}`;
  };
  return Object.fromEntries(
    all
      .filter(({ map }) => map === 'hosts')
      .map(({ key, value }) => [key.replace(/gateway:.*$/, ''), chain(value)]),
  );
}

test('tablesOf() leads each hostname to its table, and a wildcard by two keys', (t) => {
  t.deepEqual(waysOf([sectionOf('one', '*', { 'a.b.c': ROOT, '*.b.c': ROOT, '*': ROOT })]), {
    'a.b.c|': 'one a.b.c > one **.b.c > one *',
    'b.c|*': 'one **.b.c > one *',
    'b.c|**': 'one **.b.c > one *',
    '|*': 'one *',
  });
});

test('tablesOf() leads a hostname to the section with the most specific hostname, also one without routes', (t) => {
  const sections = [
    sectionOf('any', '*', { 'a.b.c': ROOT, 'x.c': ROOT, '*.b.c': ROOT, '*': ROOT }),
    sectionOf('wild', '*.b.c', { 'z.b.c': ROOT }),
    sectionOf('exact', 'a.b.c'),
  ];
  t.deepEqual(waysOf(sections), {
    'x.c|': 'any x.c > any *',
    '|*': 'any *',
    'z.b.c|': 'wild z.b.c',
    'b.c|*': 'wild **.b.c',
    'b.c|**': 'wild **.b.c',
    'a.b.c|': 'exact a.b.c',
  });
});

test('tablesOf() makes new rows only for the hostname that has changed, and says so', (t) => {
  const host = (suffix: string): HostRoutes => ({ host: { kind: 'exact', suffix }, entries: ROOT });
  const hosts = Array.from({ length: 1_000 }, (_, at) => host(`h${at}.example.org`));
  const before = tables([{ ...sectionOf('one', '*'), hosts }]);
  const after = tables([{ ...sectionOf('one', '*'), hosts: hosts.with(500, host('h500.example.org')) }]);
  t.is(after.size, before.size);
  const changed = [...after].filter(([name, rows]) => before.get(name) !== rows).map(([name]) => name);
  t.deepEqual(
    changed.map((name) => name.slice(11)),
    ['h500.example.org'],
  );
  t.deepEqual(changeOf(after), { from: before, names: changed });
  const more = tables([{ ...sectionOf('one', '*'), hosts: [...hosts, host('new.example.org')] }]);
  t.is(changeOf(more), undefined);
  t.deepEqual(
    [...more]
      .filter(([name, rows]) => before.get(name) !== rows)
      .map(([name]) => name.replace(/^[0-9a-f]{10}\./, '')),
    ['new.example.org', '*', 'new.example.org', '*'],
  );
});

test('tablesOf() marks the sections that want certificates of clients', (t) => {
  const clients = {
    verify: 'required',
    authority: { name: 'configmap default/c', fingerprint: 'f' },
  } as const;
  const tls = {
    certificates: [],
    minVersion: '1.2',
    ciphers: [],
    clients,
    alpn: [],
    sections: [{ hostname: patternOf('a.b'), certificates: [], clients }],
  } as const;
  const [listener] = gatewayOf(place, [sectionOf('one', 'a.b', { 'a.b': ROOT }), sectionOf('two', '*')], {
    tls,
  }).listeners;
  if (listener === undefined) throw new Error('No listener');
  const all = [...tablesOf(listener).values()].flat();
  const ids = ['a.b|', '|*'].map((host) => all.find(({ key }) => key.startsWith(host))?.value.split('.')[0]);
  t.deepEqual(
    all.filter(({ map }) => map === 'guarded').map(({ key, value }) => `${key} ${value}`),
    ids.map((id) => `${id} required.f`),
  );
});

test('tablesOf() of sections that want certificates of clients follows the change of one hostname', (t) => {
  const clients = {
    verify: 'required',
    authority: { name: 'configmap default/c', fingerprint: 'f' },
  } as const;
  const section = sectionOf('one', '*', { 'a.org': ROOT, 'b.org': ROOT });
  const of = (hosts: readonly HostRoutes[], name = 'followed') => {
    const tls = {
      certificates: [],
      minVersion: '1.2',
      ciphers: [],
      clients,
      alpn: [],
      sections: [{ hostname: patternOf('*'), certificates: [], clients }],
    } as const;
    const [listener] = gatewayOf(place, [{ ...section, hosts }], { name, tls }).listeners;
    if (listener === undefined) throw new Error('No listener');
    return tablesOf(listener);
  };
  const [first, second] = section.hosts;
  if (first === undefined || second === undefined) throw new Error('No hosts');
  const before = of([first, second]);
  t.is(of([first, second]), before, 'nothing has changed');
  const changed = { host: second.host, entries: [entryOf('/', 'other')] };
  const after = of([first, changed]);
  t.is(changeOf(after)?.from, before);
  t.is(changeOf(after)?.names.length, 1);
  t.is([...after.values()].flat().filter(({ map }) => map === 'guarded').length, 1);
  t.true([...after.values()].flat().some(({ value }) => value.includes('other')));
  t.deepEqual(new Map(of([first, second])), new Map(before));
});

test('tablesOf() makes the same tables from those before as without them', (t) => {
  const of = (path: string): readonly RouteSection[] => [
    sectionOf('any', '*', { 'a.b.c': ROOT, '*.b.c': [entryOf(path, 'a')], '*': [entryOf(path, 'b')] }),
    sectionOf('exact', 'x.b.c', { 'x.b.c': [entryOf(path, { a: 1, b: 2 })] }),
  ];
  tables(of('/one'));
  const changed = tables(of('/two'));
  t.truthy(changeOf(changed));
  tables([sectionOf('other', '*')]);
  const fresh = tables(of('/two'));
  t.is(changeOf(fresh), undefined);
  t.deepEqual(new Map(changed), new Map(fresh));
});

test('tablesOf() gives the same tables for routes that are equal to those before', (t) => {
  const section = sectionOf('one', '*', { 'a.org': ROOT, 'b.org': ROOT });
  const before = tables([section]);
  t.is(tables([{ ...section }]), before);
});
