import test from 'ava';
import { createLog } from '../../../../agent/host/log.ts';
import { type HostReport, readReports } from '../../../../agent/kubernetes/host-report.ts';
import { HostReports, type OwnReport } from '../../../../agent/report/cluster/host-reports.ts';
import { peerWords } from '../../../../agent/report/cluster/report-words.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { answer, FakeApi, type Json } from '../../../support/kube/fake-api.ts';

/** The host `lb1` with one BGPPeer; `shows()` is what the API shows of its status. */
function start({ leads = true } = {}) {
  const api = new FakeApi();
  const clock = new FakeClock();
  const events: string[] = [];
  const state = {
    leads,
    own: new Map<string, OwnReport | undefined>(),
    object: { metadata: { uid: 'u', generation: 1 }, status: {} } as Json,
  };
  api.fault = () => answer(200, {});
  const reports = new HostReports({
    kind: 'BGPPeer',
    cluster: {
      api,
      isLeader: () => state.leads,
      events: { record: (_, { type, reason, note }) => events.push(`${type} ${reason} ${note}`) },
      current: () => readReports(state.object),
      names: () => ['tor-a'],
    },
    host: () => 'lb1',
    own: () => state.own,
    words: peerWords(() => ''),
    clock,
    log: createLog({ level: 'error' }),
  });
  reports.start();
  reports.lead(leads);
  const writes = (manager: string) =>
    api.requests.filter(({ query }) => query?.fieldManager === manager).map(({ body }) => body as Json);
  const shows = async (hosts: readonly Json[], conditions: readonly Json[] = []) => {
    state.object = { metadata: state.object.metadata, status: { hosts, conditions } };
    reports.shown('tor-a');
    await clock.advance(5_000);
  };
  const entry = (name: string, kind: HostReport['state'], message = '') => {
    const now = new Date(clock.wall()).toISOString();
    return { name, state: kind, message, since: now, reportedAt: now };
  };
  return { api, clock, events, state, reports, writes, shows, entry };
}

const OWN = 'headgate-host-lb1';

test('HostReports writes the entry of this host alone, by a field manager of its own, and only changes', async (t) => {
  const { api, clock, state, writes } = start({ leads: false });
  await clock.advance(10_000);
  t.is(api.requests.length, 0);
  state.own.set('tor-a', undefined);
  await clock.advance(10_000);
  t.is(api.requests.length, 0, 'not known yet');
  state.own.set('tor-a', { state: 'Up', message: '' });
  await clock.advance(10_000);
  t.is(writes(OWN).length, 1);
  t.like(api.requests[0], {
    method: 'PATCH',
    path: '/apis/headgate.io/v1alpha1/bgppeers/tor-a/status',
    query: { fieldManager: OWN, force: 'true' },
    contentType: 'application/apply-patch+yaml',
  });
  t.like(writes(OWN)[0], { metadata: { name: 'tor-a', uid: 'u' } });
  t.like(writes(OWN)[0].status.hosts[0], { name: 'lb1', state: 'Up', message: '' });
  state.own.set('tor-a', { state: 'Down', message: 'it does not answer' });
  await clock.advance(10_000);
  t.like(writes(OWN)[1].status.hosts[0], { state: 'Down', message: 'it does not answer' });
  await clock.advance(5 * 60_000);
  t.is(writes(OWN).length, 3, 'it is renewed');
  t.is(writes(OWN)[1].status.hosts[0].since, writes(OWN)[2].status.hosts[0].since);
});

test('HostReports removes the entry of this host when the object is no longer for it', async (t) => {
  const { clock, state, writes, shows, entry } = start({ leads: false });
  state.own.set('tor-a', { state: 'Up', message: '' });
  await clock.advance(5_000);
  await shows([entry('lb1', 'Up')]);
  state.own.delete('tor-a');
  await clock.advance(5_000);
  t.deepEqual(writes(OWN).at(-1)?.status, {});
});

test('HostReports writes conditions of all entries only as the leader, and an Event for each change of state', async (t) => {
  const { state, events, writes, shows, entry, reports, clock } = start({ leads: false });
  await shows([entry('lb2', 'Up')]);
  t.is(writes('headgate-hosts').length, 0);
  state.leads = true;
  reports.lead(true);
  await clock.advance(1_000);
  await shows([entry('lb2', 'Up'), entry('lb3', 'Down', 'it has another password')]);
  const { status } = writes('headgate-hosts').at(-1) ?? {};
  t.is(status.hostsUp, '1/2');
  t.like(status.conditions[0], { type: 'Accepted', status: 'True', observedGeneration: 1 });
  t.like(status.conditions[1], {
    type: 'Established',
    status: 'False',
    message: 'With 1 of 2 hosts; lb3: it has another password',
  });
  t.deepEqual(events, ['Warning SessionDown lb3: it has another password']);
  await shows([entry('lb2', 'Down', 'BIRD does not run'), entry('lb3', 'Up')]);
  t.deepEqual(events.slice(1), [
    'Warning SessionDown lb2: BIRD does not run',
    'Normal SessionUp lb3: established',
  ]);
  await shows([entry('lb2', 'Down', 'another reason'), entry('lb3', 'Up')]);
  t.is(events.length, 3, 'other words alone are no Event');
});

test('HostReports lets go of the entry of a host that has been silent for an hour', async (t) => {
  const { writes, shows, entry, clock } = start();
  await shows([entry('gone', 'Up'), entry('lb2', 'Up')]);
  await clock.advance(20 * 60_000);
  t.like(writes('headgate-hosts').at(-1)?.status.conditions[1], { status: 'False', reason: 'NoHosts' });
  t.is(writes('headgate-host-gone').length, 0);
  await clock.advance(45 * 60_000);
  t.deepEqual(writes('headgate-host-gone')[0]?.status, {});
});
