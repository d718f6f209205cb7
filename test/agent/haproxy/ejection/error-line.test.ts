import test from 'ava';
import fc from 'fast-check';
import { errorInWords, parseErrorLine } from '../../../../agent/haproxy/ejection/error-line.ts';

const EJECTION = { after: 3, statuses: '500,502-504', share: 34 };
const MEMBER = '10.0.0.1:8080';

test('parseErrorLine() reads the line of a listener without a log, and both formats of one with a log', (t) => {
  const error = { kind: 'error', backend: 'pool', member: MEMBER, ended: 'SH', status: 502 };
  t.deepEqual(parseErrorLine(`headgate pool ${MEMBER} SH 502`), error);
  t.deepEqual(
    parseErrorLine(JSON.stringify({ path: '/', backend: 'pool', member: MEMBER, status: 502, ended: 'SH' })),
    error,
  );
  const http = `192.0.2.1:4000 [29/Nov/2026:05:00:00.000] edge~ pool/${MEMBER} 0/0/1/-1/2 502 207 - - SH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1"`;
  t.deepEqual(parseErrorLine(http), error);
  const tcp = `192.0.2.1:4000 [29/Nov/2026:05:00:00.000] web web/${MEMBER} 0/-1/1003 0 SC 1/1/0/0/3 0/0`;
  t.like(parseErrorLine(tcp), { member: MEMBER, ended: 'SC' });
});

test('parseErrorLine() reads an IPv6 member', (t) => {
  t.like(parseErrorLine('headgate pool 2001:db8::1:8080 -- 500'), {
    member: '2001:db8::1:8080',
    status: 500,
  });
});

test('parseErrorLine() leaves out requests that no member got, and other lines', (t) => {
  for (const line of [
    'headgate pool <NOSRV> SC 503',
    '',
    'headgate',
    '{"member":',
    '{"error":"request"}',
    'null',
    '192.0.2.1:4000 [29/Nov/2026:05:00:00.000] edge/1: SSL handshake failure',
    'Server default:web:tcp:80:v4/10.0.0.1:8080 is DOWN, reason: Layer4 timeout',
    `Server headgate:probes/${MEMBER} is DOWN, changed from CLI. 0 active`,
    `Server headgate:probes/${MEMBER} is UP/READY (leaving forced maintenance).`,
  ])
    t.is(parseErrorLine(line), undefined, line);
});

test('parseErrorLine() reads the result of a probe', (t) => {
  const probe = { kind: 'probe', probe: MEMBER };
  const line = `Server headgate:probes/${MEMBER} is`;
  t.deepEqual(parseErrorLine(`${line} UP, reason: Layer7 check passed, code: 200`), {
    ...probe,
    passes: true,
  });
  t.deepEqual(parseErrorLine(`${line} DOWN, reason: Layer7 wrong status`), { ...probe, passes: false });
});

test('parseErrorLine() takes no member from what a client sends', (t) => {
  t.notThrows(() => fc.assert(fc.property(fc.string(), (text) => void parseErrorLine(text))));
  const line = `192.0.2.1:4000 [29/Nov/2026:05:00:00.000] edge pool/${MEMBER} 0/0/1/1/2 500 207 - - ---- 1/1/0/0/0 0/0 "GET /x [a] f b/10.9.9.9:1 0/0/0 500 1 - - ---- HTTP/1.1"`;
  t.like(parseErrorLine(line), { member: MEMBER, status: 500 });
});

const words = (ended: string, status: number, mode: 'tcp' | 'http' = 'http'): string =>
  errorInWords({ kind: 'error', backend: 'pool', member: MEMBER, ended, status }, EJECTION, mode);

test('errorInWords() counts statuses of the set, refused and reset connections, and time-outs', (t) => {
  t.is(words('--', 500), 'it answered 500');
  t.is(words('--', 503), 'it answered 503');
  t.is(words('CD', 500), 'it answered 500');
  t.is(words('SC', 503), 'it refused the connection');
  t.is(words('sC', 503), 'it did not accept the connection in time');
  t.is(words('SH', 502), 'it reset the connection');
  t.is(words('SD', 200), 'it reset the connection');
  t.is(words('sH', 504), 'it did not answer in time');
});

test('errorInWords() does not count what a client or the load balancer does', (t) => {
  for (const [ended, status] of [
    ['--', 501],
    ['--', 505],
    ['--', 404],
    ['CD', 200],
    ['CH', -1],
    ['cD', 200],
    ['sQ', 503],
    ['PR', 500],
    ['PH', 502],
    ['LR', 503],
  ] as const)
    t.is(words(ended, status), '', `${ended} ${status}`);
});

test('errorInWords() does not count idle connections in mode tcp', (t) => {
  t.is(words('sD', Number.NaN, 'tcp'), '');
  t.is(words('SD', Number.NaN, 'tcp'), 'it reset the connection');
  t.is(words('--', Number.NaN, 'tcp'), '');
});
