import ava, { type ExecutionContext } from 'ava';
import { ServiceNotifier } from '../../health/service-notifier.ts';
import { requires } from '../support/basics/requirements.ts';
import { NotifySocket } from '../support/host/notify-socket.ts';

const test = requires(ava, { programs: ['systemd-notify', 'python3'] });

/** A notifier that sends a sign of life every 100 ms, and the state that it reports. */
function notifierTo(t: ExecutionContext, path: string) {
  const state = { dead: '', unready: '', status: 'Serving 3 load balancers', failures: 0 };
  const env: Record<string, string | undefined> = {
    ...process.env,
    NOTIFY_SOCKET: path,
    WATCHDOG_USEC: '300000',
    WATCHDOG_PID: String(process.pid),
  };
  const notifier = new ServiceNotifier({
    env,
    alive: () => state.dead,
    ready: () => state.unready,
    status: () => state.status,
    onFailure: () => {
      state.failures++;
    },
  });
  t.teardown(() => notifier.close());
  return { notifier, state, env };
}

test('ServiceNotifier extends a start that waits, and sends READY=1 when the agent is ready', async (t) => {
  const socket = await NotifySocket.open(t);
  const { notifier, state } = notifierTo(t, socket.path);
  state.unready = 'HAProxy is\nnot running';
  notifier.start();
  const more = (): number => socket.told().filter((line) => line.startsWith('EXTEND_TIMEOUT_USEC=')).length;
  await socket.until('the start is given more time again and again', () => more() >= 2);
  t.deepEqual(socket.messages[0], ['EXTEND_TIMEOUT_USEC=30000000', 'STATUS=HAProxy is not running']);
  t.false(socket.told().includes('READY=1'));
  t.false(socket.told().includes('WATCHDOG=1'));
  state.unready = '';
  await socket.until('it is ready', () => socket.told().includes('READY=1'));
  t.true(
    socket.messages.find((each) => each.includes('READY=1'))?.includes('STATUS=Serving 3 load balancers'),
  );
});

test('ServiceNotifier sends WATCHDOG=1 repeatedly while the agent is alive, and not while its loop hangs', async (t) => {
  const socket = await NotifySocket.open(t);
  const { notifier, state } = notifierTo(t, socket.path);
  const beats = (from = 0): number => socket.told(from).filter((line) => line === 'WATCHDOG=1').length;
  notifier.start();
  await socket.until('it beats', () => beats() >= 3);
  state.dead = 'The loop does not come round';
  await socket.until('it sends the fault', () => socket.told().includes(`STATUS=${state.dead}`));
  const from = socket.messages.length;
  state.unready = 'one';
  state.dead = 'Still not';
  await socket.until('rounds continue', () => socket.told(from).includes('STATUS=Still not'));
  t.is(beats(from), 0);
  state.dead = '';
  await socket.until('it beats again', () => beats(from) >= 2);
  t.is(socket.told().filter((line) => line === 'READY=1').length, 1);
});

test('ServiceNotifier sends a fault after the start as the status only', async (t) => {
  const socket = await NotifySocket.open(t);
  const { notifier, state } = notifierTo(t, socket.path);
  notifier.start();
  await socket.until('it is ready', () => socket.told().includes('READY=1'));
  state.unready = 'HAProxy is not running';
  await socket.until('the fault is sent', () => socket.told().includes('STATUS=HAProxy is not running'));
  const from = socket.messages.length;
  await socket.until('it beats', () => socket.told(from).includes('WATCHDOG=1'));
  t.deepEqual(
    socket.told(from).filter((line) => /^(READY|RELOADING|STOPPING|WATCHDOG=trigger)/.test(line)),
    [],
  );
});

test('ServiceNotifier sends STOPPING=1 before close() resolves', async (t) => {
  const socket = await NotifySocket.open(t);
  const { notifier } = notifierTo(t, socket.path);
  notifier.start();
  await socket.until('it is ready', () => socket.told().includes('READY=1'));
  await notifier.close();
  await socket.until('it stops', () => socket.messages.at(-1)?.[0] === 'STOPPING=1');
  t.pass();
});

test("ServiceNotifier removes systemd's variables from the environment, and sends nothing without them", async (t) => {
  const { env, state } = notifierTo(t, '/no/such/socket');
  t.deepEqual(
    Object.keys(env).filter((name) => /^(NOTIFY_|WATCHDOG_)/.test(name)),
    [],
  );
  const silent = new ServiceNotifier({
    env: { PATH: '/nowhere' },
    alive: () => '',
    ready: () => '',
    status: () => '',
    onFailure: () => {
      state.failures++;
    },
  });
  silent.start();
  await silent.close();
  t.is(state.failures, 0);
});

test('ServiceNotifier reports a message that cannot be sent once, and sends it later', async (t) => {
  const socket = await NotifySocket.open(t);
  const { env, state } = notifierTo(t, '');
  const path = env.PATH;
  env.NOTIFY_SOCKET = socket.path;
  env.WATCHDOG_USEC = '30000';
  env.PATH = '/nowhere';
  const notifier = new ServiceNotifier({
    env,
    alive: () => '',
    ready: () => '',
    status: () => 'Well',
    onFailure: () => {
      state.failures++;
    },
  });
  t.teardown(() => notifier.close());
  notifier.start();
  await socket.until('it has failed', () => state.failures === 1);
  env.PATH = path;
  await socket.until('it is ready', () => socket.told().includes('READY=1'));
  t.is(state.failures, 1);
});
