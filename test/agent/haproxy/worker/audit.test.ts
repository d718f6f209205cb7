import ava, { type ExecutionContext } from 'ava';
import { planLoadBalancer } from '../../../../agent/haproxy/plan.ts';
import type { Command } from '../../../../agent/haproxy/socket/commands.ts';
import { audit, FIRST_POSITION } from '../../../../agent/haproxy/worker/audit.ts';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { Loopback, startRendered } from '../../../support/haproxy/rendered-haproxy.ts';
import { service, slice } from '../../../support/values/build.ts';
import { translated } from '../../../support/values/translated.ts';

const test = requires(ava, { haproxy: true });

const [API, WEB] = ['default:api:tcp:81:v4', 'default:web:tcp:80:v4'];
const server = { backend: WEB, server: '10.0.0.1:8080' };

async function started(t: ExecutionContext) {
  const model = translated([
    service({ name: 'api', ports: [81] }),
    slice({ serviceName: 'api' }),
    service({ loadBalancerSourceRanges: ['10.0.0.0/8'] }),
    slice({ endpoints: ['10.0.0.1', '10.0.0.2'] }),
  ]);
  const loopback = new Loopback();
  const loadBalancers: LoadBalancer[] = [];
  for (const key of ['default/api', 'default/web']) {
    const loadBalancer = model.loadBalancers.get(key);
    if (loadBalancer !== undefined) loadBalancers.push(await loopback.bindable(loadBalancer));
  }
  const { worker } = await startRendered(t, loadBalancers);
  return {
    worker,
    tell: (...commands: readonly Command[]) => worker.runtime.send(commands),
    plans: () =>
      loadBalancers.flatMap(
        (each) =>
          planLoadBalancer({ key: each.key, running: worker.running, before: each, after: each }).commands,
      ),
    acl: worker.running.get(WEB)?.allowed[0]?.id ?? 0,
  };
}

const FOLDERS = { certificates: '', routes: '/' };

test('audit() finds no drift in a worker with the recorded state', async (t) => {
  const { worker } = await started(t);
  t.deepEqual(await audit(worker, FIRST_POSITION, FOLDERS), { drifted: new Map(), next: FIRST_POSITION });
});

test('audit() finds a server whose state or weight another process changed, and its plan repairs it', async (t) => {
  for (const change of [
    { kind: 'SetServerState', ...server, state: 'maint' },
    { kind: 'SetServerState', ...server, state: 'drain' },
    { kind: 'SetServerWeight', ...server, weight: 1 },
  ] as const) {
    const { worker, tell, plans } = await started(t);
    await tell(change);
    t.deepEqual([...(await audit(worker, FIRST_POSITION, FOLDERS)).drifted.keys()], [WEB]);
    t.is(plans().length, 1);
    await tell(...plans());
    t.deepEqual(
      [...(await audit(worker, FIRST_POSITION, FOLDERS)).drifted.keys()],
      [WEB],
      'It is what was believed before the repair',
    );
    t.deepEqual(plans(), []);
  }
});

test('The effect of a command whose reply is still under way is no drift', async (t) => {
  const { worker, tell } = await started(t);
  const drain = { kind: 'SetServerState', ...server, state: 'drain' } as const;
  await tell(drain);
  const ask: typeof worker.runtime.ask = async (line, options) => {
    const answer = await worker.runtime.ask(line, options);
    // Replies to commands come over the connection of the urgent questions.
    if (options?.lane !== 'bulk') worker.running.fold(drain);
    return answer;
  };
  const askAll = worker.runtime.askAll.bind(worker.runtime);
  const runtime = { ask, askAll } as typeof worker.runtime;
  t.deepEqual([...(await audit({ ...worker, runtime }, FIRST_POSITION, FOLDERS)).drifted.keys()], []);
});

test('audit() finds missing and additional servers', async (t) => {
  const { worker, tell, plans } = await started(t);
  await tell({ kind: 'SetServerState', ...server, state: 'maint' }, { kind: 'DeleteServer', ...server });
  t.deepEqual([...(await audit(worker, FIRST_POSITION, FOLDERS)).drifted.keys()], [WEB]);
  t.deepEqual(
    plans().map(({ kind }) => kind),
    ['AddServer', 'SetServerState'],
  );
  await tell({
    kind: 'AddServer',
    backend: API,
    server: 'stranger',
    address: '10.0.0.9',
    port: 1,
    keywords: ['id', '5', 'weight', '1'],
  });
  await tell({ kind: 'SetServerState', backend: API, server: 'stranger', state: 'ready' });
  t.deepEqual([...(await audit(worker, FIRST_POSITION, FOLDERS)).drifted.keys()], [API]);
  t.deepEqual(plans()[0], { kind: 'SetServerState', backend: API, server: 'stranger', state: 'maint' });
});

test('audit() finds a listener that another process disabled, and the plan repairs it', async (t) => {
  const { worker, tell, plans } = await started(t);
  await tell({ kind: 'DisableFrontend', listener: WEB, frontend: WEB });
  t.deepEqual([...(await audit(worker, FIRST_POSITION, FOLDERS)).drifted], [[WEB, 'it refuses connections']]);
  t.deepEqual(plans(), [{ kind: 'EnableFrontend', listener: WEB, frontend: WEB }]);
  await tell(...plans());
  t.deepEqual([...(await audit(worker, FIRST_POSITION, FOLDERS)).drifted], [[WEB, 'it accepts connections']]);
  t.deepEqual(plans(), []);
});

test('audit() finds an allowed client that another process added or removed, and the plan repairs it', async (t) => {
  const { worker, tell, plans, acl } = await started(t);
  await tell({ kind: 'AddCidr', acl, cidr: '0.0.0.0/0' }, { kind: 'DeleteCidr', acl, cidr: '10.0.0.0/8' });
  t.deepEqual(
    [...(await audit(worker, FIRST_POSITION, FOLDERS)).drifted],
    [[WEB, '0.0.0.0/0 is allowed, 10.0.0.0/8 is not allowed']],
  );
  t.deepEqual(plans(), [
    { kind: 'AddCidr', acl, cidr: '10.0.0.0/8' },
    { kind: 'DeleteCidr', acl, cidr: '0.0.0.0/0' },
  ]);
});

test('A change by a command of the agent after the read is no drift', async (t) => {
  const { worker, tell } = await started(t);
  const command = { kind: 'SetServerState', ...server, state: 'drain' } as const;
  let isChanged = false;
  const ask = worker.runtime.ask.bind(worker.runtime);
  const askAll: typeof worker.runtime.askAll = async (questions, options) => {
    const answers = await worker.runtime.askAll(questions, options);
    if (!isChanged && questions.includes(`show servers state ${WEB}`)) {
      isChanged = true;
      await tell(command);
      worker.running.fold(command);
    }
    return answers;
  };
  const runtime = { ask, askAll } as typeof worker.runtime;
  const { drifted } = await audit({ running: worker.running, runtime }, FIRST_POSITION, FOLDERS);
  t.true(isChanged);
  t.is(drifted.size, 0);
  t.is(worker.running.get(WEB)?.servers.get(server.server)?.state, 'drain');
});

test('The next audit continues at the listener where the last one stopped to read allowed clients', async (t) => {
  const { worker } = await started(t);
  for (const listener of [0, 1, 99])
    t.deepEqual(
      (await audit(worker, { listener, certificate: 0 }, FOLDERS)).next,
      FIRST_POSITION,
      'Even with fewer listeners than before',
    );
});

test('An audit reads a bounded number of certificates, and the next one continues behind them', async (t) => {
  const { worker } = await started(t);
  for (let at = 0; at < 450; at++)
    worker.running.putCertificate(`default/c${at}`, {
      name: `default/c${at}`,
      fingerprint: `${at}`,
      sha1: '0'.repeat(40),
      chainLength: 0,
      bytes: 1_000,
      expires: 0,
    });
  const asked: string[][] = [];
  const askAll: typeof worker.runtime.askAll = async (questions, options) => {
    const ofCertificates = questions.filter((each) => each.startsWith('show ssl cert '));
    if (ofCertificates.length === 0) return worker.runtime.askAll(questions, options);
    asked.push(ofCertificates.map((each) => each.slice('show ssl cert /default_'.length)));
    return ofCertificates.map(() => `SHA1 FingerPrint: ${'0'.repeat(40)}\n`);
  };
  const runtime = { ask: worker.runtime.ask.bind(worker.runtime), askAll } as typeof worker.runtime;
  let place = FIRST_POSITION;
  for (const [first, last, next] of [
    ['c0.pem', 'c199.pem', 200],
    ['c200.pem', 'c399.pem', 400],
    ['c400.pem', 'c449.pem', 0],
  ] as const) {
    const result = await audit({ running: worker.running, runtime }, place, FOLDERS);
    place = result.next;
    t.deepEqual([asked.at(-1)?.at(0), asked.at(-1)?.at(-1)], [first, last]);
    t.deepEqual([place.certificate, result.drifted.size], [next, 0]);
  }
});
