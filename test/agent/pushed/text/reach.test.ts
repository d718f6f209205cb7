import test from 'ava';
import { readText } from '../../../../agent/pushed/text/pushed-text.ts';
import { reachBeyond } from '../../../../agent/pushed/text/reach.ts';
import { type TextOptions, textOf } from '../../../support/octavia/pushed-texts.ts';
import { newestTexts } from '../../../support/octavia/render-haproxy.ts';

const BASE = '/var/lib/octavia';
const faultOf = (text: string | TextOptions) =>
  reachBeyond(readText(typeof text === 'string' ? text : textOf(text)), BASE);

test('reachBeyond() accepts every sample text of the newest Octavia', async (t) => {
  for (const { name, text } of await newestTexts()) t.is(faultOf(text), '', name);
});

test('reachBeyond() accepts values of users that look like sockets or programs', (t) => {
  const frontendLines = [
    'acl a req.hdr(x) -m str unix@/run/a',
    'acl b path -m beg /lua-load',
    'redirect location http://a/?x=stats\\ socket if a',
  ];
  t.is(faultOf({ frontendLines }), '');
});

const REFUSED: readonly (readonly [title: string, text: string | TextOptions, fault: RegExp])[] = [
  [
    'a second global section',
    `${textOf()}\nglobal\n    stats socket /run/x.sock level admin\n`,
    /two sections/,
  ],
  ['a second global section that is indented', `${textOf()}\n  global\n    lua-load /x\n`, /two sections/],
  ['another socket', { globalLines: ['stats socket /run/x.sock mode 0666 level user'] }, /another socket/],
  [
    'a socket of level admin',
    { globalLines: [`stats socket ${BASE}/x.sock mode 0666 level admin`] },
    /another socket/,
  ],
  [
    'a socket outside of the base by dots',
    { globalLines: [`stats socket ${BASE}/../x.sock mode 0666 level user`] },
    /another socket/,
  ],
  ['a listener at a path', { bind: '/run/x.sock' }, /socket of this host/],
  ['a listener at a unix socket', { bind: 'unix@/run/x.sock' }, /socket of this host/],
  [
    'a member at a unix socket',
    textOf().replace('10.0.0.9:80', 'unix@/run/docker.sock'),
    /socket of this host/,
  ],
  ['a member at a path', textOf().replace('10.0.0.9:80', '/run/docker.sock'), /socket of this host/],
  ['Lua', { globalLines: ['lua-load /tmp/x.lua'] }, /none of Octavia's/],
  ['another user', textOf().replace('user nobody', 'user root'), /none of Octavia's/],
  ['another root', { globalLines: ['chroot /tmp'] }, /none of Octavia's/],
  ['the environment', { globalLines: ['setenv A b'] }, /none of Octavia's/],
  ['a program', `${textOf()}\nprogram x\n    command /bin/sh\n`, /none of Octavia's/],
  [
    'another program for checks',
    { backendLines: ['external-check command /bin/sh'] },
    /no program of the image/,
  ],
  ['a section by a quoted word', { backendLines: ['"global"', '"stats" socket /x'] }, /none of Octavia's/],
  ['a condition', { frontendLines: ['.if 1'] }, /none of Octavia's/],
  ['a page of statistics', { frontendLines: ['stats enable'] }, /none of Octavia's/],
  ['another state file', textOf().replace('lb/servers-state', '../../etc/x'), /not below/],
  ['a zero byte', textOf().replace('mode http', 'mode http\0'), /^line \d+ has a control character$/],
  ['a carriage return', textOf().replace('mode http', 'mode http\r disabled'), /control character/],
  ['a line without an end', { frontendLines: [`acl a path ${'x'.repeat(20_000)}`] }, /more than 16384 bytes/],
];

for (const [title, text, fault] of REFUSED)
  test(`reachBeyond() refuses ${title}`, (t) => {
    t.regex(faultOf(text), fault);
  });
