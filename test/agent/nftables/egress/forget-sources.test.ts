import test from 'ava';
import { ForgetSources } from '../../../../agent/nftables/egress/forget-sources.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';

function forgetting(flows = 0) {
  const clock = new FakeClock();
  const orders: (readonly string[])[] = [];
  const faults: string[] = [];
  const state = { error: '' };
  const forget = new ForgetSources({
    netns: '',
    onFault: (why) => faults.push(why),
    program: {
      pass: async (given) => {
        orders.push(given);
        if (state.error !== '') throw new Error(state.error);
        return { flows, deleted: 0 };
      },
      close: () => undefined,
    },
    clock,
  });
  return { clock, orders, faults, state, forget };
}

test('ForgetSources names the source that the flows of each pod must have: its own address if it has no VIP', async (t) => {
  const { clock, orders, forget } = forgetting();
  forget.changed([
    ['10.0.0.1', '192.0.2.1'],
    ['fd00::1', undefined],
  ]);
  await clock.advance(0);
  const own = 'fd000000000000000000000000000001';
  t.deepEqual(orders, [['from 0a000001 c0000201', `from ${own} ${own}`]]);
});

test('ForgetSources takes a quarter of a processor at most, whatever pods come', async (t) => {
  const { clock, orders, forget } = forgetting(10_000);
  forget.changed([['10.0.0.1', '192.0.2.1']]);
  await clock.advance(0);
  forget.changed([['10.0.0.2', '192.0.2.1']]);
  forget.changed([['10.0.0.3', '192.0.2.1']]);
  // 10,000 flows take 50 ms.
  await clock.advance(199);
  t.is(orders.length, 1);
  await clock.advance(1);
  t.deepEqual(orders[1], ['from 0a000002 c0000201', 'from 0a000003 c0000201']);
});

test('ForgetSources repeats a pass that failed, with the newest VIP of each pod', async (t) => {
  const { clock, orders, faults, state, forget } = forgetting();
  state.error = 'no perl';
  forget.changed([['10.0.0.1', '192.0.2.1']]);
  await clock.advance(0);
  state.error = '';
  forget.changed([['10.0.0.1', '192.0.2.2']]);
  await clock.advance(1_000);
  t.deepEqual(orders, [['from 0a000001 c0000201'], ['from 0a000001 c0000202']]);
  t.deepEqual(faults, ['no perl', '']);
});
