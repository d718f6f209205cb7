import test from 'ava';
import type { Interval } from '../../../../agent/dataplane/failure-window.ts';
import { allColumns, type Column } from '../../../../agent/haproxy/stats/columns.ts';
import {
  counted,
  hasTrouble,
  intervalOfClients,
  intervalOfMember,
  readingOf,
} from '../../../../agent/haproxy/stats/failure-window.ts';
import type { StatRow } from '../../../../agent/haproxy/stats/stat-rows.ts';

function row(values: Partial<Record<Column, number>>, mode: 'tcp' | 'http' = 'tcp'): StatRow {
  const numbers = allColumns.map((column) => values[column] ?? Number.NaN);
  return {
    proxy: 'default:web:tcp:80:v4',
    name: 'BACKEND',
    values: numbers,
    status: 'UP',
    checkStatus: '',
    mode,
  };
}

type Values = Partial<Record<Column, number>>;
const ofClients = (values: Values, mode?: 'http', answers = true) =>
  intervalOfClients(row(values, mode), readingOf(row(values, mode)), answers);
const ofMember = (values: Values, mode?: 'http', open = 0) =>
  intervalOfMember(row(values, mode), readingOf(row(values, mode)), open, true);

for (const [what, interval, expected] of [
  [
    'refused connections fail',
    ofClients({ stot: 50, econ: 50 }),
    { unit: 'connections', tried: 50, failed: 50, hasSuccess: false },
  ],
  [
    'connections that are still being opened are no success',
    ofClients({ stot: 50, econ: 40, scur: 10 }),
    { unit: 'connections', tried: 50, failed: 40, hasSuccess: false },
  ],
  [
    'an open connection that got bytes is one',
    ofClients({ stot: 50, econ: 40, scur: 10, bout: 1 }),
    { unit: 'connections', tried: 50, failed: 40, hasSuccess: true },
  ],
  [
    'so is one that has ended without an error',
    ofClients({ stot: 50, econ: 49 }),
    { unit: 'connections', tried: 50, failed: 49, hasSuccess: true },
  ],
  [
    'connections of the interval before may fail in this one',
    ofClients({ stot: 5, econ: 9 }),
    { unit: 'connections', tried: 9, failed: 9, hasSuccess: false },
  ],
  [
    'connections that clients break off without an answer fail where members answered before',
    ofClients({ stot: 5, bin: 90, cli_abrt: 3, srv_abrt: 2 }),
    { unit: 'connections', tried: 5, failed: 5, hasSuccess: false },
  ],
  [
    'they are well where no member has ever answered',
    ofClients({ stot: 5, bin: 90, cli_abrt: 5 }, undefined, false),
    { unit: 'connections', tried: 5, failed: 0, hasSuccess: true },
  ],
  [
    'and where members answer others',
    ofClients({ stot: 5, bin: 90, bout: 1, cli_abrt: 5 }),
    { unit: 'connections', tried: 5, failed: 0, hasSuccess: true },
  ],
  [
    'a client that sends nothing cannot be answered',
    ofClients({ stot: 5, cli_abrt: 5 }),
    { unit: 'connections', tried: 5, failed: 0, hasSuccess: true },
  ],
  [
    'in mode http answers count',
    ofClients({ stot: 3, hrsp_2xx: 10, hrsp_4xx: 2, hrsp_5xx: 8 }, 'http'),
    { unit: 'requests', tried: 20, failed: 8, hasSuccess: true },
  ],
  [
    'an attempt at a member that another takes over fails there',
    ofMember({ stot: 20, wredis: 20 }),
    { unit: 'connections', tried: 20, failed: 20, hasSuccess: false },
  ],
  [
    'an attempt that HAProxy makes again in a moment is no success',
    ofMember({ stot: 20, wretr: 18 }, undefined, 2),
    { unit: 'connections', tried: 20, failed: 18, hasSuccess: false },
  ],
  [
    'a member of mode http that cannot be reached has failed connections',
    ofMember({ stot: 4, wretr: 3, econ: 1, hrsp_5xx: 1 }, 'http'),
    { unit: 'connections', tried: 4, failed: 4, hasSuccess: false },
  ],
  [
    'one that answers 500 has failed requests',
    ofMember({ stot: 1, hrsp_5xx: 6 }, 'http'),
    { unit: 'requests', tried: 6, failed: 6, hasSuccess: false },
  ],
] as const satisfies readonly (readonly [string, Interval, Interval])[])
  test(`Of what HAProxy has counted ${what}`, (t) => t.deepEqual(interval, expected));

test('counted() is the difference, and all of a counter that has begun again', (t) => {
  const before = readingOf(row({ stot: 10, econ: 4 }));
  const now = readingOf(row({ stot: 12, econ: 1 }));
  t.deepEqual(counted(before, now), readingOf(row({ stot: 2, econ: 1 })));
  t.deepEqual(counted(undefined, now), now);
  t.false(hasTrouble(counted(now, now)));
});

test('hasTrouble() is true for what only members had, too', (t) => {
  for (const column of ['econ', 'eresp', 'wretr', 'wredis', 'hrsp_5xx'] as const)
    t.true(hasTrouble(readingOf(row({ [column]: 1 }))), column);
  t.false(hasTrouble(readingOf(row({ stot: 9, bout: 9, hrsp_4xx: 9 }))));
});
