import test from 'ava';
import { reportedRows, statRows } from '../../../agent/pushed/stat-rows.ts';
import { readText } from '../../../agent/pushed/text/pushed-text.ts';
import { BACKEND, LISTENER, textOf } from '../../support/octavia/pushed-texts.ts';

const names = (answer: string, members: readonly string[]) =>
  reportedRows(answer, readText(textOf({ members: members.map((name) => ({ name })) }))).map(
    (row) => `${row.get('pxname') === LISTENER ? 'listener' : row.get('svname')} ${row.get('status')}`,
  );
const ANSWER = `# pxname,svname,status,last_chk,
${LISTENER},FRONTEND,OPEN,,
${BACKEND},m1,MAINT,"a ""b"", c",
${BACKEND},BACKEND,DOWN,,
prometheus-exporter-agent,BACKEND,UP,,
prometheus-exporter-internal,BACKEND,UP,,
`;

test('reportedRows() leaves out removed members, and a pool without members is up', (t) => {
  t.deepEqual(names(ANSWER, []), ['listener OPEN', 'BACKEND UP', 'BACKEND UP']);
});

test('reportedRows() leaves HAProxy its word if the text has members', (t) => {
  t.deepEqual(names(ANSWER, ['m1']), ['listener OPEN', 'm1 MAINT', 'BACKEND DOWN', 'BACKEND UP']);
});

test('statRows() reads fields between quotes', (t) => {
  t.is(statRows(ANSWER)[1]?.get('last_chk'), 'a "b", c');
});

test('statRows() refuses another answer', (t) => {
  t.throws(() => statRows('Unknown command'), { code: 'RUNTIME_REPLY' } as never);
});
