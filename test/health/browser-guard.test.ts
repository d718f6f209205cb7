import test from 'ava';
import { whyRefused } from '../../health/browser-guard.ts';

const judged = test.macro({
  exec(t, headers: Record<string, string>, localAddress: string, isTaken: boolean) {
    t.is(whyRefused(headers, localAddress, 'LB1') === '', isTaken);
  },
  title: (what) => `whyRefused() ${what}`,
});

for (const host of ['127.0.0.1:9180', '127.0.0.1', 'localhost:8080', '[::1]:9180', 'lb1:9180', 'LOCALHOST.'])
  test(`accepts the host "${host}" on loopback`, judged, { host }, '127.0.0.1', true);
for (const host of [
  'evil.example:9180',
  'localhost.evil.example',
  'lb1.evil.example',
  '',
  'localhost:80:80',
  '[evil]',
]) {
  test(`refuses the host "${host}" on loopback`, judged, { host }, '127.0.0.1', false);
  test(`refuses the host "${host}" on loopback of IPv6`, judged, { host }, '::1', false);
}
test(
  'refuses a foreign host on loopback of a dual-stack socket',
  judged,
  { host: 'evil.example' },
  '::ffff:127.0.0.1',
  false,
);
test(
  'accepts any host on an address that other hosts reach',
  judged,
  { host: 'lb1.example.com' },
  '192.0.2.1',
  true,
);
test('accepts a request without host, which no browser sends', judged, {}, '127.0.0.1', true);

const host = 'localhost';
for (const site of ['cross-site', 'same-site']) {
  test(
    `refuses a request from a page of another origin (${site})`,
    judged,
    { host, 'sec-fetch-site': site, 'sec-fetch-dest': 'empty' },
    '127.0.0.1',
    false,
  );
  test(
    `refuses to be framed by one (${site})`,
    judged,
    { host, 'sec-fetch-site': site, 'sec-fetch-dest': 'iframe' },
    '127.0.0.1',
    false,
  );
  test(
    `takes a visit by a link from one (${site})`,
    judged,
    { host, 'sec-fetch-site': site, 'sec-fetch-dest': 'document' },
    '127.0.0.1',
    true,
  );
}
for (const site of ['same-origin', 'none'])
  test(
    `takes what the page itself or its reader asks for (${site})`,
    judged,
    { host, 'sec-fetch-site': site },
    '127.0.0.1',
    true,
  );
