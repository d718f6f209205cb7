import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { Clock } from '../../../agent/base/clock.ts';
import type { AddressClaim } from '../../../agent/kubernetes/address-claim.ts';
import { ReleaseOrder, type ReleaseOrderOptions } from '../../../agent/release/release-order.ts';
import { MAX_NAMESPACES, ReleaseMark } from '../../../agent/state/release-mark.ts';

const ALL = { all: true, namespaces: [] };
const SHOP = { all: false, namespaces: ['shop'] };

/** Time passes at once. */
function fastClock(): Clock {
  let now = 1_000;
  return {
    monotonic: () => now,
    wall: () => now,
    after: (milliseconds, callback) => {
      setImmediate(() => {
        now += milliseconds;
        callback();
      });
      return () => undefined;
    },
  };
}

async function world(t: ExecutionContext, change: Partial<ReleaseOrderOptions> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'released.json');
  const mark = new ReleaseMark(path);
  const claims = new Map([
    ['one', claim('one', '192.0.2.1', 'shop/one')],
    ['two', claim('two', '192.0.2.2', 'shop/two')],
    ['kept', claim('kept', '192.0.2.3', 'default/kept')],
  ]);
  const served = new Map([...claims.values()].map(({ address, service }) => [service, [address]]));
  const calls: string[] = [];
  const fails = new Set<string>();
  let doesErase = true;
  const options: ReleaseOrderOptions = {
    mark,
    host: {
      vips: () => served,
      apply: () => {
        for (const [service] of [...served])
          if (mark.isReleased(service.split('/')[0] ?? '')) served.delete(service);
        if (doesErase)
          for (const [name, { service }] of [...claims])
            if (mark.isReleased(service.split('/')[0] ?? '')) claims.delete(name);
      },
      isReading: false,
      isBusy: false,
      stays: async () => [],
    },
    claims: {
      all: () => claims.values(),
      on: (address) => [...claims.values()].filter((each) => each.address === address),
      publicOf: (address) => address,
    },
    provision: () => async (request, others) => {
      calls.push(`${request.address} ${request.service} ${others.join()}`.trim());
      return fails.has(request.address) ? 'failed with status 1' : undefined;
    },
    cluster: undefined,
    others: () => [],
    clock: fastClock(),
    ...change,
  };
  return {
    order: new ReleaseOrder(options),
    mark,
    path,
    claims,
    served,
    calls,
    fails,
    keepClaims: () => {
      doesErase = false;
    },
  };
}

test('release() calls the provisioner once for each address of the namespace, and again only for what failed', async (t) => {
  const { order, served, calls, fails, path } = await world(t);
  fails.add('192.0.2.2');
  const first = await order.release(SHOP);
  t.deepEqual(first.left, ['192.0.2.2 of Service shop/two: the provisioner failed with status 1']);
  t.false(first.ok);
  t.deepEqual([...served.keys()], ['default/kept']);
  t.deepEqual(calls.splice(0).sort(), ['192.0.2.1 shop/one', '192.0.2.2 shop/two']);
  // Also an agent that starts later knows it.
  t.deepEqual(
    new ReleaseMark(path).owed.map(({ address }) => address),
    ['192.0.2.2'],
  );
  fails.clear();
  t.deepEqual(await order.release(SHOP), {
    ok: true,
    released: ['192.0.2.2 at the provisioner'],
    left: [],
    notes: [],
  });
  t.deepEqual(calls.splice(0), ['192.0.2.2 shop/two']);
  t.deepEqual(await order.release(SHOP), { ok: true, released: [], left: [], notes: [] });
  t.deepEqual(calls, []);
});

test('release() passes the owners that keep a shared address', async (t) => {
  const { order, claims, calls } = await world(t);
  claims.set('shared', claim('shared', '192.0.2.1', 'default/shared'));
  await order.release(SHOP);
  t.deepEqual(calls.sort(), ['192.0.2.1 shop/one default/shared', '192.0.2.2 shop/two']);
});

test('Without an API server release() works from the claims that are known, and does not call the provisioner twice', async (t) => {
  const { order, calls, keepClaims } = await world(t, {
    cluster: {
      otherLeader: () => '',
      // biome-ignore lint/correctness/useYield: it fails before
      clean: async function* () {
        throw new Error('connect ECONNREFUSED');
      },
    },
  });
  keepClaims();
  const first = await order.release(ALL);
  t.deepEqual([first.ok, first.left], [true, []]);
  t.deepEqual(first.notes, [
    'What the cluster has is not removed, because its API does not answer: connect ECONNREFUSED',
  ]);
  t.is(calls.splice(0).length, 3);
  t.deepEqual((await order.release(ALL)).released, []);
  t.deepEqual(calls, []);
});

test('release() says what is left: on this host, in the cluster, and at other hosts', async (t) => {
  const { order, keepClaims } = await world(t, {
    cluster: {
      otherLeader: () => 'lb-b',
      clean: async function* () {
        yield { object: 'Service shop/one', fault: 'forbidden' };
      },
    },
    others: () => [
      { name: 'lb-b', scope: undefined },
      { name: 'lb-c', scope: { at: Number.MAX_SAFE_INTEGER, all: true, namespaces: [] } },
    ],
  });
  keepClaims();
  const { ok, left } = await order.release(SHOP);
  t.false(ok);
  t.deepEqual(left, [
    'Service shop/one: forbidden',
    'AddressClaim one: the agent of lb-b keeps it: run this there, too',
    'AddressClaim two: the agent of lb-b keeps it: run this there, too',
    'The host lb-b is not heard, or its agent is older: run this there, too',
  ]);
  const stuck = await world(t);
  const host = { ...hostOf(stuck), stays: async () => ['192.0.2.1: it is on eth0 of this host'] };
  const other = await world(t, { host });
  other.claims.clear();
  t.deepEqual((await other.order.release(SHOP)).left, ['192.0.2.1: it is on eth0 of this host']);
});

test('undo() serves a namespace again, but not one of everything; adopt() follows later orders only', async (t) => {
  const { order, mark } = await world(t);
  t.deepEqual((await order.undo(SHOP)).released, []);
  await order.release(SHOP);
  t.true(mark.isReleased('shop'));
  t.false(mark.isReleased('default'));
  t.deepEqual((await order.undo(SHOP)).released, ['namespace shop']);
  t.false(mark.isReleased('shop'));
  await order.release(ALL);
  t.regex((await order.undo(SHOP)).left.join(), /only "--undo" without a namespace/);
  t.true(mark.isReleased('shop'));
  const { at } = mark.scope;
  await order.adopt({ at, all: false, namespaces: [] });
  t.true(mark.scope.all, 'It is not later');
  await order.adopt({ at: at + 1, all: false, namespaces: ['shop'] });
  t.deepEqual(mark.scope, { at: at + 1, all: false, namespaces: ['shop'] });
});

test('release() refuses more namespaces than hosts can report to one another', async (t) => {
  const { order } = await world(t);
  const many = Array.from({ length: MAX_NAMESPACES + 1 }, (_, at) => `n${at}`);
  await t.throwsAsync(order.release({ all: false, namespaces: many }), {
    message: /More than 16 namespaces/,
  });
});

test('A mark that cannot be read releases nothing, and says why', async (t) => {
  const { path, order } = await world(t);
  await order.release(SHOP);
  const { writeFile } = await import('node:fs/promises');
  await writeFile(path, '{"scope":{"at":1,"all":"yes","namespaces":[]}}');
  const mark = new ReleaseMark(path);
  t.false(mark.isReleased('shop'));
  t.regex(mark.fault, /all/);
});

function hostOf({
  served,
}: {
  readonly served: ReadonlyMap<string, readonly string[]>;
}): ReleaseOrderOptions['host'] {
  const mine = new Map(served);
  return {
    vips: () => mine,
    apply: () => mine.clear(),
    isReading: false,
    isBusy: false,
    stays: async () => [],
  };
}

function claim(name: string, address: string, service: string): AddressClaim {
  return {
    kind: 'AddressClaim',
    name,
    address,
    family: 'v4',
    pool: 'all',
    service,
    serviceUID: '',
    sharingKey: '',
    ports: [],
    granted: undefined,
    publicAddress: '',
    since: 1,
    heldUntil: 0,
    reserved: false,
    namespace: '',
  };
}
