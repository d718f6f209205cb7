import test from 'ava';
import fc from 'fast-check';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { Parity } from '../../../../agent/pair/standing/parity.ts';
import { anyLoadBalancer } from '../../../support/values/load-balancers.ts';

/** A host whose HAProxy serves what it wants, but for what is pending. */
class Host {
  readonly desired = new Map<string, LoadBalancer>();
  readonly pending = new Set<string>();
  readonly parity = new Parity({
    desired: this.desired,
    served: (key) => (this.pending.has(key) ? 'pending' : this.desired.get(key)),
  });

  async put(key: string, loadBalancer: LoadBalancer | undefined): Promise<void> {
    if (loadBalancer === undefined) this.desired.delete(key);
    else this.desired.set(key, { ...loadBalancer, key });
    await this.look(key);
  }

  async look(...keys: readonly string[]): Promise<void> {
    this.parity.mark(keys);
    await this.parity.settle();
  }

  get digests(): readonly string[] {
    return [this.parity.model, this.parity.running];
  }
}

const sample = fc.sample(anyLoadBalancer, { numRuns: 2, seed: 7 }) as [LoadBalancer, LoadBalancer];

test('Two hosts with the same state have the same digests, in whatever order it came', async (t) => {
  const keys = ['default/a', 'default/b', 'default/c'];
  const steps = fc.array(fc.tuple(fc.constantFrom(...keys), fc.option(anyLoadBalancer, { nil: undefined })), {
    maxLength: 12,
  });
  const property = fc.asyncProperty(steps, async (changes) => {
    const [walked, fresh] = [new Host(), new Host()];
    for (const [key, loadBalancer] of changes) await walked.put(key, loadBalancer);
    // The other one has values of its own, in another order.
    for (const [key, loadBalancer] of [...walked.desired].reverse())
      await fresh.put(key, structuredClone(loadBalancer));
    t.deepEqual(fresh.digests, walked.digests);
    t.is(walked.parity.model, walked.parity.running);
  });
  await t.notThrowsAsync(() => fc.assert(property, { numRuns: 50 }));
});

test('A different member, address or key changes the digest', async (t) => {
  const [first] = sample;
  const host = new Host();
  const seen = new Set<string>();
  const listener = first.listeners[0];
  const renamed = { ...first, listeners: [{ ...listener, name: 'default:other:tcp:80:v4' }] } as LoadBalancer;
  for (const each of [undefined, first, renamed, { ...first, vips: [] }]) {
    await host.put('default/a', each);
    seen.add(host.parity.model);
  }
  await host.put('default/a', undefined);
  await host.put('default/b', first);
  seen.add(host.parity.model);
  t.is(seen.size, 5);
});

test('A problem of only one host does not change the digest', async (t) => {
  const [first] = sample;
  const [one, other] = [new Host(), new Host()];
  await one.put('default/a', first);
  const problems = [{ object: 'Service default/a', reason: 'NodePortMissing', message: 'x' }] as const;
  await other.put('default/a', { ...first, problems });
  t.deepEqual(other.digests, one.digests);
});

test('A load balancer during a change counts as before', async (t) => {
  const [first, second] = sample;
  const host = new Host();
  await host.put('default/a', first);
  const before = host.parity.model;
  host.pending.add('default/a');
  await host.put('default/a', second);
  t.not(host.parity.model, before);
  t.is(host.parity.running, before);
  t.is(host.parity.pending, 1);
  host.pending.clear();
  await host.look('default/a');
  t.is(host.parity.running, host.parity.model);
  t.is(host.parity.pending, 0);
});

test('A change reads one load balancer from HAProxy, with any number of others', async (t) => {
  const [first, second] = sample;
  const desired = new Map(
    Array.from({ length: 1_000 }, (_, i) => [`default/${i}`, { ...first, key: `default/${i}` }]),
  );
  let looks = 0;
  const served = (key: string): LoadBalancer | undefined => {
    looks += 1;
    return desired.get(key);
  };
  const parity = new Parity({ desired, served });
  parity.mark(desired.keys());
  await parity.settle();
  looks = 0;
  desired.set('default/7', { ...second, key: 'default/7' });
  parity.mark(['default/7']);
  await parity.settle();
  t.is(looks, 1);
});

test('Keys that are marked during an update are updated as well', async (t) => {
  const [first, second] = sample;
  const host = new Host();
  host.desired.set('default/a', first);
  host.parity.mark(['default/a']);
  const settled = host.parity.settle();
  host.desired.set('default/b', second);
  host.parity.mark(['default/b']);
  await Promise.all([settled, host.parity.settle()]);
  t.true(host.parity.isSettled);
  const other = new Host();
  other.desired.set('default/a', first);
  other.desired.set('default/b', second);
  await other.look('default/a', 'default/b');
  t.deepEqual(host.digests, other.digests);
});

test('A load balancer is served alike when both hosts have counted it, not while neither has', async (t) => {
  const [first] = sample;
  const [own, peer] = [new Host(), new Host()];
  for (const host of [own, peer]) {
    host.pending.add('default/a');
    await host.put('default/a', structuredClone(first));
  }
  t.deepEqual(own.digests, peer.digests);
  t.false(own.parity.isServedAlike('default/a', peer.parity), 'neither serves it');
  own.pending.clear();
  t.deepEqual(own.digests, peer.digests);
  t.false(own.parity.isServedAlike('default/a', peer.parity), 'served here, which is not counted yet');
  await own.look('default/a');
  t.false(own.parity.isServedAlike('default/a', peer.parity), 'served here only');
  peer.pending.clear();
  await peer.look('default/a');
  t.true(own.parity.isServedAlike('default/a', peer.parity));
  own.desired.set('default/a', { ...first, key: 'default/a', vips: [] });
  t.false(own.parity.isServedAlike('default/a', peer.parity), 'another one now');
  t.false(own.parity.isServedAlike('default/a', undefined), 'without a peer');
  t.false(own.parity.isServedAlike('default/b', peer.parity), 'served nowhere');
});
