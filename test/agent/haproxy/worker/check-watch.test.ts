import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { BootedWorker } from '../../../../agent/haproxy/booted-worker.ts';
import { type CheckResults, CheckWatch } from '../../../../agent/haproxy/worker/check-watch.ts';
import type { Listener, LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { until } from '../../../support/basics/until.ts';
import { listenerIdentity, loadBalancer } from '../../../support/values/load-balancers.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const NAME = 'default:web:tcp:80:v4';
const KEY = 'default/web';
const COLUMNS =
  'be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl srv_check_port srv_check_addr srv_agent_addr srv_agent_port';

/** A watch of HAProxy's listeners, and one of the kernel's that is not started; one server is down in every listener. */
function rig(t: ExecutionContext) {
  let rounds = 0;
  const askAll = async (questions: readonly string[]): Promise<readonly string[]> => {
    rounds++;
    return questions.map((question) => {
      const row = `3 ${question.split(' ').at(-1)} 1 a 10.0.0.1 0 0 10 10 0 8 2 0 6 0 0 0 - 80 - 0 0 - - 0`;
      return `1\n# ${COLUMNS}\n${row}\n`;
    });
  };
  const worker = { runtime: { askAll } } as unknown as BootedWorker;
  const results: CheckResults = new Map();
  const desired = new Map<string, LoadBalancer>();
  const common = { worker: () => worker, desired, results, interval: () => 5, log: silentLog() };
  const of = (engine: string) =>
    new CheckWatch({ ...common, isRead: (each) => each.engine === engine, onChanged: () => undefined });
  const [haproxy, kernel] = [of('haproxy'), of('kernel')];
  t.teardown(() => haproxy.close());
  const serve = (key: string, engine?: Listener['engine']): void => {
    const name = key.replace('/', ':') + NAME.slice('default:web'.length);
    if (engine === undefined) desired.delete(key);
    else desired.set(key, loadBalancer([monitored(name, engine)], key));
    for (const watch of [haproxy, kernel]) watch.changed([key]);
  };
  /** Two rounds have begun and one of them is over. */
  const aRound = async (): Promise<void> => {
    const end = rounds + 2;
    await until('a round', () => rounds >= end);
    await delay(0);
  };
  return { haproxy, results, serve, aRound };
}

function monitored(name: string, engine: Listener['engine']): Listener {
  return {
    ...listenerIdentity(name),
    name,
    engine,
    pool: { monitor: {}, members: [] },
  } as unknown as Listener;
}

test('CheckWatch keeps the results of a listener that another watch will read, until that one has', async (t) => {
  const { haproxy, results, serve, aRound } = rig(t);
  serve(KEY, 'haproxy');
  serve('default/other', 'haproxy');
  haproxy.start();
  await aRound();
  t.true(results.get(NAME)?.get('a')?.isDown);
  serve(KEY, 'kernel');
  await aRound();
  t.true(results.get(NAME)?.get('a')?.isDown);
});

test('CheckWatch forgets the results of a listener that is removed, also if another watch had to read it', async (t) => {
  const { haproxy, results, serve, aRound } = rig(t);
  serve(KEY, 'haproxy');
  serve('default/other', 'haproxy');
  haproxy.start();
  await aRound();
  serve(KEY, 'kernel');
  await aRound();
  serve(KEY);
  await aRound();
  t.deepEqual([...results.keys()], ['default:other:tcp:80:v4']);
});
