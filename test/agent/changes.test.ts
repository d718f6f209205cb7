import test from 'ava';
import { Changes } from '../../agent/changes.ts';

test('Changes of one load balancer are merged, since the first and with the trigger of each', async (t) => {
  const changes = new Changes();
  changes.add(['default/web'], 5, 1_000);
  changes.add(['default/web', 'default/other'], 7);
  changes.add(['default/web'], 9, 900);
  const batch = await changes.drain().next();
  t.deepEqual(batch.value?.changed.get('default/web'), { since: 5, triggers: [1_000, 900] });
  t.deepEqual(batch.value?.changed.get('default/other'), { since: 7, triggers: [] });
});

test('A change during a batch is in the next batch', async (t) => {
  const changes = new Changes();
  const batches = changes.drain();
  changes.add(['default/web'], 1, 1_000);
  t.deepEqual((await batches.next()).value?.changed.get('default/web')?.triggers, [1_000]);
  changes.add(['default/web'], 2, 2_000);
  t.deepEqual((await batches.next()).value?.changed.get('default/web')?.triggers, [2_000]);
});

test('A change in bulk and a single change of one load balancer both keep their triggers', async (t) => {
  const changes = new Changes();
  const many = Array.from({ length: 100 }, (_, at) => `default/web-${at}`);
  changes.add(many, 1, 1_000);
  changes.add(['default/web-99'], 2, 2_000);
  const times: number[] = [];
  const batches = changes.drain();
  while (changes.waiting > 0) {
    const { value } = await batches.next();
    times.push(...(value?.changed.get('default/web-99')?.triggers ?? []));
  }
  t.deepEqual(times.sort(), [1_000, 2_000]);
});
