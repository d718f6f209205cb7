import test from 'ava';
import { createLog } from '../../../agent/host/log.ts';
import { ListLines } from '../../../agent/sources/list-lines.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';

test('A score of kinds that are listed at a reconnect are one line, and a single kind has its name', async (t) => {
  const clock = new FakeClock();
  const logged: object[] = [];
  const write = (line: string) => {
    const { time: _, level: __, ...fields } = JSON.parse(line);
    logged.push(fields);
  };
  const log = createLog({ level: 'info', format: 'json', destination: { write } });
  const lines = new ListLines(log, clock);
  for (let at = 0; at < 20; at++) lines.listed(`Kind${at}`, 'expired', 3, 1);
  t.deepEqual(logged, []);
  await clock.advance(5_000);
  const message = 'Listed the objects of the API server';
  t.deepEqual(logged.splice(0), [{ kinds: 20, reasons: ['expired'], objects: 60, message }]);
  lines.listed('Node', 'audit', 2, 1);
  await clock.advance(5_000);
  t.deepEqual(logged.splice(0), [{ kind: 'Node', reasons: ['audit'], objects: 2, message }]);
  await clock.advance(60_000);
  t.deepEqual(logged, []);
});
