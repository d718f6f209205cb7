import test from 'ava';
import { Placements } from '../../../agent/dataplane/placements.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';
import { landingOf, loadBalancer, REST, setUp, TestHaproxy } from '../../support/haproxy/landing-model.ts';

const web = loadBalancer('web');
const shop = loadBalancer('shop');
const api = loadBalancer('api');

test('A new load balancer is served by the landing, and the main dataplane is not reloaded', async (t) => {
  const { main, landing, both, set, loop } = await setUp({}, [web]);
  const outcome = await set(shop);
  t.true(outcome?.pending.has(shop.key));
  t.deepEqual(landing.seen, ['start']);
  landing.reload();
  await loop();
  t.is(both.served(shop.key), shop);
  t.false(main.isDue);
  t.is(main.reloads, 0);
  t.deepEqual([both.status().landed, both.served(web.key)], [1, web]);
  const [listener] = shop.listeners;
  t.true(both.serves(listener?.name ?? ''));
  t.false(main.serves(listener?.name ?? ''));
});

test('A new load balancer without a listener to serve goes to the main dataplane', async (t) => {
  const { main, both, set } = await setUp({}, [web]);
  const kernel = shop.listeners.map((listener) => ({ ...listener, engine: 'kernel' as const }));
  await set({ ...shop, listeners: kernel });
  t.true(main.isDue);
  t.is(both.status().landed, 0);
});

test('Load balancers move together when nothing has landed for a while, and the landing lets go last', async (t) => {
  const { main, landing, both, set, loop, reload, advance } = await setUp({}, [web]);
  await set(shop);
  landing.reload();
  await loop();
  await advance(REST - 2_000);
  await set(api);
  await reload(landing);
  await advance(REST - 2_000);
  t.false(main.isDue);
  await advance(2_000);
  t.true(main.isDue);
  t.is(both.served(api.key), api, 'it is served all the time');
  await advance(5_000);
  t.false(landing.isDue, 'the landing does not let go before the main dataplane serves');
  await reload(main);
  t.is(main.reloads, 1);
  t.deepEqual(main.seen, ['start', `remember ${shop.key},${api.key}`]);
  await advance(2_000);
  t.deepEqual(landing.seen, ['start', `withdraw ${shop.key},${api.key}`]);
  t.true(landing.isDue);
  await reload(landing);
  t.deepEqual([...(landing.running ?? [])], []);
  t.deepEqual([both.served(shop.key), both.status().landed], [shop, 0]);
});

for (const [what, leading] of [
  ['a dispatcher', { dispatch: { kind: 'tls', hosts: [] } }],
  ['authorization servers', { asksServers: true }],
  ['pages of errors', { replacesErrors: true }],
] as const)
  test(`The landing keeps a listener with ${what} until its clients have been led on`, async (t) => {
    const { landing, main, set, loop, reload, advance } = await setUp({ landingRest: 2_000 });
    const listeners = shop.listeners.map((listener) => ({ ...listener, ...leading }));
    await set({ ...shop, listeners });
    landing.reload();
    await loop();
    await advance(3_000);
    await reload(main);
    await advance(2_000);
    t.deepEqual(landing.seen, ['start', `withdraw ${shop.key}`]);
    await advance(3_000);
    t.false(landing.isDue, 'a client may not have sent its first message yet');
    await advance(4_000);
    t.true(landing.isDue);
    t.deepEqual(landing.seen, ['start', `withdraw ${shop.key}`], 'only once');
  });

test('Load balancers that land all the time move after ten rests', async (t) => {
  const { main, set, loop, landing, reload, advance } = await setUp({ landingRest: 5_000 });
  await set(loadBalancer('n0'));
  landing.reload();
  await loop();
  for (let n = 1; n <= 15; n++) {
    await advance(3_000);
    await set(loadBalancer(`n${n}`));
    await reload(landing);
  }
  t.false(main.isDue);
  await advance(6_000);
  t.true(main.isDue);
});

test('A move waits until the main dataplane knows which members are down, for ten seconds at most', async (t) => {
  const { main, landing, set, loop, reload, advance } = await setUp({ landingRest: 2_000 });
  await set(loadBalancer('checked', { isMonitored: true }));
  landing.reload();
  await loop();
  main.knowsChecks = false;
  await advance(3_000);
  await reload(main);
  await advance(5_000);
  t.deepEqual(landing.seen, ['start']);
  main.knowsChecks = true;
  await advance(1_000);
  t.deepEqual(landing.seen, ['start', 'withdraw default/checked']);
  main.knowsChecks = false;
  await reload(landing);
  await set(loadBalancer('silent', { isMonitored: true }));
  await reload(landing);
  await advance(3_000);
  await reload(main);
  await advance(13_000);
  t.is(landing.seen.at(-1), 'withdraw default/silent');
});

test('If the landing does not serve, its load balancers go to the main dataplane, and nothing lands until it does', async (t) => {
  const { main, landing, both, set, reload, advance, loop } = await setUp();
  await set(shop);
  await advance(4_000);
  t.true(main.isDue);
  await reload(main);
  t.is(main.served(shop.key), shop);
  await set(api);
  t.true(main.isDue);
  await reload(main);
  t.is(both.served(api.key), api);
  landing.reload();
  await loop();
  await advance(2_000);
  await set(web);
  t.false(main.isDue);
  await reload(landing);
  t.is(both.served(web.key), web);
});

test('A landing that is being started has ten seconds before its load balancers go to the main dataplane', async (t) => {
  const { main, landing, set, reload, advance } = await setUp();
  landing.isStarting = true;
  await set(shop);
  await advance(9_000);
  t.false(main.isDue);
  await advance(2_000);
  t.true(main.isDue);
  await reload(main);
  t.is(main.served(shop.key), shop);
});

test('What the landing refuses goes to the main dataplane, and does not land again until it changes', async (t) => {
  const { main, landing, both, set, loop, reload, advance } = await setUp();
  landing.refuses.add(shop.key);
  main.refuses.add(shop.key);
  await set(shop);
  landing.reload();
  await loop();
  await advance(3_000);
  await reload(main, landing);
  await advance(3_000);
  t.is(both.status().landed, 0);
  t.deepEqual(
    both.problemsOf(shop).map(({ reason }) => reason),
    ['ConfigurationRejected'],
  );
  await advance(10_000);
  t.is(both.status().landed, 0, 'it does not land again');
  landing.refuses.clear();
  main.refuses.clear();
  await set(loadBalancer('shop', { limit: 2 }));
  t.is(both.status().landed, 1);
});

test('Without room in the landing a new load balancer and all in the landing go to the main dataplane together', async (t) => {
  const { main, landing, both, set, loop, reload, advance } = await setUp();
  await set(shop);
  landing.reload();
  await loop();
  await set(loadBalancer('large', { members: 1_100 }));
  t.true(main.isDue);
  t.is(both.status().landed, 1);
  await reload(main);
  await advance(2_000);
  await reload(landing);
  t.deepEqual([both.status().landed, main.reloads], [0, 1]);
  const of = (namespace: string, n: number) => set(loadBalancer(`many-${n}`, { namespace }));
  for (let n = 0; n < 20; n++) {
    await of('one', n);
    await of('two', n);
  }
  t.deepEqual([both.status().landed, main.isDue], [40, false]);
  await of('one', 40);
  t.true(main.isDue);
});

test('No namespace takes the landing alone: its next one goes to the main dataplane, the new one of another lands', async (t) => {
  const { main, both, set } = await setUp();
  for (let n = 0; n < 30; n++) await set(loadBalancer(`many-${n}`, { namespace: 'one' }));
  t.deepEqual([both.status().landed, main.isDue], [30, false]);
  await set(loadBalancer('many-30', { namespace: 'one' }));
  t.true(main.isDue);
  const other = loadBalancer('other', { namespace: 'two' });
  await set(other);
  t.is(both.status().landed, 31);
});

test('Many new load balancers at once go to the main dataplane', async (t) => {
  const { desired, main, both } = await setUp();
  const many = Array.from({ length: 41 }, (_, n) => loadBalancer(`n${n}`));
  for (const each of many) desired.set(each.key, each);
  await both.apply(both.plan(many.map(({ key }) => key)));
  t.true(main.isDue);
  t.is(both.status().landed, 0);
});

test('With landing: false everything is in the main dataplane, also what had landed before', async (t) => {
  const without = await setUp({ landing: false });
  await without.set(shop);
  t.true(without.main.isDue);
  t.deepEqual(without.landing.seen, []);
  const { main, landing, both, set, loop, reload, advance } = await setUp();
  await set(shop);
  landing.reload();
  await loop();
  both.configure({ landing: false, landingRest: REST });
  await loop();
  t.true(main.isDue);
  await reload(main);
  await advance(2_000);
  t.is(both.status().landed, 0);
});

test('A load balancer that lands can change and go there', async (t) => {
  const { main, landing, both, set, remove, loop, reload, advance } = await setUp();
  await set(shop);
  landing.reload();
  await loop();
  const changed = loadBalancer('shop', { limit: 3 });
  await set(changed);
  await reload(landing);
  t.is(both.served(shop.key), changed);
  await remove(shop.key);
  t.true(both.servesElsewhere(shop.key));
  await reload(landing);
  await advance(2_000);
  t.deepEqual(
    [both.served(shop.key), both.servesElsewhere(shop.key), both.status().landed, main.reloads],
    [undefined, false, 0, 0],
  );
});

test('A landing that never serves does not keep a load balancer that is gone', async (t) => {
  const { both, main, set, remove, reload, advance } = await setUp({}, [web]);
  t.true(both.servesElsewhere(web.key));
  await set(shop);
  t.true(both.servesElsewhere(shop.key), 'it may be served by the landing');
  await advance(4_000);
  await reload(main);
  await advance(2_000);
  await remove(shop.key);
  await remove(web.key);
  await reload(main);
  t.false(both.servesElsewhere(shop.key));
  t.false(both.servesElsewhere(web.key));
});

test('A changed load balancer lands as well, and its old listeners take no more connections', async (t) => {
  const { main, landing, both, set, reload, advance } = await setUp({}, [web, api]);
  const changed = loadBalancer('web', { limit: 2 });
  await set(changed);
  t.deepEqual([main.isDue, both.status().landed], [false, 1]);
  t.deepEqual(main.seen, ['start'], 'the old ones serve until the landing does');
  await reload(landing);
  t.deepEqual(main.seen, ['start', `withdraw ${web.key}`]);
  t.is(both.served(web.key), changed);
  t.deepEqual(main.running?.get(web.key), web);
  const grown = loadBalancer('web', { members: 2, limit: 2 });
  await set(grown);
  const [kept] = main.running?.get(web.key)?.listeners ?? [];
  t.deepEqual([kept?.connectionLimit, kept?.pool.members.length], [0, 2], 'its members still follow');
  t.deepEqual([main.isDue, [...main.withdrawn]], [false, [web.key]]);
  await advance(REST);
  await reload(main);
  t.is(main.running?.get(web.key), grown);
  await advance(2_000);
  await reload(landing);
  t.deepEqual([both.served(web.key), both.status().landed, main.reloads], [grown, 0, 1]);
  t.is(landing.running?.size, 0);
});

test('What the landing refuses of a changed load balancer leaves the old listeners as they are', async (t) => {
  const { main, landing, both, set, reload, advance } = await setUp({}, [web]);
  landing.refuses.add(web.key);
  const changed = loadBalancer('web', { limit: 2 });
  await set(changed);
  await reload(landing);
  t.false(main.seen.includes(`withdraw ${web.key}`));
  await advance(2_000);
  t.true(main.isDue);
  await reload(main);
  await advance(2_000);
  t.deepEqual([both.served(web.key), both.status().landed], [changed, 0]);
});

test('Until the landing serves a changed load balancer, a reload of the main dataplane keeps what it has', async (t) => {
  const { main, landing, both, set, remove, loop, reload, advance } = await setUp({}, [web, api]);
  const changed = loadBalancer('web', { limit: 2 });
  await set(changed);
  // By another process, or for something else.
  await remove(api.key);
  await reload(main);
  t.deepEqual([main.running?.get(web.key), main.isDue, both.status().landed], [web, false, 1]);
  const grown = loadBalancer('web', { members: 2, limit: 2 });
  await set(grown);
  main.reload();
  await loop();
  const [kept] = main.running?.get(web.key)?.listeners ?? [];
  t.deepEqual([kept?.connectionLimit, kept?.pool.members.length], [0, 2], 'its members follow');
  await reload(landing);
  t.is(both.served(web.key), grown);
  main.reload();
  await loop();
  t.false(main.running?.has(web.key), 'from now on the landing has it');
  await advance(REST);
  await reload(main);
  t.is(main.running?.get(web.key), grown);
});

test('The main dataplane keeps a changed load balancer that the landing has from before, and loses by a reload under way', async (t) => {
  const { main, landing, both, set, loop, reload, advance } = await setUp({}, [web]);
  const [other, third] = [loadBalancer('web', { limit: 7 }), loadBalancer('web', { limit: 8 })];
  await set(other);
  await reload(landing);
  await advance(REST);
  await reload(main);
  await advance(2_000);
  t.deepEqual(landing.seen.at(-1), `withdraw ${web.key}`);
  // The landing still has it, and the next reload goes without it.
  both.configure({ landing: false, landingRest: REST });
  await set(third);
  await reload(main);
  both.configure({ landing: true, landingRest: REST });
  landing.beginReload();
  const withdrawn = main.seen.length;
  await set(other);
  t.is(both.status().landed, 1);
  t.deepEqual(main.seen.slice(withdrawn), [], 'nothing else serves it after the reload');
  landing.reload();
  await loop();
  t.false(landing.serves(web.listeners[0]?.name ?? ''));
  t.true(main.continues(web.listeners[0]?.name ?? ''));
  await reload(landing);
  t.deepEqual(main.seen.slice(withdrawn), [`withdraw ${web.key}`]);
  t.true(landing.continues(web.listeners[0]?.name ?? ''));
});

test('The main dataplane is reloaded without a changed load balancer that is in the landing', async (t) => {
  const { main, landing, both, set, remove, reload, advance } = await setUp({}, [web, api]);
  const changed = loadBalancer('web', { limit: 2 });
  await set(changed);
  await reload(landing);
  await remove(api.key);
  await reload(main);
  t.false(main.running?.has(web.key));
  t.deepEqual([main.isDue, both.served(web.key)], [false, changed]);
  const again = loadBalancer('web', { limit: 3 });
  await set(again);
  await reload(landing);
  t.deepEqual([main.isDue, both.served(web.key)], [false, again]);
  await advance(REST);
  await reload(main);
  await advance(2_000);
  await reload(landing);
  t.deepEqual([main.running?.get(web.key), both.status().landed], [again, 0]);
});

test('A changed load balancer that is removed while it is in the landing leaves both', async (t) => {
  const { main, landing, both, set, remove, reload } = await setUp({}, [web]);
  await set(loadBalancer('web', { limit: 2 }));
  await reload(landing);
  await remove(web.key);
  t.true(main.isDue);
  await reload(main, landing);
  t.deepEqual([main.running?.size, landing.running?.size, both.status().landed], [0, 0, 0]);
  t.false(both.servesElsewhere(web.key));
});

test('A changed load balancer that gives up an address stays in the main dataplane', async (t) => {
  const { main, both, set } = await setUp({}, [web]);
  await set(loadBalancer('web', { address: '192.0.2.11' }));
  t.deepEqual([main.isDue, both.status().landed], [true, 0]);
});

test('An agent that starts leaves what the landing serves there, and ends a move that was under way', async (t) => {
  const desired = new Map([web, shop, api].map((each) => [each.key, each]));
  const placements = new Placements(desired);
  const main = new TestHaproxy(placements.main, () => undefined);
  const landing = new TestHaproxy(placements.landing, () => undefined);
  landing.wasThere = true;
  main.wasThere = true;
  landing.running = new Map([
    [shop.key, shop],
    [api.key, api],
  ]);
  main.running = new Map([
    [web.key, web],
    [api.key, api],
  ]);
  const clock = new FakeClock();
  const both = landingOf({ desired, placements, main, landing, replan: () => undefined, clock });
  await both.start();
  t.deepEqual(
    [web, shop, api].map(({ key }) => placements.of(key)),
    ['main', 'landing', 'moving'],
  );
  const plans = both.plan([web.key, shop.key, api.key]);
  t.true(plans.every(({ effort }) => effort === 'none'));
  await both.apply(plans);
  await clock.advance(3_000);
  t.deepEqual(landing.seen, ['start', `withdraw ${api.key}`]);
  t.is(placements.of(api.key), 'main');
});
