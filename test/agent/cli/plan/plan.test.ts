// What a change of objects would do, by folders of manifests.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ava from 'ava';
import { createTwoFilesPatch } from 'diff';
import { hasChanges, planAnswer, planMarkdown } from '../../../../agent/cli/plan/answer.ts';
import { folderPatched } from '../../../../agent/cli/plan/compared-states.ts';
import { patchFolder } from '../../../../agent/cli/plan/patch-folder.ts';
import { Folders, GATEWAY, route, shown } from '../../../support/values/plan-folders.ts';

const test = ava;

const RANGES = 'headgate.io/whitelist-source-range: 10.0.0.0/8';

test('The same folders differ in nothing, and one line says so', async (t) => {
  const text = `${GATEWAY}${route('all', '/')}`;
  const answer = await new Folders(t).compare(text, text);
  t.false(hasChanges(answer));
  t.deepEqual(shown(answer), [
    '0 open, 0 close; 0 load balancers; 0 of 0 logged requests differ; 0 problems',
  ]);
});

test('What opens stands first, with the rule, who could come in, and who can', async (t) => {
  const before = `${GATEWAY}${route('all', '/')}${route('admin', '/admin', { annotations: RANGES })}`;
  const answer = await new Folders(t).compare(before, `${GATEWAY}${route('all', '/')}`);
  t.deepEqual(shown(answer).slice(1, 5), [
    'Opens',
    '  HTTPRoute shop/admin#0 → HTTPRoute shop/all#0: Open only to clients from 10.0.0.0/8 → Open to everybody',
    '      GET http://shop.example.org/admin',
    '      GET http://shop.example.org/admin/x',
  ]);
  t.true(shown(answer).includes('  goes HTTPRoute shop/admin'));
});

test('More addresses open, fewer close, and both together count as opening', async (t) => {
  const withRanges = (ranges: string): string =>
    `${GATEWAY}${route('all', '/', { annotations: `headgate.io/whitelist-source-range: "${ranges}"` })}`;
  for (const [before, after, kind] of [
    ['10.0.0.0/16', '10.0.0.0/8', 'opens'],
    ['10.0.0.0/8', '10.0.0.0/16', 'closes'],
    ['10.0.0.0/8', '192.0.2.0/24', 'opens'],
    ['10.0.0.0/9,10.128.0.0/9', '10.0.0.0/8', undefined],
  ] as const) {
    const { requests } = await new Folders(t).compare(withRanges(before), withRanges(after));
    t.deepEqual([...new Set(requests.map((each) => each.kind))], kind === undefined ? [] : [kind], after);
  }
});

test('A Gateway whose pools are elsewhere is compared by an address instead of its own', async (t) => {
  const gateway = GATEWAY.replace(/ {2}addresses: .*\n/, '');
  const before = `${gateway}${route('all', '/', { annotations: RANGES })}`;
  const answer = await new Folders(t).compare(before, `${gateway}${route('all', '/')}`);
  t.deepEqual(
    answer.requests.map(({ kind }) => kind),
    ['opens'],
  );
  t.deepEqual(answer.ports, []);
  t.deepEqual(answer.standIns, ['Gateway shop/edge has no address; it is compared as if it had 198.18.0.1']);
});

test('What the objects do not serve is not said to stay closed', async (t) => {
  const before = `${GATEWAY}${route('all', '/')}`;
  const other = GATEWAY.replace('name: edge,', 'name: other,');
  const without = other.replace('gatewayClassName: headgate', 'gatewayClassName: elsewhere');
  const answer = await new Folders(t).compare(before, `${before}${without}`);
  t.true(hasChanges(answer));
  t.is(shown(answer)[0]?.includes('1 not compared'), true, shown(answer)[0]);
  t.is(
    shown(answer).at(-1),
    'Not compared: Gateway shop/other is not served: Its GatewayClass "elsewhere" does not exist',
  );
});

test('A password that is not asked for any more opens, another list of users may open', async (t) => {
  const secret = (name: string): string =>
    `apiVersion: v1\nkind: Secret\nmetadata: {name: ${name}, namespace: shop}\nstringData: {auth: "ann:{SHA}0DPiKuNIrrVmD8IUCuw1hQxNqZc="}\n---\n`;
  const asking = (name: string): string =>
    `${GATEWAY}${secret(name)}${route('all', '/', {
      annotations: `headgate.io/auth-type: basic, headgate.io/auth-secret: ${name}`,
    })}`;
  const kinds = async (before: string, after: string): Promise<readonly string[]> => {
    const { requests } = await new Folders(t).compare(before, after);
    return [...new Set(requests.map(({ kind }) => kind))];
  };
  t.deepEqual(await kinds(asking('users'), `${GATEWAY}${route('all', '/')}`), ['opens']);
  t.deepEqual(await kinds(`${GATEWAY}${route('all', '/')}`, asking('users')), ['closes']);
});

test('A port that no object had opens, and one that goes closes', async (t) => {
  const tcp = (name: string): string => `
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: shop, annotations: {headgate.io/load-balancer-ips: 192.0.2.20}}
spec: {type: LoadBalancer, ports: [{port: 25, name: smtp}]}
---
`;
  const folders = new Folders(t);
  const { access, ports } = await folders.compare(GATEWAY, `${GATEWAY}${tcp('mail')}`);
  t.deepEqual(
    access.map(({ kind, port, ownerAfter }) => [kind, port, ownerAfter]),
    [['opens', 'TCP port 25 of 192.0.2.20', 'Service shop/mail']],
  );
  t.deepEqual(ports, [
    { change: 'comes', subject: 'TCP port 25 of 192.0.2.20', detail: 'Service shop/mail' },
  ]);
  const gone = await folders.compare(`${GATEWAY}${tcp('mail')}`, GATEWAY);
  t.deepEqual(
    gone.access.map(({ kind }) => kind),
    ['closes'],
  );
  const moved = await folders.compare(`${GATEWAY}${tcp('mail')}`, `${GATEWAY}${tcp('post')}`);
  t.is(moved.ports[0]?.change, 'moves');
});

test('Another backend, its weights, a redirect and other headers are different kinds of difference', async (t) => {
  const before = `${GATEWAY}${route('all', '/')}`;
  const folders = new Folders(t);
  const kind = async (change: Parameters<typeof route>[2]): Promise<readonly string[]> => {
    const { requests } = await folders.compare(before, `${GATEWAY}${route('all', '/', change)}`);
    return requests.map((each) => `${each.kind}: ${each.before} → ${each.after}`);
  };
  t.deepEqual(await kind({ backends: '{name: canary, port: 80}' }), [
    'backend: shop/web port 80 → shop/canary port 80',
  ]);
  t.deepEqual(
    await kind({ backends: '{name: web, port: 80, weight: 9}, {name: canary, port: 80, weight: 1}' }),
    ['backend: shop/web port 80 → 1/10 shop/canary port 80, 9/10 shop/web port 80'],
  );
  t.deepEqual(
    (
      await kind({
        filters: '{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-a, value: b}]}}',
      })
    ).map((each) => each.split(':')[0]),
    ['handling'],
  );
  t.deepEqual(await kind({ backends: '{name: none, port: 80}' }), [
    'closes: Open to everybody → Closed to everybody (answer, status 500)',
  ]);
});

test('A password that a route gives its members is not shown, and that it differs is', async (t) => {
  const giving = (password: string): string => {
    const filters = `{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: Authorization, value: "Basic ${password}"}, {name: x-a, value: "${password.length}"}]}}`;
    return `${GATEWAY}${route('all', '/', { filters })}`;
  };
  for (const [before, after, words] of [
    ['abc', 'abcd', '"value":"4"'],
    ['abc', 'xyz', 'which differs in what is not shown'],
  ] as const) {
    const answer = await new Folders(t).compare(giving(before), giving(after));
    const text = shown(answer).join('\n');
    t.is(answer.requests[0]?.kind, 'handling');
    t.true(text.includes('"name":"Authorization","value":"…"') && text.includes(words), text);
    t.false(/Basic|abc|xyz/.test(text + JSON.stringify(answer)));
  }
});

test('Each load balancer has what it takes: commands, or the landing and a reload', async (t) => {
  const folders = new Folders(t);
  const { loadBalancers } = await folders.compare(
    `${GATEWAY}${route('all', '/')}`,
    `${GATEWAY}${route('all', '/', { backends: '{name: canary, port: 80}' })}`,
  );
  t.deepEqual(
    loadBalancers.map(({ subject, change, effort }) => [subject, change, effort]),
    [
      ['Pool shop/canary', 'comes', 'commands'],
      ['Pool shop/web', 'goes', 'commands'],
      ['Gateway shop/edge', 'changes', 'commands'],
    ],
  );
  const other = await folders.compare(GATEWAY, GATEWAY.replace('port: 80, protocol', 'port: 81, protocol'));
  t.deepEqual(
    other.loadBalancers.map(({ subject, effort }) => [subject, effort]),
    [['Gateway shop/edge', 'landing']],
  );
});

test('Members that leave are named, because their connections drain', async (t) => {
  const before = `${GATEWAY}${route('all', '/')}`;
  const { drains } = await new Folders(t).compare(before, before.replace(', {addresses: [10.1.1.2]}', ''));
  t.deepEqual(drains, [{ change: 'goes', subject: 'Pool shop/web', detail: '10.1.1.2:8080' }]);
});

test('Requests of a log are counted by what differs for their own clients', async (t) => {
  const line = (from: string, path: string): string =>
    `${from} - - [10/Oct/2026:13:55:36 +0000] "GET ${path} HTTP/1.1" 200 1`;
  const log = [
    line('10.1.1.1', '/a'),
    line('10.2.2.2', '/a'),
    line('192.0.2.1', '/a'),
    line('10.1.1.1', '/a/b'),
  ];
  const before = `${GATEWAY}${route('all', '/')}${route('a', '/a', { annotations: RANGES })}`;
  const after = `${GATEWAY}${route('all', '/')}${route('a', '/a')}`;
  const { log: found } = await new Folders(t).compare(before, after, log);
  t.is(found?.requests, 4);
  t.deepEqual(
    found?.groups.map(({ kind, count, before: was, after: is }) => [kind, count, was, is]),
    [['opens', 1, 'Open only to clients from 10.0.0.0/8', 'Open to everybody']],
  );
});

test('Ingresses and the HTTPRoutes made of them are compared by their requests, whatever serves them', async (t) => {
  const ingress = (path: string): string => `
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: edge, annotations: {headgate.io/load-balancer-ips: 192.0.2.9}}
spec: {controller: headgate.io/ingress-controller}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: shop}
spec:
  ingressClassName: edge
  rules:
  - host: shop.example.org
    http:
      paths: [{path: ${path}, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]
---
`;
  const folders = new Folders(t);
  const rest = GATEWAY.slice(GATEWAY.indexOf('apiVersion: v1'));
  const same = await folders.compare(`${rest}${ingress('/a')}`, `${GATEWAY}${route('a', '/a')}`);
  t.deepEqual(same.requests, []);
  const other = await folders.compare(`${rest}${ingress('/a')}`, `${GATEWAY}${route('a', '/b')}`);
  t.deepEqual(
    other.requests.map(({ kind }) => kind),
    ['opens', 'closes'],
  );
});

test('Only a problem that the change brings is a problem of the change', async (t) => {
  const bad = route('bad', '/bad', { annotations: 'headgate.io/limit-rps: many' });
  const folders = new Folders(t);
  const brings = await folders.compare(GATEWAY, `${GATEWAY}${bad}`);
  t.true(brings.problems.length > 0);
  t.true(shown(brings).includes('Problems'));
  const keeps = await folders.compare(`${GATEWAY}${bad}`, `${GATEWAY}${bad}${route('all', '/')}`);
  t.deepEqual(keeps.problems, []);
  t.is(
    shown(keeps).at(-1),
    '1 problem of both, as "headgate check" shows: what is refused there is not compared',
  );
});

test('What a client has sent is code in Markdown, and a value of an object notifies nobody', async (t) => {
  const before = `${GATEWAY}${route('all', '/')}${route('a', '/a', { annotations: RANGES })}`;
  const answer = await new Folders(t).compare(before, `${GATEWAY}${route('all', '/')}`, [
    '192.0.2.1 - - [x] "GET /a/`x`@team<img/src=x>#1![x](http://evil) HTTP/1.1" 200 1',
  ]);
  const text = planMarkdown(answer).join('\n');
  t.true(text.includes('\n  - `` /a/`x`@team<img/src=x>#1![x](http://evil) ``'), text);
  const outside = text.replace(/(`+)[^`].*?[^`]\1(?!`)|`@`/g, '');
  t.notRegex(outside, /@|<|\]\(/);
});

test('Markdown shows the same, and values of objects make none of their own', async (t) => {
  const answer = await new Folders(t).compare(
    GATEWAY,
    `${GATEWAY}${route('all', '/').replace('shop.example.org', '"*.example.org"')}`,
  );
  const lines = planMarkdown(answer);
  t.true(lines[0]?.startsWith('**1 opens, 0 close;'));
  t.true(lines.includes('### Opens'));
  t.true(lines.some((line) => line.includes('HTTPRoute shop/all\\#0')));
});

test('A patch of git is applied to a copy, and its problems name the folder itself', async (t) => {
  const folders = new Folders(t);
  const before = `${GATEWAY}${route('all', '/')}`;
  const after = `${GATEWAY}${route('all', '/', { backends: '{name: canary, port: 80}' })}`;
  const file = folders.write('manifests/shop/all.yaml', before);
  const patch = createTwoFilesPatch('a/manifests/shop/all.yaml', 'b/manifests/shop/all.yaml', before, after);
  const states = await folderPatched(join(folders.root, 'manifests'), patch, folders.settings);
  const { requests } = await planAnswer(states, folders.settings, undefined);
  t.deepEqual(
    requests.map(({ kind }) => kind),
    ['backend'],
  );
  t.is(readFileSync(file, 'utf8'), before);
  const broken = createTwoFilesPatch('/dev/null', 'b/manifests/shop/new.yaml', '', 'kind: [\n');
  const { after: read } = await folderPatched(join(folders.root, 'manifests'), broken, folders.settings);
  t.true(
    read.problems.some(({ message }) =>
      message.includes(join(folders.root, 'manifests', 'shop', 'new.yaml')),
    ),
  );
});

test('A patch adds and removes files, and one that does not fit is refused with its file', (t) => {
  const folders = new Folders(t);
  const old = folders.write('m/old.yaml', 'a: 1\n');
  const made = createTwoFilesPatch('/dev/null', 'b/m/sub/new.yaml', '', 'b: 1\n');
  patchFolder(
    join(folders.root, 'm'),
    `${made}\n${createTwoFilesPatch('a/m/old.yaml', '/dev/null', 'a: 1\n', '')}`,
  );
  t.throws(() => readFileSync(old));
  t.is(readFileSync(join(folders.root, 'm', 'new.yaml'), 'utf8'), 'b: 1\n');
  for (const [patch, message] of [
    ['nonsense', /no unified diff/],
    [createTwoFilesPatch('a/x.yaml', 'b/x.yaml', 'a\n', 'b\n'), /no file "a\/x.yaml"/],
    [createTwoFilesPatch('a/new.yaml', 'b/new.yaml', 'other\n', 'b\n'), /"new.yaml": its text is not/],
    [createTwoFilesPatch('/dev/null', 'b/../../etc/x', '', 'b\n'), /outside the folder/],
  ] as const)
    t.throws(() => patchFolder(join(folders.root, 'm'), patch), { message });
});
