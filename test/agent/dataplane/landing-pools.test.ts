// Gateways in the landing, and the pools that they send to.

import test from 'ava';
import type { LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { loadBalancer, REST, setUp } from '../../support/haproxy/landing-model.ts';
import { plainMonitor } from '../../support/values/load-balancers.ts';
import { entryOf, gatewayOf, POOL, poolName, poolOf, sectionOf } from '../../support/values/routes.ts';

/** A Gateway with so many routes to each of these Services. */
function gateway(
  name: string,
  services: readonly string[],
  { limit = 0, address = '192.0.2.20', routes = 1 } = {},
) {
  const entries = services.flatMap((service) =>
    Array.from({ length: routes }, (_, at) => entryOf(`/${service}/${at}`, service)),
  );
  const sections = [sectionOf('http', '*', { 'a.example': entries })];
  const made = gatewayOf({ address, port: 80 }, sections, { connectionLimit: limit });
  const names = made.listeners.map((each) => ({ ...each, name: each.name.replace('edge', name) }));
  return { ...made, key: `gateway:default/${name}`, name, listeners: names };
}

const pool = (name: string, members = 1): LoadBalancer =>
  poolOf(
    name,
    Array.from({ length: members }, (_, at) => `10.0.0.${at + 1}:80`),
  );

const MONITOR = plainMonitor('tcp');
const edge = gateway('edge', ['web']);
const [web, api] = [pool('web'), pool('api')];

test('A new Gateway and its new pools land together, and the main dataplane is not reloaded', async (t) => {
  const { main, landing, both, set, reload } = await setUp({}, [edge, web]);
  const shop = gateway('shop', ['api']);
  await set(shop, api);
  await reload(landing);
  t.deepEqual([...(landing.running?.keys() ?? [])].sort(), [shop.key, api.key].sort());
  t.deepEqual([main.isDue, main.reloads, main.running?.has(api.key)], [false, 0, false]);
  t.deepEqual([both.served(shop.key), both.served(api.key)], [shop, api]);
  t.true(both.serves(poolName('api')));
  t.is(both.status().landed, 1, 'pools are not counted');
});

test('A pool that the main dataplane serves is served by the landing, too, while a Gateway there needs it', async (t) => {
  const { main, landing, both, placements, set, reload, advance } = await setUp({}, [edge, web]);
  const shop = gateway('shop', ['web']);
  await set(shop);
  t.is(both.served(web.key), 'pending', 'the landing does not have it yet');
  await reload(landing);
  t.is(placements.of(web.key), 'both');
  landing.refuses.add(web.key);
  t.deepEqual(both.problemsOf(web), [], "what is said of it is the main dataplane's");
  landing.refuses.clear();
  t.is(landing.running?.get(web.key), web);
  const grown = pool('web', 3);
  await set(grown);
  t.deepEqual([main.running?.get(web.key), landing.running?.get(web.key)], [grown, grown]);
  t.is(both.served(web.key), grown);
  await advance(REST);
  await reload(main);
  await advance(2_000);
  await reload(landing);
  t.deepEqual([placements.of(web.key), main.reloads, landing.running?.size], ['main', 1, 0]);
  t.is(both.served(shop.key), shop);
});

test("A route of a Gateway in the landing to a new pool, and its removal, are the landing's alone", async (t) => {
  const { main, landing, both, placements, set, remove, reload } = await setUp({}, [edge, web]);
  await set(gateway('shop', ['web']));
  await reload(landing);
  const shop = gateway('shop', ['web', 'api']);
  await set(shop, api);
  await reload(landing);
  t.deepEqual([both.served(shop.key), placements.of(api.key), main.isDue], [shop, 'landing', false]);
  const less = gateway('shop', ['web']);
  await remove(api.key);
  await set(less);
  t.deepEqual([both.served(less.key), placements.of(api.key), main.isDue], [less, 'main', false]);
});

test('The main dataplane gets a pool that only the landing had, if one of its own Gateways sends to it', async (t) => {
  const { main, landing, both, placements, set, reload } = await setUp({}, [edge, web]);
  await set(gateway('shop', ['api']), api);
  await reload(landing);
  const now = gateway('edge', ['web', 'api']);
  await set(now);
  t.is(placements.of(api.key), 'both');
  t.is(both.served(now.key), 'pending', 'its row waits for the pool');
  t.true(main.isDue);
  t.is(both.status().landed, 1, 'the Gateway that waits for a pool does not land');
  await reload(main);
  t.deepEqual([both.served(now.key), main.running?.has(api.key)], [now, true]);
});

test('A Gateway with a new structure lands, and the main dataplane keeps it and its pools up to date', async (t) => {
  const { main, landing, both, placements, set, reload, advance } = await setUp({}, [edge, web, api]);
  await set(gateway('edge', ['web', 'mail'], { limit: 5 }), pool('mail'));
  await reload(landing);
  t.deepEqual(main.seen, ['start', `withdraw ${edge.key}`]);
  t.deepEqual([placements.of(web.key), placements.of('pool:default/mail')], ['both', 'landing']);
  t.false(main.isDue, "a pool that only the new structure needs is not the main dataplane's");
  const next = gateway('edge', ['web'], { limit: 5 });
  await set(next, pool('web', 2));
  const kept = main.running?.get(edge.key)?.listeners[0];
  t.deepEqual([kept?.connectionLimit, kept?.routing], [0, next.listeners[0]?.routing]);
  t.is(main.running?.get(web.key)?.listeners[0]?.pool.members.length, 2);
  t.deepEqual([...main.withdrawn], [edge.key], 'its old listeners still take no connections');
  await advance(REST);
  await reload(main);
  await advance(2_000);
  await reload(landing);
  t.deepEqual([both.served(edge.key), both.status().landed, main.reloads], [next, 0, 1]);
  t.deepEqual([...main.withdrawn], []);
});

test('A Gateway that gets its old structure again while it is in the landing takes connections after its move', async (t) => {
  const { main, landing, both, set, reload, advance } = await setUp({}, [edge, web]);
  await set(gateway('edge', ['web'], { limit: 5 }));
  await reload(landing);
  await set(edge);
  await reload(landing);
  t.deepEqual([...main.withdrawn], [edge.key]);
  await advance(REST);
  t.deepEqual([...main.withdrawn], []);
  await advance(2_000);
  await reload(landing);
  t.deepEqual([both.served(edge.key), both.status().landed, main.reloads], [edge, 0, 0]);
});

test('A move waits until the main dataplane has the pools, and takes the clients of those that only the landing had', async (t) => {
  const { main, landing, placements, set, reload, advance } = await setUp({}, [edge, web]);
  const shop = gateway('shop', ['web', 'api']);
  await set(shop, api);
  await reload(landing);
  await advance(REST);
  t.is(placements.of(api.key), 'moving');
  main.refuses.add(api.key);
  main.reload();
  await advance(5_000);
  t.false(landing.seen.includes(`withdraw ${shop.key}`), 'its rows wait');
  main.refuses.delete(api.key);
  main.reload();
  await advance(2_000);
  t.is(landing.seen.at(-1), `withdraw ${shop.key}`);
  t.true(main.seen.includes(`remember ${shop.key},${api.key}`));
});

test('A move waits until the main dataplane knows which members of the pools are down', async (t) => {
  const { main, landing, set, reload, advance } = await setUp({}, [edge, web]);
  const checked = poolOf('api', ['10.0.0.1:80'], { pool: { ...POOL, monitor: MONITOR } });
  const shop = gateway('shop', ['api']);
  await set(shop, checked);
  await reload(landing);
  await advance(REST);
  main.knowsChecks = false;
  await reload(main);
  await advance(3_000);
  t.false(landing.seen.includes(`withdraw ${shop.key}`));
  main.knowsChecks = true;
  await advance(1_000);
  t.true(landing.seen.includes(`withdraw ${shop.key}`));
});

test('A Gateway that lands again takes connections there', async (t) => {
  const { landing, both, set, reload, advance, main } = await setUp({}, [edge, web]);
  await set(gateway('shop', ['web']));
  await reload(landing);
  await advance(REST);
  await reload(main);
  await advance(2_000);
  await set(gateway('shop', ['web'], { limit: 5 }));
  await reload(landing);
  t.deepEqual([both.status().landed, [...landing.withdrawn]], [1, []]);
});

test('A Gateway with more pools than the landing takes goes to the main dataplane, and one that grows moves there', async (t) => {
  const { remove, main, landing, set, placements, reload, advance } = await setUp({}, [edge, web]);
  await set(gateway('routes', ['web'], { routes: 9_000 }));
  t.deepEqual(placements.landed(), ['gateway:default/routes'], 'ten routes count as one');
  await remove('gateway:default/routes');
  await reload(landing);
  await set(gateway('large', ['huge']), pool('huge', 1_000));
  t.deepEqual([main.isDue, placements.landed()], [true, []]);
  await reload(main);
  const shop = gateway('shop', ['api']);
  await set(shop, api);
  await reload(landing);
  await set(pool('api', 1_000));
  await advance(1_000);
  t.is(placements.of(shop.key), 'moving', 'its members have become many');
  await reload(main);
  await advance(2_000);
  const mail = gateway('mail', ['web']);
  await set(mail);
  await reload(landing);
  const pools = Array.from({ length: 1_000 }, (_, at) => `s${at}`);
  await set(gateway('mail', pools), ...pools.map((name) => pool(name)));
  t.is(placements.of(mail.key), 'moving', 'its routes have become many');
});

test('What the landing refuses of a pool sends its Gateway to the main dataplane', async (t) => {
  const { landing, both, set, reload, advance, main } = await setUp({}, [edge, web]);
  landing.refuses.add(api.key);
  const shop = gateway('shop', ['api']);
  await set(shop, api);
  await reload(landing);
  await advance(1_000);
  await reload(main);
  await advance(2_000);
  t.deepEqual([both.served(shop.key), both.served(api.key), both.status().landed], [shop, api, 0]);
});

test('An agent that starts leaves a Gateway in the landing, and its pools follow it', async (t) => {
  const shop = gateway('shop', ['api', 'web']);
  const { main, landing, placements, both } = await setUp({}, [edge, web, shop, api], (landing, main) => {
    landing.running = new Map([shop, api, web].map((each) => [each.key, each]));
    main.running = new Map([edge, web].map((each) => [each.key, each]));
    landing.wasThere = main.wasThere = true;
  });
  t.deepEqual(
    [shop.key, api.key, web.key, edge.key].map((key) => placements.of(key)),
    ['landing', 'landing', 'both', 'main'],
  );
  t.deepEqual([main.isDue, landing.isDue, both.status().landed], [false, false, 1]);
});

test('A Service and a Gateway land side by side', async (t) => {
  const { main, landing, both, set, reload } = await setUp({}, [edge, web]);
  const mail = loadBalancer('mail');
  const shop = gateway('shop', ['api']);
  await set(mail, shop, api);
  await reload(landing);
  t.deepEqual([both.served(mail.key), both.served(shop.key), both.status().landed], [mail, shop, 2]);
  t.is(main.reloads, 0);
});
