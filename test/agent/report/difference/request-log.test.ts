// Lines of logs, and the requests that they have.

import test from 'ava';
import { type LoggedRequest, loggedRequest } from '../../../../agent/report/difference/request-log.ts';

const OWN =
  '{"time":"2026-11-26T03:12:07Z","client":"198.51.100.7","vip":"192.0.2.10","namespace":"shop","service":"edge","port":443,"method":"GET","host":"Shop.Example.org","path":"/v1/é","status":200}';

function summaryOf(found: LoggedRequest | undefined): unknown {
  if (found === undefined) return undefined;
  const { request, place, client } = found;
  const { method, host, path, query } = request;
  return [method, host, path, query && Object.fromEntries(query), place, client.from?.address];
}

const NO_PLACE = { isTls: undefined, port: undefined, family: 'v4', vip: '', owner: '' };

test('A line of the connection log has its port, its address and its Gateway, and a query that is not known', (t) => {
  const place = {
    isTls: undefined,
    port: 443,
    family: 'v4',
    vip: '192.0.2.10',
    owner: 'gateway:shop/edge',
  };
  t.deepEqual(summaryOf(loggedRequest(OWN, '')), [
    ...['GET', 'shop.example.org', '/v1/%C3%A9', undefined],
    ...[place, '198.51.100.7'],
  ]);
  t.true(loggedRequest(OWN, '')?.request.hasOtherHeaders);
});

test('Another log in JSON is read by the names of nginx and others', (t) => {
  const line =
    '{"remote_addr":"2001:db8::1","http_host":"a.example:8443","request_uri":"/x?b=1","request_method":"post","scheme":"https"}';
  t.deepEqual(summaryOf(loggedRequest(line, '')), [
    ...['POST', 'a.example', '/x', { b: '1' }],
    ...[{ ...NO_PLACE, isTls: true, family: 'v6' }, '2001:db8::1'],
  ]);
  t.deepEqual(summaryOf(loggedRequest('{"host":"a.example","request":"GET /y HTTP/1.1"}', '')), [
    ...['GET', 'a.example', '/y', {}],
    ...[{ ...NO_PLACE, family: undefined }, undefined],
  ]);
});

test('Access logs in the common and the combined format have their host from the virtual host or from the command line', (t) => {
  const common = '192.0.2.99 - ann [10/Oct/2026:13:55:36 +0000] "GET /admin?x=1 HTTP/1.1" 200 2326';
  t.deepEqual(summaryOf(loggedRequest(common, 'shop.example.org')), [
    ...['GET', 'shop.example.org', '/admin', { x: '1' }],
    ...[NO_PLACE, '192.0.2.99'],
  ]);
  t.is(loggedRequest(common, ''), undefined);
  const combined = `shop.example.org:443 ${common} "https://other.example/" "curl/8 \\"x\\""`;
  t.deepEqual(summaryOf(loggedRequest(combined, 'ignored.example')), [
    ...['GET', 'shop.example.org', '/admin', { x: '1' }],
    ...[{ ...NO_PLACE, isTls: true, port: 443 }, '192.0.2.99'],
  ]);
});

test('What has no request is no request', (t) => {
  const lines = [
    ...['', 'garbage', '{', '[]', '{}', '{"method":"GET","host":"a.example","path":"*"}'],
    ...['192.0.2.99 - - [10/Oct/2026:13:55:36 +0000] "-" 400 0', OWN.replace('"GET"', '"-"')],
  ];
  for (const line of lines) t.is(loggedRequest(line, 'a.example'), undefined, line);
});

test('A request for a whole URL has its scheme, host and path (RFC 9112, section 3.2.2)', (t) => {
  const line = '192.0.2.99 - - [10/Oct/2026:13:55:36 +0000] "GET http://a.example/x?y HTTP/1.1" 200 1';
  t.deepEqual(summaryOf(loggedRequest(line, 'b.example')), [
    ...['GET', 'a.example', '/x', { y: '' }],
    ...[{ ...NO_PLACE, isTls: false }, '192.0.2.99'],
  ]);
});

test('HAProxy’s own format is read, behind what syslog writes', (t) => {
  const line = (client: string, frontend: string, request: string): string =>
    `Feb  6 12:14:14 localhost haproxy[14389]: ${client}:33317 [06/Feb/2009:12:14:14.655] ${frontend} static/srv1 10/0/30/69/+109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "${request}"`;
  t.deepEqual(summaryOf(loggedRequest(line('10.0.1.2', 'web', 'GET /a?b=1 HTTP/1.1'), 'shop.example.org')), [
    ...['GET', 'shop.example.org', '/a', { b: '1' }],
    ...[NO_PLACE, '10.0.1.2'],
  ]);
  const ofTls = line('2001:db8::1', 'web~', 'GET https://a.example:8443/x HTTP/2.0');
  t.deepEqual(summaryOf(loggedRequest(ofTls, '')), [
    ...['GET', 'a.example', '/x', {}],
    ...[{ ...NO_PLACE, isTls: true, family: 'v6' }, '2001:db8::1'],
  ]);
  t.is(loggedRequest(line('10.0.1.2', 'web', '<BADREQ>'), 'shop.example.org'), undefined);
});

test('What a web server writes behind a backslash is what the client has sent', (t) => {
  const line = (path: string): string => `10.0.1.2 - - [x] "GET ${path} HTTP/1.1" 200 1 "-" "a \\"b\\""`;
  const pathOf = (path: string) => loggedRequest(line(path), 'a.example')?.request.path;
  t.is(pathOf('/a\\"b'), '/a"b');
  t.is(pathOf('/a\\x22b\\xC3\\xA9'), '/a"b%C3%A9');
  t.is(pathOf('/a\\x1Bb'), '/a%1Bb');
});
