import test from 'ava';
import type { ObjectStatus } from '../../../../agent/model/object-status.ts';
import { ObjectStatuses } from '../../../../agent/model/object-statuses.ts';
import { allClassProblems } from '../../../../agent/report/operating/class-problems.ts';

const condition = (type: string, status: 'True' | 'False', message: string) => ({
  type,
  status,
  reason: type,
  message,
});

const classStatus = (name: string, ...conditions: readonly ReturnType<typeof condition>[]): ObjectStatus => ({
  ...{ kind: 'GatewayClass', namespace: '', name, uid: `uid-${name}`, generation: 1 },
  conditions,
  supportedFeatures: [],
});

test('What a GatewayClass asks for and does not get is a problem of it', (t) => {
  const statuses = new ObjectStatuses();
  statuses.update('gatewayclass:-/edge', [
    classStatus(
      'edge',
      condition('Accepted', 'False', 'spec.parametersRef is not supported; remove it'),
      condition('SupportedVersion', 'True', 'The definitions of Gateway API are of v1.6'),
    ),
  ]);
  statuses.update('gatewayclass:-/good', [classStatus('good', condition('Accepted', 'True', 'Served'))]);
  t.deepEqual(allClassProblems(statuses), [
    {
      object: 'GatewayClass edge',
      reason: 'InvalidClass',
      message: 'spec.parametersRef is not supported; remove it',
    },
  ]);
});
