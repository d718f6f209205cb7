import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import { DefinitionVersions } from '../../../../agent/kubernetes/api/definition-versions.ts';
import type { ApiRequest, ApiResponse } from '../../../../agent/kubernetes/api/kubernetes-api.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';

const GROUP = 'gateway.networking.k8s.io';

/** `answers`: of each definition; 404 if it is absent. */
function started(answers: Record<string, number | string>) {
  const requests: ApiRequest[] = [];
  const clock = new FakeClock();
  let changes = 0;
  const versions = new DefinitionVersions({
    api: {
      request: async (request): Promise<ApiResponse> => {
        requests.push(request);
        const answer = answers[request.path.split('/').at(-1)?.split('.')[0] ?? ''] ?? 404;
        if (typeof answer === 'number') return { status: answer, headers: {}, body: {} };
        const annotations = answer === '' ? {} : { [`${GROUP}/bundle-version`]: answer };
        return { status: 200, headers: {}, body: { metadata: { annotations } } };
      },
      close: () => undefined,
    },
    onChanged: () => changes++,
    clock,
  });
  const settled = async () => {
    for (let at = 0; at < 50; at++) await setImmediate();
  };
  return { versions, requests, clock, settled, changes: () => changes };
}

test('DefinitionVersions reads nothing until it is asked, then the metadata of each definition', async (t) => {
  const { versions, requests, clock, settled, changes } = started({ gateways: 'v1.6.3', tcproutes: '' });
  await clock.advance(3_600_000);
  t.is(requests.length, 0);
  t.is(versions.get(), undefined);
  await settled();
  t.deepEqual(versions.get(), { [`gateways.${GROUP}`]: 'v1.6.3', [`tcproutes.${GROUP}`]: '' });
  t.is(requests.length, 10);
  t.true(requests.every(({ accept }) => accept?.includes('PartialObjectMetadata')));
  t.is(changes(), 1);
  versions.close();
});

test('DefinitionVersions sees an upgrade, and keeps what it knows while the API server fails', async (t) => {
  const answers: Record<string, number | string> = { gateways: 'v1.4.0' };
  const { versions, clock, settled, changes } = started(answers);
  versions.get();
  await settled();
  answers.gateways = 500;
  await clock.advance(300_000);
  await settled();
  t.deepEqual([versions.get(), changes()], [{ [`gateways.${GROUP}`]: 'v1.4.0' }, 1]);
  answers.gateways = 'v1.6.3';
  await clock.advance(300_000);
  await settled();
  t.deepEqual([versions.get(), changes()], [{ [`gateways.${GROUP}`]: 'v1.6.3' }, 2]);
  versions.close();
  answers.gateways = 'v1.7.0';
  await clock.advance(300_000);
  await settled();
  t.is(changes(), 2);
});

test('DefinitionVersions gives nothing without the right to read them', async (t) => {
  const { versions, settled, changes } = started({ gateways: 403, gatewayclasses: 403 });
  versions.get();
  await settled();
  t.deepEqual([versions.get(), changes()], [undefined, 0]);
  versions.close();
});
