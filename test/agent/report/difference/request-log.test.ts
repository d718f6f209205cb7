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

test('A request for a whole URL has its path', (t) => {
  const line = '192.0.2.99 - - [10/Oct/2026:13:55:36 +0000] "GET http://a.example/x?y HTTP/1.1" 200 1';
  t.deepEqual(summaryOf(loggedRequest(line, 'b.example')), [
    ...['GET', 'b.example', '/x', { y: '' }],
    ...[NO_PLACE, '192.0.2.99'],
  ]);
});
