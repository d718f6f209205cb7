import test from 'ava';
import { Reflected } from '../../../../agent/kubernetes/api/reflected.ts';
import { apiObjectOf } from '../../../../agent/kubernetes/api/watch-events.ts';
import { readCurrentService } from '../../../../agent/kubernetes/current-service.ts';

/** Objects whose annotation `bad` makes them unreadable, and the keys for which `onCurrent()` was called. */
function services() {
  const shown: string[] = [];
  const parse = (json: Readonly<Record<string, unknown>>) => {
    const { name, uid, bad } = json.metadata as { name: string; uid: string; bad?: boolean };
    const problem = { object: name, reason: 'InvalidObject', message: 'unreadable' } as const;
    if (bad) return { objects: [], problems: [problem] };
    return { objects: [{ key: `shop/${name}`, uid }], problems: [], current: readCurrentService(json) };
  };
  return { known: new Reflected(parse, undefined, (key) => shown.push(key)), shown };
}

const service = (name: string, resourceVersion: string, { uid = `uid-${name}`, bad = false } = {}) => ({
  metadata: { namespace: 'shop', name, uid, resourceVersion, ...(bad && { bad }) },
});

function objectOf(json: object) {
  const object = apiObjectOf(json);
  if (object === undefined) throw new Error('This is not an object of the API');
  return object;
}

async function list(known: Reflected<{ key: string; uid: string }>, items: readonly object[]) {
  const listing = known.beginList();
  for (const item of items) listing.add(JSON.stringify(item));
  await listing.end(true);
}

test('current() is the newest version of a Service, and undefined after its deletion', (t) => {
  const { known } = services();
  known.put(objectOf(service('web', '1', { uid: 'old' })));
  known.put(objectOf(service('web', '2', { uid: 'new' })));
  t.like(known.current('shop/web'), { uid: 'new', resourceVersion: '2' });
  known.delete(objectOf(service('web', '3', { uid: 'new' })));
  t.is(known.current('shop/web'), undefined);
});

test('current() of an unreadable Service is its last readable version, but not that of its predecessor', (t) => {
  const { known } = services();
  known.put(objectOf(service('web', '1')));
  known.put(objectOf(service('web', '2', { bad: true })));
  t.like(known.current('shop/web'), { resourceVersion: '1' });
  known.put(objectOf(service('web', '3', { uid: 'another', bad: true })));
  t.is(known.current('shop/web'), undefined);
});

test('current() is undefined for a Service that a list lacks or that only an incomplete list had', async (t) => {
  const { known } = services();
  const stays = ['a', 'b', 'c'].map((name) => service(name, '1'));
  await list(known, [...stays, service('gone', '1')]);
  known.beginList().add(JSON.stringify(service('ghost', '2')));
  await list(known, stays);
  t.deepEqual(
    ['a', 'gone', 'ghost'].map((name) => known.current(`shop/${name}`)?.uid),
    ['uid-a', undefined, undefined],
  );
});

test('onCurrent() is called once for each new version of a Service', async (t) => {
  const { known, shown } = services();
  await list(known, [service('a', '1'), service('b', '1')]);
  await list(known, [service('a', '1'), service('b', '2')]);
  known.put(objectOf(service('a', '3')));
  t.deepEqual(shown, ['shop/a', 'shop/b', 'shop/b', 'shop/a']);
});
