import ava from 'ava';
import { WorkerFinder, type WorkerFinderOptions } from '../../../../agent/haproxy/worker/worker-finder.ts';
import { freePort } from '../../../support/basics/free-port.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { until } from '../../../support/basics/until.ts';
import { startRendered } from '../../../support/haproxy/rendered-haproxy.ts';
import { gatewayOf, sectionOf } from '../../../support/values/routes.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const test = requires(ava, { haproxy: true });

test('WorkerFinder is reading from the answer of a worker until it is adopted: the worker does not hang', async (t) => {
  const place = { address: '127.0.0.1', port: await freePort() };
  const { paths, context } = await startRendered(t, [gatewayOf(place, [sectionOf('one', '*')])]);
  let isProbing = false;
  const probed = Promise.withResolvers<void>();
  const options = {
    paths,
    maker: {
      effective: () => new Map(),
      probe: () => {
        isProbing = true;
        return probed.promise;
      },
    },
    context: () => context,
    file: { bindsUnder: async () => undefined },
    desired: new Map(),
    log: silentLog(),
  };
  const finder = new WorkerFinder(options as unknown as WorkerFinderOptions);
  t.false(finder.isReading);
  const adopted = finder.adopt();
  await until('it has answered', async () => isProbing);
  t.true(finder.isReading);
  probed.resolve();
  const worker = await adopted;
  t.is(worker?.structure, '');
  t.false(finder.isReading);
  worker?.runtime.close();
  await Promise.all([finder.adopt().then((again) => again?.runtime.close())]);
  t.false(finder.isReading);
});
