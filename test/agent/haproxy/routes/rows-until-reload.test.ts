// Rows for a worker that chooses by the name in the handshake while the desired listener does not, and the other way.

import test from 'ava';
import { untilReload } from '../../../../agent/haproxy/routes/rows-until-reload.ts';
import { tablesOf } from '../../../../agent/haproxy/routes/tables.ts';
import type { Listener } from '../../../../agent/model/load-balancer.ts';
import type { HostPattern, Routing, TlsRouting } from '../../../../agent/model/routes.ts';
import { entryOf, gatewayOf, sectionOf } from '../../../support/values/routes.ts';

const ANY: HostPattern = { kind: 'any', suffix: '' };
const RAW: HostPattern = { kind: 'exact', suffix: 'raw.org' };
const backends = [{ pool: 'pool:a', weight: 1, requestHeaders: undefined, responseHeaders: undefined }];
const PASSED: TlsRouting = { kind: 'tls', hosts: [{ host: RAW, backends }] };
const CHOICE: TlsRouting = {
  kind: 'tls',
  hosts: [...PASSED.hosts, { host: ANY, backends: [], isEnded: true }],
};
const [ENDING] = gatewayOf({ address: '127.0.0.1', port: 443 }, [
  sectionOf('all', '*', { 'web.org': [entryOf('/', 'a')] }),
]).listeners as [Listener];
const listener = (routing: Routing | undefined, dispatch?: TlsRouting): Listener => ({
  ...ENDING,
  routing,
  ...(dispatch && { dispatch }),
});
const PASSING = listener(PASSED);
const BOTH = listener(ENDING.routing, CHOICE);

/** `HOST|FRONTEND → target`, for the hosts that have rows. */
function hosts(each: Listener): readonly string[] {
  const rows = [...tablesOf(each).values()].flat().filter(({ map }) => map === 'hosts');
  return rows
    .map(({ key, value }) => {
      const [host, name = ''] = key.split('|');
      const isChoice = name.replace(/^\*+/, '') !== each.name;
      return `${isChoice ? 'choice' : 'listener'} ${host} ${/^(?:pool|ended)/.exec(value)?.[0] ?? 'table'}`;
    })
    .sort();
}

for (const [title, booted, desired, expected] of [
  [
    'no host is passed through any more: all TLS ends, as before',
    BOTH,
    ENDING,
    ['choice  ended', 'listener  table', 'listener web.org table'],
  ],
  ['TLS ends beside what was passed through: that still is', PASSING, BOTH, ['listener raw.org pool']],
  ['no TLS ends any more: what is passed through still is', BOTH, PASSING, ['choice raw.org pool']],
] as const)
  test(`Until the reload a worker has rows for the frontends that it has; ${title}`, (t) => {
    t.deepEqual(hosts(untilReload(desired, booted)), expected);
  });

test('A listener with the frontends of the worker, or that the worker does not have, stays the same value', (t) => {
  t.is(untilReload(BOTH, BOTH), BOTH);
  t.is(untilReload(PASSING, PASSING), PASSING);
  t.is(untilReload(ENDING, undefined), ENDING);
  t.is(untilReload(BOTH, ENDING), BOTH);
});
