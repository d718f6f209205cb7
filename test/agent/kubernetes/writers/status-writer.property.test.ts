// The writer of statuses, whatever comes in whatever order: wishes, others who write, a watch that lags behind or goes
// back to an older version, answers that come late, a lead that is lost. In the end the API has what was wished for last.

import test from 'ava';
import fc from 'fast-check';
import { readCurrentService } from '../../../../agent/kubernetes/current-service.ts';
import { type DesiredService, FINALIZER } from '../../../../agent/kubernetes/writers/service-patch.ts';
import { StatusWriter } from '../../../../agent/kubernetes/writers/status-writer.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { FakeApi, type Json } from '../../../support/kube/fake-api.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const KEY = 'default/web';
const PATH = '/api/v1/namespaces/default/services/web';
const THEIRS = { type: 'example.org/Probed', status: 'True', reason: 'Any', message: '' };

type Step =
  | { readonly kind: 'wish'; readonly ip: string }
  | { readonly kind: 'release' }
  | { readonly kind: 'choosing' }
  /** Another writer: clears the agent's fields, puts an earlier version back, takes the finalizer, adds a condition. */
  | { readonly kind: 'other'; readonly does: 'clear' | 'restore' | 'finalizer' | 'condition' }
  | { readonly kind: 'watch'; readonly versions: number }
  | { readonly kind: 'relist'; readonly back: number }
  | { readonly kind: 'hold' | 'answer' | 'lead' | 'follow' }
  | { readonly kind: 'pass'; readonly milliseconds: number };

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('wish' as const), ip: fc.constantFrom('192.0.2.10', '192.0.2.11') }),
    fc.constantFrom<Step>({ kind: 'release' }, { kind: 'choosing' }),
    fc.record({
      kind: fc.constant('other' as const),
      does: fc.constantFrom('clear' as const, 'restore' as const, 'finalizer' as const, 'condition' as const),
    }),
    fc.record({ kind: fc.constant('watch' as const), versions: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ kind: fc.constant('relist' as const), back: fc.integer({ min: 1, max: 3 }) }),
    fc.constantFrom<Step>({ kind: 'hold' }, { kind: 'answer' }, { kind: 'lead' }, { kind: 'follow' }),
    fc.record({ kind: fc.constant('pass' as const), milliseconds: fc.constantFrom(0, 10, 300, 3_000) }),
  ),
  { maxLength: 25 },
);

// Conformance: a status that another writer changes
test('StatusWriter ends with the last desired Service, whatever the watch shows and when', async (t) => {
  t.timeout(60_000);
  await t.notThrowsAsync(
    fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const { run, end } = start();
        for (const step of list) await run(step);
        await end();
      }),
      { numRuns: 1_000 },
    ),
  );
});

/** An API server that remembers every version of one Service, and a watch that stands at one of them. */
function start() {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  const versions: Json[] = [];
  const put = api.put.bind(api);
  api.put = (path, object) => {
    const stored = put(path, object);
    versions.push(stored);
    return stored;
  };
  api.put(PATH, {
    kind: 'Service',
    metadata: { namespace: 'default', name: 'web', uid: 'uid-1' },
    spec: { type: 'LoadBalancer' },
    status: { loadBalancer: {} },
  });
  let at = 0;
  let isLeading = true;
  let held: PromiseWithResolvers<undefined> | undefined;
  // An order is carried out, and its answer may be late.
  api.fault = async (request) => {
    const response = api.carryOut(request);
    await held?.promise;
    return response;
  };
  const writer = new StatusWriter({
    api,
    clock,
    log: silentLog(),
    isLeader: () => isLeading,
    random: () => 1,
    currentService: () => readCurrentService(versions[at]),
  });
  writer.lead(true);
  let wished: DesiredService | undefined;
  const wish = (next: DesiredService) => {
    wished = next;
    writer.set(KEY, next);
  };
  const show = (index: number) => {
    at = Math.max(0, Math.min(versions.length - 1, index));
    writer.observed(KEY);
    // What has been let go of is looked at again only when its Service is reported again, which follows from the watch.
    if (wished?.kind === 'release') wish(wished);
  };
  const lead = (leads: boolean) => {
    isLeading = leads;
    writer.lead(leads);
  };
  const run = async (step: Step): Promise<void> => {
    if (step.kind === 'wish') wish(serve(step.ip));
    else if (step.kind === 'release') wish({ kind: 'release', uid: 'uid-1', isTornDown: true });
    else if (step.kind === 'choosing') wish({ kind: 'choosing', uid: 'uid-1' });
    else if (step.kind === 'other') api.put(PATH, changed(api.objects.get(PATH), versions, step.does));
    else if (step.kind === 'watch') {
      for (let left = step.versions; left > 0 && at < versions.length - 1; left--) show(at + 1);
    } else if (step.kind === 'relist') show(at - step.back);
    else if (step.kind === 'hold') held ??= Promise.withResolvers();
    else if (step.kind === 'answer') held = void held?.resolve(undefined);
    else if (step.kind === 'lead') lead(true);
    else if (step.kind === 'follow') lead(false);
    else if (step.kind === 'pass') await clock.advance(step.milliseconds);
  };
  const end = async (): Promise<void> => {
    held = void held?.resolve(undefined);
    if (!isLeading) lead(true);
    // The watch shows everything, one version after another, also what the writer still writes.
    for (let rounds = 0; rounds < 50; rounds++) {
      while (at < versions.length - 1) {
        show(at + 1);
        await clock.advance(10);
      }
      await clock.advance(2_000);
      if (at === versions.length - 1) break;
    }
    await clock.advance(60_000);
    const fault = faultOf(api.objects.get(PATH), wished);
    if (fault !== '') throw new Error(fault);
    if (writer.waiting > 0) throw new Error('It still waits');
    const before = api.requests.length;
    await clock.advance(600_000);
    if (api.requests.length > before) throw new Error('It asks on although nothing moves');
    await writer.close();
  };
  return { run, end };
}

function changed(service: Json, versions: readonly Json[], does: string): Json {
  if (does === 'clear') return { ...service, status: { loadBalancer: {} } };
  if (does === 'restore') return { ...service, status: versions[Math.floor(versions.length / 2)].status };
  if (does === 'finalizer') return { ...service, metadata: { ...service.metadata, finalizers: [] } };
  const conditions = (service.status.conditions ?? []).filter(({ type }: Json) => type !== THEIRS.type);
  return { ...service, status: { ...service.status, conditions: [...conditions, THEIRS] } };
}

/** What is not as it was wished for; '' where all is. */
function faultOf({ metadata, status }: Json, wish: DesiredService | undefined): string {
  if (wish === undefined) return '';
  const hasFinalizer = (metadata.finalizers ?? []).includes(FINALIZER);
  const ours = (status.conditions ?? []).filter(({ type }: Json) => type.startsWith('headgate.io/'));
  const ips = (status.loadBalancer?.ingress ?? []).map(({ ip }: Json) => ip);
  if (wish.kind === 'choosing') return hasFinalizer && ours.length > 0 ? '' : 'It is not claimed';
  if (wish.kind === 'serve') {
    const [wanted] = wish.status.ingress;
    return hasFinalizer && ours.length > 0 && ips.join() === wanted?.ip ? '' : `It says ${ips}`;
  }
  return ours.length === 0 ? '' : 'Our conditions are still there';
}

function serve(ip: string): DesiredService {
  return {
    kind: 'serve',
    uid: 'uid-1',
    status: {
      ingress: [{ ip, ipMode: 'Proxy', ports: [{ port: 80, protocol: 'TCP' }], onlyIfPublished: false }],
      conditions: [{ type: 'headgate.io/IPAllocated', status: 'True', reason: 'Allocated', message: ip }],
      isSettled: true,
    },
  };
}
