import test, { type ExecutionContext } from 'ava';
import type { LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { LocalAddresses } from '../../../agent/vips/local-addresses.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';
import { service, slice } from '../../support/values/build.ts';
import { silentLog } from '../../support/values/silent-log.ts';
import { loadBalancerOf, translated } from '../../support/values/translated.ts';

const WEB = loadBalancerOf(
  translated([service({ annotations: { 'headgate.io/load-balancer-ips': '192.0.2.10' } }), slice()]),
);
const PROBLEM =
  'No client reaches 192.0.2.10 port 80 here: no interface of this host has the address, and nothing announces it; set "vrrp", or add it to an interface, or set "externalAnnouncer" if another program leads clients here';

function start(t: ExecutionContext<unknown>, of: LoadBalancer = WEB) {
  const clock = new FakeClock();
  const state = { v4: [] as readonly string[], isExternal: false, isServed: true, fails: false, asked: 0 };
  const changed: string[][] = [];
  const local = new LocalAddresses({
    desired: new Map([[of.key, of]]),
    serves: () => state.isServed,
    isExternal: () => state.isExternal,
    onChanged: (keys) => changed.push([...keys]),
    read: async (family) => {
      state.asked++;
      if (state.fails) throw new Error('ip is missing');
      return family === 'v4' ? ['127.0.0.0/8', ...state.v4] : ['::1'];
    },
    log: silentLog(),
    clock,
  });
  local.start();
  t.teardown(() => local.close());
  const messages = () => local.problemsOf(of).map(({ message }) => message);
  return { clock, state, local, changed, messages };
}

test('An address that no interface has is a problem of its ports, until it is added', async (t) => {
  const { clock, state, local, changed, messages } = start(t);
  t.deepEqual(messages(), [], 'before the kernel has answered nothing is known');
  local.changed(new Set([WEB.key]));
  await clock.advance(0);
  t.deepEqual(messages(), [PROBLEM]);
  t.like(local.problemsOf(WEB)[0], {
    object: 'Service default/web',
    reason: 'AddressUnavailable',
    port: { protocol: 'TCP', port: 80 },
  });
  state.v4 = ['192.0.2.10'];
  await clock.advance(10_000);
  t.deepEqual(messages(), []);
  t.deepEqual(changed, [[WEB.key], [WEB.key]]);
});

test('A network that is led to the host itself has all of its addresses', async (t) => {
  const { clock, state, messages } = start(t);
  state.v4 = ['192.0.2.0/24'];
  await clock.advance(10_000);
  t.deepEqual(messages(), []);
});

test('The kernel is asked once for many addresses, and not again for one that it was asked for', async (t) => {
  const { clock, state, local } = start(t);
  local.changed(new Set([WEB.key]));
  await clock.advance(0);
  t.is(state.asked, 2, 'once for each family');
  local.changed(new Set([WEB.key]));
  await clock.advance(0);
  t.is(state.asked, 2);
});

test('What is not known, not served, or led here by another program is no problem', async (t) => {
  const { clock, state, messages } = start(t);
  state.fails = true;
  await clock.advance(10_000);
  t.deepEqual(messages(), []);
  state.fails = false;
  await clock.advance(10_000);
  t.is(messages().length, 1);
  state.isServed = false;
  t.deepEqual(messages(), [], 'the dataplane has a problem of its own');
  Object.assign(state, { isServed: true, isExternal: true });
  t.deepEqual(messages(), []);
});

test('Ports that the kernel forwards are no problem: a router may lead packets for any address here', async (t) => {
  const kernel: LoadBalancer = {
    ...WEB,
    listeners: WEB.listeners.map((each) => ({ ...each, engine: 'kernel' as const })),
  };
  const { clock, messages } = start(t, kernel);
  await clock.advance(10_000);
  t.deepEqual(messages(), []);
});
