// What opens where only HAProxy can tell which rule takes a logged request, and what differs if nothing is open.

import test, { type ExecutionContext } from 'ava';
import type { RequestGroup } from '../../../../agent/report/difference/request-differences.ts';
import { AUTHORITY, WEB } from '../../../support/values/certificates.ts';
import { Folders, GATEWAY, route } from '../../../support/values/plan-folders.ts';

const LINE = '{"method":"GET","url":"/","host":"shop.example.org","client":"192.0.2.7","scheme":"http"}';
const CLOSED = { annotations: 'headgate.io/whitelist-source-range: 10.0.0.0/8' };

/** With the route of `open` only for requests with this value of the header x-a. */
function byHeader(name: string, value: string, more: Parameters<typeof route>[2] = {}): string {
  const match = `{path: {type: PathPrefix, value: /}, headers: [{name: x-a, value: "${value}"}]}`;
  return route(name, '/', more).replace('{path: {type: PathPrefix, value: /}}', match);
}

async function ofLog(t: ExecutionContext, before: string, after: string): Promise<RequestGroup | undefined> {
  const { log } = await new Folders(t).compare(GATEWAY + before, GATEWAY + after, [LINE]);
  return log?.groups[0];
}

test('A rule that may take a logged request opens or closes by the rule that takes it otherwise', async (t) => {
  const [all, closed] = [route('all', '/'), route('all', '/', CLOSED)];
  const kindOf = async (before: string, after: string) => (await ofLog(t, before, after))?.kind;
  t.is(await kindOf(closed, closed + byHeader('own', '1')), 'opens');
  t.is(await kindOf(closed + byHeader('own', '1'), closed), 'closes');
  t.is(await kindOf(all + byHeader('own', '1', CLOSED), all), 'opens');
  t.is(await kindOf(all, all + byHeader('own', '1', CLOSED)), 'closes');
  const open = closed + byHeader('own', '1');
  t.is(await kindOf(open, closed + byHeader('own', '2')), 'opens', 'another value of the header');
  t.is(
    await kindOf(open, open + byHeader('z', '2', CLOSED)),
    undefined,
    'those that it takes were closed out',
  );
  t.is(await kindOf(open, open + byHeader('a', '2', CLOSED)), 'closes', 'a request may have both values');
});

test('What opens has the words of the rule by which it does', async (t) => {
  const group = await ofLog(t, route('all', '/', CLOSED), route('all', '/', CLOSED) + byHeader('own', '1'));
  t.deepEqual(
    [group?.before, group?.after],
    ['Open only to clients from 10.0.0.0/8', 'Open to everybody'],
    'and the log has no client that both let in',
  );
});

test('A request that no client may send differs by the answer only', async (t) => {
  const closed = (backends: string): string =>
    route('all', '/', { annotations: 'headgate.io/denylist-source-range: 0.0.0.0/0', backends });
  t.is(
    await ofLog(t, closed('{name: web, port: 80}'), closed('{name: canary, port: 80}')),
    undefined,
    'its backend gets none of them',
  );
  const group = await ofLog(t, closed('{name: web, port: 80}'), '');
  t.deepEqual([group?.kind, group?.after.includes('404')], ['answer', true]);
});

test('A redirect that becomes a backend opens also if clients need a password', async (t) => {
  const asking = { annotations: 'headgate.io/auth-type: basic, headgate.io/auth-secret: users' };
  const secret =
    'apiVersion: v1\nkind: Secret\nmetadata: {name: users, namespace: shop}\nstringData: {auth: "ann:$5$abcd$fx5zb4bSMQ0LtI8v.P8Q6GTFe1GVodrRa94HcXAi000"}\n---\n';
  const redirect = '{type: RequestRedirect, requestRedirect: {hostname: away.example.org}}';
  const leading = route('all', '/', { ...asking, filters: redirect }).replace(/ {4}backendRefs.*\n/, '');
  const group = await ofLog(t, secret + leading, secret + route('all', '/', asking));
  t.is(group?.kind, 'opens');
});

test('A weaker protection opens also if its backend is not there, which may come later', async (t) => {
  const [closed, open] = [CLOSED, {}].map((more) =>
    route('all', '/', { ...more, backends: '{name: missing, port: 80}' }),
  );
  t.is((await ofLog(t, closed ?? '', open ?? ''))?.kind, 'opens');
  t.is((await ofLog(t, open ?? '', closed ?? ''))?.kind, 'closes');
  t.is(await ofLog(t, open ?? '', open ?? ''), undefined);
});

test('A name without routes of its own opens if its handshakes ask for no certificate any more', async (t) => {
  const yaml = (value: object): string => `${JSON.stringify(value)}\n---\n`;
  const secret = (name: string, stringData: object): string =>
    yaml({
      ...{ apiVersion: 'v1', kind: 'Secret', type: name === 'tls' ? 'kubernetes.io/tls' : 'Opaque' },
      ...{ metadata: { name, namespace: 'shop' }, stringData },
    });
  const ingress = (name: string, host: string, annotations: object): string => {
    const backend = { service: { name: 'web', port: { number: 80 } } };
    return yaml({
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' },
      metadata: { name, namespace: 'shop', annotations },
      spec: {
        ingressClassName: 'edge',
        tls: [{ hosts: [host], secretName: 'tls' }],
        rules: [{ host, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }],
      },
    });
  };
  const rest = [
    secret('tls', { 'tls.crt': WEB.cert, 'tls.key': WEB.key }),
    secret('ca', { 'ca.crt': AUTHORITY }),
    yaml({
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'IngressClass' },
      metadata: { name: 'edge', annotations: { 'headgate.io/load-balancer-ips': '192.0.2.9' } },
      spec: { controller: 'headgate.io/ingress-controller' },
    }),
    ingress('wide', '*.example.org', {}),
  ].join('');
  const prefix = 'nginx.ingress.kubernetes.io/';
  const asking = ingress('canary', 'shop.example.org', {
    [`${prefix}canary`]: 'true',
    [`${prefix}canary-weight`]: '100',
    [`${prefix}auth-tls-secret`]: 'shop/ca',
  });
  const line = LINE.replace('"http"', '"https"');
  const kindOf = async (before: string, after: string) => {
    const { log } = await new Folders(t).compare(GATEWAY + rest + before, GATEWAY + rest + after, [line]);
    return log?.groups[0]?.kind;
  };
  t.is(await kindOf(asking, ''), 'opens');
  t.is(await kindOf('', asking), 'closes');
});
