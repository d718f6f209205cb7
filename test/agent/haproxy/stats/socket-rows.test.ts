import test from 'ava';
import { HeadgateError } from '../../../../agent/base/errors.ts';
import { hasGroups, SOCKET_GROUPS, socketGroup } from '../../../../agent/haproxy/config/socket-groups.ts';
import { SocketRows, sumsOf } from '../../../../agent/haproxy/stats/socket-rows.ts';

const HEADER = '# pxname,svname,qcur,scur,stot,bin,bout,iid,sid,type,mode,conn_tot,dcon,dses,';
const name = (at: number): string => `default:web-${at}:tcp:80:v4`;
const line = (at: number, sessions = 0, open = 0, connections: number | '' = sessions): string =>
  `${name(at)},sock-1,,${open},${sessions},${10 * sessions},${20 * sessions},${at},1,3,tcp,${connections},2,1,`;

test('Rows of a group that are not as they were before are told, by their listener', (t) => {
  const rows = new SocketRows();
  const take = (group: number, ...lines: readonly string[]): readonly string[] =>
    [...rows.take(group, [HEADER, ...lines].join('\n'))].map(({ listener }) => listener);
  t.deepEqual(take(1, line(1), line(2)), [name(1), name(2)]);
  t.deepEqual(take(2, line(3)), [name(3)]);
  t.deepEqual(take(1, line(1), line(2)), []);
  t.deepEqual(take(1, line(1), line(2, 1, 1)), [name(2)]);
  const [, second] = rows.rows(1);
  t.like(second, { listener: name(2), id: 2, isOpen: true });
  t.deepEqual(take(1, line(1), line(2, 1)), [name(2)]);
  t.false(rows.rows(1)[1]?.isOpen);
  t.is(rows.size, 3);
  t.deepEqual(take(1), [], 'All are gone');
  t.is(rows.size, 1);
  t.deepEqual(take(2, line(4), line(3)), [name(4), name(3)], 'Another worker');
});

test('What the sockets of a listener have counted is summed up, sessions where they are told', (t) => {
  const rows = new SocketRows();
  rows.take(1, [HEADER, line(1, 3, 1, 9), line(2, 5)].join('\n'));
  rows.take(2, [HEADER, line(1, 4, 1, 6)].join('\n'));
  // scur, stot, bin, bout, conn_tot, dcon, dses.
  t.deepEqual(
    [...sumsOf([...rows.rows(1), ...rows.rows(2)])],
    [
      [name(1), [2, 7, 70, 140, 15, 4, 2]],
      [name(2), [0, 5, 50, 100, 5, 2, 1]],
    ],
  );
  const older = new SocketRows();
  older.take(1, [HEADER, line(1, 3, 0, '')].join('\n'));
  t.deepEqual([...sumsOf(older.rows(1))], [[name(1), [0, Number.NaN, 30, 60, 3, 2, 1]]]);
});

test('What is no answer to the question is an error', (t) => {
  const rows = new SocketRows();
  for (const text of ['', 'Permission denied', '# pxname,svname,scur,'])
    t.throws(() => rows.take(1, text), {
      instanceOf: HeadgateError,
      message: /^Cannot read HAProxy's statistics: /,
    });
});

test('Addresses of a listener are in groups of their own, as far as there are groups, and all groups are used alike', (t) => {
  const places = Array.from({ length: SOCKET_GROUPS }, (_, at) => socketGroup(name(1), at));
  t.deepEqual(
    places.toSorted((a, b) => a - b),
    Array.from({ length: SOCKET_GROUPS }, (_, at) => at + 1),
  );
  t.true(hasGroups(SOCKET_GROUPS));
  t.false(hasGroups(SOCKET_GROUPS + 1));
  const sizes = new Map<number, number>();
  for (let at = 0; at < 3_200; at++) {
    const group = socketGroup(name(at), 0);
    sizes.set(group, (sizes.get(group) ?? 0) + 1);
  }
  t.is(sizes.size, SOCKET_GROUPS);
  t.true(Math.max(...sizes.values()) < 150);
});
