import test from 'ava';
import { hostsCondition, peerConditions, upOf } from '../../../agent/kubernetes/host-conditions.ts';
import { type HostReport, readReports, SILENT_MS } from '../../../agent/kubernetes/host-report.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');
const WORDS = { type: 'Established', upBy: 'With', nobody: 'No host reports' };
const report = (host: string, state: HostReport['state'], message = '', age = 0): HostReport => ({
  ...{ host, state, message, since: NOW - age, reported: NOW - age },
});

test('hostsCondition() is true only if all hosts report Up, and names those that do not with their reason', (t) => {
  const all = hostsCondition([report('a', 'Up'), report('b', 'Up')], WORDS, NOW);
  t.deepEqual(all, { type: 'Established', status: 'True', reason: 'AllHosts', message: 'With 2 of 2 hosts' });
  const some = [report('a', 'Up'), report('b', 'Down', 'it has another password')];
  t.like(hostsCondition(some, WORDS, NOW), {
    status: 'False',
    reason: 'SomeHosts',
    message: 'With 1 of 2 hosts; b: it has another password',
  });
  t.is(upOf(some, NOW), '1/2');
  t.like(hostsCondition([report('a', 'Down')], WORDS, NOW), { reason: 'NoHosts' });
  t.like(hostsCondition([], WORDS, NOW), { status: 'Unknown', reason: 'NoHost', message: 'No host reports' });
});

test('hostsCondition() does not count a host that has been silent for long: what is not known is not true', (t) => {
  const reports = [report('a', 'Up'), report('b', 'Up', '', SILENT_MS)];
  const { status, message } = hostsCondition(reports, WORDS, NOW);
  t.is(status, 'False');
  t.regex(message, /b: it has not reported since 2026-01-01T11:45:00.000Z/);
});

test('peerConditions() says why an object is refused, by the API, or by a host', (t) => {
  const [unreadable] = peerConditions([report('a', 'Up')], WORDS, 'BGPPeer x: spec.asn: 0 is ...', NOW);
  t.like(unreadable, { type: 'Accepted', status: 'False', reason: 'InvalidObject' });
  const [refused, established] = peerConditions(
    [report('a', 'Refused', 'the name is taken')],
    WORDS,
    '',
    NOW,
  );
  t.like(refused, { status: 'False', reason: 'Refused', message: 'a: the name is taken' });
  t.like(established, { status: 'False', message: 'With 0 of 1 host; a: the name is taken' });
  t.like(peerConditions([], WORDS, '', NOW)[0], { status: 'Unknown', reason: 'NoHost' });
  t.like(peerConditions([report('a', 'Down')], WORDS, '', NOW)[0], { status: 'True' });
});

test('readReports() leaves out entries that cannot be read, such as those of a newer agent', (t) => {
  const hosts = [
    { name: 'a', state: 'Up', since: '2026-01-01T12:00:00Z', reportedAt: '2026-01-01T12:00:00Z' },
    { name: 'b', state: 'Dormant' },
    'c',
  ];
  const conditions = [{ type: 'Accepted', status: 'True', lastTransitionTime: 'then' }, {}];
  const read = readReports({ metadata: { uid: 'u', generation: 3 }, status: { hosts, conditions } });
  t.deepEqual(read?.reports, [report('a', 'Up')]);
  t.is(read?.generation, 3);
  t.deepEqual([...(read?.conditions ?? [])], [['Accepted', { status: 'True', since: 'then' }]]);
  t.is(readReports({ metadata: {} }), undefined);
  t.deepEqual(readReports({ metadata: { uid: 'u' }, status: 7 })?.reports, []);
});
