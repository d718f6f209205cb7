import test from 'ava';
import {
  conditionsText,
  expressionId,
  headerChangesText,
  headerText,
  hostText,
  pathText,
  patternText,
  token,
} from '../../../../agent/haproxy/routes/encode.ts';
import { matchOf, patternOf } from '../../../support/values/routes.ts';

for (const [what, actual, expected] of [
  ['a host', hostText('api.example.org'), 'api.example.org'],
  ['a host in upper case', hostText('API.example.org'), 'api.example.org'],
  ['a host that would begin another key', hostText('a|b c\n'), 'a%7Cb%20c%0A'],
  ['a path', pathText("/a-b/(c);d'e,f=g&h%20"), "/a-b/(c);d'e,f=g&h%20"],
  ['a path with a blank', pathText('/a b'), '/a%20b'],
  ['a path that would end a command', pathText('/a\nshow info <<\\'), '/a%0Ashow%20info%20%3C%3C%5C'],
  ['a path beyond ASCII', pathText('/é😀'), '/%C3%A9%F0%9F%98%80'],
  ['a token', token('a=b&c|d;e %'), 'a%3Db%26c%7Cd%3Be%20%25'],
  ['a header', headerText(' a;b '), 'a;b'],
  ['a header that would begin another one', headerText('a\r\nX: b\0'), 'aX: b'],
  ['an exact hostname', patternText(patternOf('a.b')), 'a.b'],
  ['a wildcard', patternText(patternOf('*.b')), '**.b'],
  ['a wildcard of one label', patternText({ kind: 'one-label', suffix: 'b' }), '*.b'],
  ['any host', patternText(patternOf('*')), '*'],
  ['no condition', conditionsText(matchOf('/a')), ''],
  [
    'all conditions',
    conditionsText(
      matchOf('~/a|b', {
        method: 'GET',
        headers: [{ name: 'x', kind: 'exact', value: '1&2' }],
        query: [{ name: 'y', kind: 'regex', value: '.*' }],
      }),
    ),
    `mGET&hx=1%262&Qy=${expressionId('.*', 'whole')}&P${expressionId('/a|b', 'start')}`,
  ],
  [
    'changes of headers',
    headerChangesText({
      set: [{ name: 'X-A', value: 'a=b' }],
      add: [{ name: 'X-B', value: 'c\r\nd' }],
      remove: ['X-C'],
    }),
    'sX-A=a%3Db&aX-B=cd&rX-C',
  ],
  ['no changes', headerChangesText(undefined), ''],
] as const)
  test(`The text of ${what}`, (t) => {
    t.is(actual, expected);
  });
