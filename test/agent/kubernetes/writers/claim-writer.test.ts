import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { systemClock } from '../../../../agent/base/clock.ts';
import {
  type AddressClaim,
  claimManifest,
  type StoredClaim,
} from '../../../../agent/kubernetes/address-claim.ts';
import { ClaimWriter } from '../../../../agent/kubernetes/writers/claim-writer.ts';
import { until } from '../../../support/basics/until.ts';
import { FakeApi, refusal } from '../../../support/kube/fake-api.ts';
import { claim as claimOf } from '../../../support/values/address-requests.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const CLAIMS = '/apis/headgate.io/v1alpha1/addressclaims';
const NAME = '192-0-2-1';
const PATH = `${CLAIMS}/${NAME}`;

const claim = (service: string, more: object = {}) =>
  claimOf(NAME, { address: '192.0.2.1', service, serviceUID: 'u', ...more });

/** With a wish for the one claim, and what the watch shows of it. */
function writer({ mayClaim = async () => true } = {}) {
  const api = new FakeApi();
  const state: { desired?: AddressClaim | undefined; shown?: StoredClaim | undefined; leads: boolean } = {
    leads: true,
  };
  const kept: (string | undefined)[] = [];
  const overruled: string[] = [];
  const own = new ClaimWriter({
    api,
    clock: systemClock,
    log: silentLog(),
    isLeader: () => state.leads,
    desired: () => state.desired,
    stored: () => state.shown,
    mayClaim,
    onKept: (_, stored) => kept.push(stored?.service),
    onOverruled: ({ service }) => overruled.push(service),
    random: () => 0,
  });
  own.lead(true);
  const methods = () => api.requests.map(({ method }) => method).join(' ');
  return { api, state, kept, overruled, own, methods };
}

function stored(api: FakeApi, value: AddressClaim): StoredClaim {
  const { metadata } = api.put(PATH, { ...claimManifest(value), metadata: { name: NAME, uid: 'x' } });
  const { uid, resourceVersion } = metadata;
  return { kind: 'AddressClaim', key: NAME, uid, resourceVersion, claim: value };
}

test('ClaimWriter creates, replaces and deletes a claim once each, guarded by its version', async (t) => {
  const { api, state, kept, own, methods } = writer();
  state.desired = claim('default/a');
  own.write([NAME]);
  await until('it is kept', () => kept.length === 1);
  state.desired = claim('default/b');
  own.write([NAME]);
  await until('it is replaced', () => kept.length === 2);
  t.like(api.requests[1]?.body as object, { metadata: { resourceVersion: '101' } });
  state.desired = undefined;
  own.write([NAME]);
  await until('it is gone', () => kept.length === 3);
  t.deepEqual(kept, ['default/a', 'default/b', undefined]);
  t.is(methods(), 'POST PUT DELETE');
  t.false(api.objects.has(PATH));
  await own.close();
});

test('ClaimWriter writes no new claim that it may not write', async (t) => {
  const asked: string[] = [];
  const { api, state, own } = writer({
    mayClaim: async (...service: string[]) => {
      asked.push(service.join(' '));
      return false;
    },
  });
  state.desired = claim('default/a');
  own.write([NAME]);
  await until('it has asked', () => asked.length > 0);
  t.deepEqual(asked, ['default/a u']);
  t.deepEqual(api.requests, []);
  await own.close();
});

test('ClaimWriter leaves a claim of another Service that existed first', async (t) => {
  const { api, state, overruled, own } = writer();
  stored(api, claim('default/first'));
  state.desired = claim('default/second');
  api.fault = ({ method }) => {
    // The allocation has taken it in by then, and wants it so.
    if (method === 'GET') state.desired = claim('default/first');
    return undefined;
  };
  own.write([NAME]);
  await until('it is told', () => overruled.length === 1);
  t.deepEqual(overruled, ['default/first']);
  await own.close();
  t.is(api.objects.get(PATH)?.spec.service, 'default/first');
});

test('ClaimWriter leaves a claim that another agent has given to another Service', async (t) => {
  const { api, state, overruled, own } = writer();
  state.shown = stored(api, claim('default/a', { heldUntil: '2026-01-01T00:00:00Z' }));
  stored(api, claim('default/b'));
  state.desired = claim('default/a');
  api.fault = ({ method }) => {
    if (method === 'GET') state.desired = claim('default/b');
    return undefined;
  };
  own.write([NAME]);
  await until('it is told', () => overruled.length === 1);
  t.deepEqual(overruled, ['default/b']);
  await own.close();
  t.is(api.objects.get(PATH)?.spec.service, 'default/b');
});

test('ClaimWriter leaves a claim of another Service that appears before its own is sent', async (t) => {
  const { api, state, overruled, own, methods } = writer();
  state.desired = claim('default/second');
  own.created([NAME]);
  own.write([NAME]);
  // The permission is awaited; meanwhile the watch shows what a former leader has written.
  state.shown = stored(api, claim('default/first'));
  api.fault = ({ method }) => {
    if (method === 'GET') state.desired = claim('default/first');
    return undefined;
  };
  await until('it is told', () => overruled.length === 1);
  t.deepEqual(overruled, ['default/first']);
  await own.close();
  t.is(methods(), 'GET');
  t.is(api.objects.get(PATH)?.spec.service, 'default/first');
});

test('ClaimWriter reports an unreadable claim as a fault, and backs off', async (t) => {
  const { api, state, own } = writer();
  const { metadata } = api.put(PATH, {
    ...claimManifest(claim('default/a')),
    metadata: { name: NAME, uid: 'x' },
  });
  api.put(PATH, { metadata, spec: { address: 'of another version' } });
  state.desired = claim('default/b');
  own.write([NAME]);
  await until('it is said', () => own.fault !== '');
  t.is(own.fault, `Cannot read the object at "/apis/headgate.io/v1alpha1/addressclaims/${NAME}"`);
  await delay(300);
  t.true(api.requests.length <= 4, String(api.requests.length));
  await own.close();
});

test('ClaimWriter repeats a write after a conflict at once, and after a failure later', async (t) => {
  const { api, state, kept, overruled, own, methods } = writer();
  const old = stored(api, claim('default/a'));
  stored(api, claim('default/a', { heldUntil: '2026-01-01T00:00:00Z' }));
  state.shown = old;
  state.desired = claim('default/b');
  let failures = 1;
  api.fault = ({ method }) =>
    method === 'PUT' && failures-- > 0 ? refusal(500, 'InternalError') : undefined;
  own.write([NAME]);
  await until('it is kept', () => kept.length === 1);
  t.is(methods(), 'PUT PUT GET PUT');
  t.deepEqual(overruled, []);
  t.is(api.objects.get(PATH)?.spec.service, 'default/b');
  t.is(own.fault, '');
  await own.close();
});

test('ClaimWriter creates a claim again that the watch shows deleted', async (t) => {
  const { api, state, kept, own, methods } = writer();
  state.desired = claim('default/a');
  own.write([NAME]);
  await until('it is kept', () => kept.length === 1);
  api.objects.delete(PATH);
  own.observed(NAME);
  own.write([NAME]);
  await until('it is kept again', () => kept.length === 2);
  t.is(methods(), 'POST POST');
  await own.close();
});
