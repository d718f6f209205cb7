import test from 'ava';
import {
  MAX_ENTRIES,
  type Manifest,
  parseManifest,
} from '../../../../agent/kubernetes/manifests/manifest-file.ts';
import { listJson, serviceJson } from '../../../support/values/kubernetes-json.ts';

const parse = (text: string, path = '/m/web.yaml') => parseManifest(path, Buffer.from(text));
const yaml = (name: string, port: number | string = 80) =>
  `apiVersion: v1\nkind: Service\nmetadata:\n  name: ${name}\nspec:\n  ports:\n  - port: ${port}\n`;

test('parseManifest() reads several documents, YAML and JSON mixed', (t) => {
  const json = JSON.stringify(serviceJson('c'), null, 2);
  const { objects, problems, broken } = parse(
    `# first\n---\n${yaml('a')}---\n${json}\n--- # last\n${yaml('b')}`,
  );
  t.deepEqual([...objects.keys()], ['Service default/a', 'Service default/c', 'Service default/b']);
  t.deepEqual(problems, []);
  t.false(broken);
});

test('parseManifest() reads JSON, a byte order mark before it or not', (t) => {
  const text = JSON.stringify(listJson([serviceJson('a'), serviceJson('b')]));
  for (const each of [text, `\uFEFF${text}`, `\n  ${text}`]) t.is(parse(each, '/m/all.json').objects.size, 2);
});

test('parseManifest() reads documents with directives and end marks', (t) => {
  const { objects, problems } = parse(`%YAML 1.2\n---\n${yaml('a')}...\n%YAML 1.2\n---\n${yaml('b')}`);
  t.deepEqual(problems, []);
  t.is(objects.size, 2);
});

test('parseManifest() ends a document at three dashes even within a block text', (t) => {
  const { objects } = parse(`${yaml('a')}  externalIPs: |\n    x\n---\n${yaml('b')}`);
  t.deepEqual([...objects.keys()], ['Service default/b']);
});

const faulty = test.macro<[text: string, message: RegExp, path?: string]>({
  exec(t, text, message, path = '/m/web.yaml') {
    const { problems, broken } = parse(text, path);
    t.true(broken);
    t.is(problems[0]?.reason, 'InvalidFile');
    t.is(problems[0]?.object, path);
    t.regex(problems[0]?.message ?? '', message);
  },
  title: (title) => `parseManifest() names file, line and column of ${title}`,
});
test('a syntax error', faulty, `${yaml('a')}a: b: c\n`, /^\/m\/web\.yaml:8:5: /);
test(
  'a syntax error in a later document',
  faulty,
  `${yaml('a')}---\n${yaml('b')}a: b: c\n`,
  /^\/m\/web\.yaml:16:5: /,
);
test('half of a JSON file', faulty, '{\n  "a": [1,\n', /^\/m\/web\.json:3:1: /, '/m/web.json');
test(
  'half of a long JSON file',
  faulty,
  `{\n  "a": "${'x'.repeat(300_000)}",\n  "b`,
  /^\/m\/web\.json:3:\d: /,
  '/m/web.json',
);

test('parseManifest() refuses bytes that are not UTF-8', (t) => {
  const { broken, problems } = parseManifest('/m/web.yaml', Buffer.from([0x61, 0xff]));
  t.true(broken);
  t.is(problems[0]?.message, '/m/web.yaml: The text is not UTF-8');
});

test('parseManifest() takes a file with an invalid object as broken, but not with an unserved slice', (t) => {
  const bad = parse(`${yaml('a')}---\n${yaml('b', 70000)}`);
  t.true(bad.broken);
  t.deepEqual([...bad.objects.keys()], ['Service default/a']);
  t.is(
    bad.problems[0]?.message,
    '/m/web.yaml: Service default/b: spec.ports[0].port: 70000 is not a whole number from 1 to 65535',
  );
  const fqdn = parse(
    `${yaml('a')}---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\naddressType: FQDN\nmetadata:\n  name: x\n`,
  );
  t.false(fqdn.broken);
  t.is(fqdn.objects.size, 1);
  t.is(fqdn.problems[0]?.reason, 'InvalidEndpoint');
});

test('parseManifest() gives hints for misspelled names, without the file being broken', (t) => {
  const text = `${yaml('a')}---\n${yaml('b').replace('Service', 'Servce')}`;
  const { problems, broken, objects } = parse(text);
  t.false(broken);
  t.is(objects.size, 1);
  t.like(problems, [{ object: 'Service default/b', reason: 'Misspelled' }]);
  t.deepEqual(parse(`${text}# ${'x'.repeat(300_000)}`).problems, [], 'Of long documents it is too much work');
});

test('parseManifest() takes the first of duplicate objects', (t) => {
  const { objects, problems, broken } = parse(`${yaml('a', 1)}---\n${yaml('a', 2)}`);
  const [object] = objects.values();
  t.is(object?.kind === 'Service' ? object.ports[0]?.port : undefined, 1);
  t.false(broken);
  t.deepEqual(problems, [
    {
      object: 'Service default/a',
      reason: 'DuplicateObject',
      message: '/m/web.yaml: Service default/a is in this file twice: the first one counts',
    },
  ]);
});

test('parseManifest() does not parse an unchanged document of a long file again', (t) => {
  const long = `${yaml('a')}# ${'x'.repeat(40_000)}\n---\n`;
  const before = parse(`${long}${yaml('b')}`);
  const after = parseManifest('/m/web.yaml', Buffer.from(`${long}${yaml('b', 81)}`), before.documents);
  t.is(after.objects.get('Service default/a'), before.objects.get('Service default/a'));
  t.like(after.objects.get('Service default/b'), { ports: [{ port: 81 }] });
});

test('parseManifest() reuses unchanged documents of a short file from its third read on', (t) => {
  const read = (port: number, known?: Manifest['documents']) =>
    parseManifest('/m/web.yaml', Buffer.from(`${yaml('a')}---\n${yaml('b', port)}`), known);
  const first = read(81);
  t.is(first.documents.size, 0, 'Most files are read once');
  const second = read(82, first.documents);
  const third = read(83, second.documents);
  t.is(third.objects.get('Service default/a'), second.objects.get('Service default/a'));
  t.like(third.objects.get('Service default/b'), { ports: [{ port: 83 }] });
});

test('parseManifest() takes YAML without a final newline as unfinished, but not JSON', (t) => {
  t.true(parse(yaml('a').trimEnd()).unfinished);
  t.false(parse(yaml('a')).unfinished);
  t.false(parse(JSON.stringify(serviceJson())).unfinished);
  t.false(parse('').unfinished);
});

/** Text that costs much to read for its size. */
const COSTLY: Readonly<Record<string, (entries: number) => string>> = {
  'a list of YAML': (entries) => '- x\n'.repeat(entries),
  'lists in lists': (entries) => `a:\n${'- - - - x\n'.repeat(entries / 4)}`,
  'a flow list': (entries) => `a: [${'b,'.repeat(entries)}]`,
  'a flow mapping': (entries) => `a: {${Array.from({ length: entries }, (_, at) => `k${at}: v`).join()}}`,
  'a block mapping': (entries) => Array.from({ length: entries }, (_, at) => `k${at}: v\n`).join(''),
  documents: (entries) => '---\nx\n'.repeat(entries),
  'documents that end with dots': (entries) => 'x\n...\n'.repeat(entries),
  brackets: (entries) => '['.repeat(entries * 4),
  'brackets that are closed': (entries) => `${'['.repeat(entries * 4)}${']'.repeat(entries * 4)}`,
  'mappings of JSON': (entries) => `{"a": [${'{},'.repeat(entries * 2)}1]}`,
};
for (const [what, textOf] of Object.entries(COSTLY))
  test.serial(`parseManifest() refuses too many entries before it parses them: ${what}`, (t) => {
    const text = textOf(MAX_ENTRIES.yaml + 8);
    const { problems, broken } = parse(text);
    t.true(broken);
    t.deepEqual(
      problems.map(({ message }) => message),
      [
        '/m/web.yaml: The file has too many entries of lists and mappings: at most 500000 in YAML, or 2000000 in JSON, can be in one file',
      ],
    );
  });

test('parseManifest() names the lines of many faults in one pass, and the first hundred of them', (t) => {
  const began = process.threadCpuUsage();
  const { problems } = parse('a: [\n---\n'.repeat(20_000));
  t.true(process.threadCpuUsage(began).user < 10_000_000);
  t.is(problems.length, 101);
  t.regex(problems[1]?.message ?? '', /^\/m\/web\.yaml:4:1: /);
  t.is(problems.at(-1)?.message, '/m/web.yaml: The file has 19900 more problems');
});

test('parseManifest() reads JSON values that follow one another', (t) => {
  const [a, b] = [JSON.stringify(serviceJson('a'), null, 2), JSON.stringify(serviceJson('b'))];
  for (const text of [`${a}\n${b}\n`, `${a}${b}`, `${a}\n---\n${b}`]) {
    const { objects, problems } = parse(text);
    t.deepEqual([...objects.keys()], ['Service default/a', 'Service default/b']);
    t.deepEqual(problems, []);
  }
  const long = JSON.stringify(
    serviceJson('a', { metadata: { name: 'a', annotations: { a: '}'.repeat(200_000) } } }),
  );
  t.is(parse(`${long}\n${long.replace('"a"', '"b"')}`).objects.size, 2);
  t.regex(
    parse(`${long}${long}\n  {"a": }`).problems[0]?.message ?? '',
    /^\/m\/web\.yaml:2:3: The text is not/,
  );
});

const SECRETS = [
  'hunter2',
  '*hunter2',
  'a: !hunter2 b',
  'a: !hunter2!b c',
  '%TAG !x! a\n%TAG !x! hunter2\n---\nb',
  '"hunter2"',
  '- hunter2\n- [',
  'user: hunter2',
  'hunter2: a: b',
  `{"${'hunter2'.repeat(50_000)}`,
  `{hunter2${' '.repeat(300_000)}}`,
  `[hunter2,${' '.repeat(300_000)}]`,
];
test('parseManifest() shows no text of a file that is no manifest', (t) => {
  for (const text of SECRETS) {
    const { problems } = parse(text);
    t.true(problems.length > 0, text.slice(0, 30));
    for (const { message } of problems) t.false(/hunter|\d{7}/.test(message), message);
  }
});

test('parseManifest() takes a Service that was copied with the status of another controller as the operator wants it', (t) => {
  const status = { loadBalancer: { ingress: [{ ip: '192.0.2.7' }] } };
  const { objects, problems } = parse(JSON.stringify({ ...serviceJson('a'), status }));
  const [service] = objects.values();
  t.like(service, { hasForeignStatus: false, statusIPs: ['192.0.2.7'] });
  t.deepEqual(problems, []);
});

for (const kind of ['IPAddressPool', 'L2Advertisement', 'BGPPeer', 'AddressPool', 'Service'])
  test(`parseManifest() reports ${kind} of MetalLB, which is ignored`, (t) => {
    const text = `apiVersion: metallb.io/v1beta1\nkind: ${kind}\nmetadata:\n  name: a\n  namespace: metallb-system\n`;
    const { objects, problems } = parse(`${text}---\n${yaml('b')}`);
    t.deepEqual([...objects.keys()], ['Service default/b']);
    t.is(problems.length, 1);
    t.like(problems, [{ object: `${kind} metallb-system/a`, reason: 'KindIgnored' }]);
  });
