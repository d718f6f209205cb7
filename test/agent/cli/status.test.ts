import test from 'ava';
import { readableLines, statusLines } from '../../../agent/cli/status.ts';
import type { Line } from '../../../agent/cli/text.ts';
import type { PairStatus } from '../../../agent/pair/pair.ts';
import type { AgentStatus } from '../../../agent/report/answers/status.ts';

/** A host without load balancers; tests add the parts that they read. */
const linesOf = (parts: Partial<AgentStatus>): readonly string[] =>
  statusLines({
    version: '0.0.0',
    startedAt: '2026-11-20T19:00:00.000Z',
    objects: {},
    haproxy: {
      serving: false,
      reloadPending: [],
      serversToDelete: 0,
      fault: '',
      persistFault: '',
      unserved: '',
    },
    disk: { folder: '/state', files: [] },
    addresses: { pools: [], unkept: 0 },
    operating: { counts: { load_balancer: {}, member: {} }, unwell: [] },
    problems: [],
    ...parts,
  } as unknown as AgentStatus).map(plainText);

const plainText = (line: Line): string =>
  typeof line === 'string'
    ? line
    : line.map((part) => (typeof part === 'string' ? part : part.text)).join('');

const rowOf = (title: string, lines: readonly string[]): string =>
  lines
    .find((line) => line.startsWith(`${title}:`))
    ?.slice(title.length + 1)
    .trim() ?? '';

for (const [api, row] of [
  [
    { synced: true, fault: '', lastAnswer: '2026-11-20T19:01:00.000Z', lostSince: '' },
    'connected, last answer 2026-11-20T19:01:00.000Z',
  ],
  [
    { synced: true, fault: 'No server answers', lastAnswer: '2026-11-20T19:01:00.000Z', lostSince: '' },
    'serving its last known objects, last answer 2026-11-20T19:01:00.000Z: No server answers',
  ],
  [{ synced: false, fault: '', lastAnswer: '', lostSince: '' }, 'reading all objects, no answer yet'],
] as const)
  test(`The row of the API server: ${row}`, (t) => {
    t.is(rowOf('API server', linesOf({ api })), row);
  });

test('A cluster that may be gone has a row of its own', (t) => {
  const lostSince = '2026-11-20T19:01:00.000Z';
  const api = { synced: true, fault: 'No server answers', lastAnswer: lostSince, lostSince };
  t.is(
    rowOf('Cluster', linesOf({ api })),
    'no API server has answered since 2026-11-20T19:01:00.000Z: the cluster may be gone; this host serves on',
  );
  t.is(rowOf('Cluster', linesOf({ api: { ...api, lostSince: '' } })), '');
});

const FILE = { path: '/state/a', writtenAt: Date.UTC(2026, 10, 20, 19), fault: '' };
for (const [files, row, more] of [
  [[], '/state, not written since the start', []],
  [[FILE, { ...FILE, writtenAt: 0 }], '/state, last written 2026-11-20T19:00:00.000Z', []],
  [
    [FILE, { ...FILE, fault: 'Cannot write "/state/b"' }, { ...FILE, fault: 'Cannot write "/state/c"' }],
    'Cannot write "/state/b"',
    ['  Cannot write "/state/c"'],
  ],
] as const)
  test(`The rows of the state on disk: ${row}`, (t) => {
    const lines = linesOf({ disk: { folder: '/state', files } });
    t.is(rowOf('State on disk', lines), row);
    const at = lines.findIndex((line) => line.startsWith('State on disk'));
    t.deepEqual(lines.slice(at + 1, at + 1 + more.length), more);
  });

const until = '2026-11-20T19:05:00.000Z';
for (const [left, row] of [
  [undefined, `connections on this host until ${until}, not counted yet`],
  [1, `1 connection on this host until ${until}`],
  [7, `7 connections on this host until ${until}`],
  [0, ''],
] as const)
  test(`The row of a handover with ${left} connections left`, (t) => {
    const pair = {
      lowered: [],
      maintenance: false,
      peer: undefined,
      peerAddress: '192.0.2.2',
      peerNotReady: '',
      fault: '',
      handover: { left, until, whyNot: '' },
    } as unknown as PairStatus;
    t.is(rowOf('After failover', linesOf({ pair })), row);
  });

test('The fault of a part that is not served has a row, because the exit status is 1 for it', (t) => {
  const unserved = 'Ports of the kernel path are not served: nft ended';
  const haproxy = { serving: false, reloadPending: [], serversToDelete: 0, fault: '', unserved };
  t.is(rowOf('Fault', linesOf({ haproxy: haproxy as unknown as AgentStatus['haproxy'] })), unserved);
});

for (const [roles, row] of [
  [{ 'vrrp-51': 'backup' }, 'yes'],
  [{ 'vrrp-51': 'master', 'vrrp-52': 'backup' }, 'yes'],
  [{ 'vrrp-51': 'master' }, 'it has the VIPs already'],
] as const)
  test(`A peer with the roles ${Object.values(roles).join(', ')} may take over: ${row}`, (t) => {
    const pair = {
      lowered: [],
      peer: { roles, version: '0.1.0' },
      peerAddress: '192.0.2.2',
      peerNotReady: '',
      parity: { model: 'same', running: 'same' },
      fault: '',
    } as unknown as PairStatus;
    t.is(rowOf('Peer may take over', linesOf({ pair })), row);
  });

test('readableLines() says what to do if an agent of another version answers in another form', (t) => {
  const before = { version: '0.0.9', objects: {}, haproxy: {}, problems: [] } as unknown as AgentStatus;
  const error = t.throws(() => readableLines(before), { code: 'QUESTION_FAILED' });
  t.regex(
    error?.message ?? '',
    /^Cannot read the answer of the running agent, version 0\.0\.9 .*restart the agent/,
  );
});
