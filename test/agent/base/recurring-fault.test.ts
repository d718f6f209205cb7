import test from 'ava';
import { RecurringFault } from '../../../agent/base/recurring-fault.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';

function start() {
  const clock = new FakeClock();
  const reports: string[] = [];
  const fault = new RecurringFault({
    onReport: (text, failures) => reports.push(`${text} ${failures}`),
    onOver: () => reports.push('over'),
    clock,
  });
  return { clock, reports, fault };
}

test('A fault of several parts is reported once, and once a minute with the number of failures', async (t) => {
  const { clock, reports, fault } = start();
  for (let second = 0; second <= 120; second++) {
    for (const part of ['Service', 'Node']) fault.failed(part, 'away', 'gone');
    await clock.advance(1_000);
  }
  t.deepEqual(reports, ['gone 1', 'gone 120', 'gone 120']);
});

test('Another cause is reported at once, another text of the same cause is not', (t) => {
  const { reports, fault } = start();
  fault.failed('Service', 'away', 'one');
  fault.failed('Service', 'away', 'two');
  fault.failed('Service', 'refused', 'three');
  t.deepEqual(reports, ['one 1', 'three 2']);
});

test('A fault is over when all parts that met it work', (t) => {
  const { reports, fault } = start();
  fault.worked('Service');
  fault.failed('Service', 'away', 'gone');
  fault.failed('Node', 'away', 'gone');
  fault.worked('Service');
  fault.worked('Service');
  t.deepEqual(reports, ['gone 1']);
  fault.worked('Node');
  t.deepEqual(reports, ['gone 1', 'over']);
  fault.failed('Node', 'away', 'gone');
  t.deepEqual(reports, ['gone 1', 'over', 'gone 1']);
});
