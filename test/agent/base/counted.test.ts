import test from 'ava';
import { counted } from '../../../agent/base/counted.ts';

for (const [noun, plural] of [
  ['member', 'members'],
  ['Endpoints', 'Endpoints'],
  ['GatewayClass', 'GatewayClasses'],
  ['BackendTLSPolicy', 'BackendTLSPolicies'],
  ['Gateway', 'Gateways'],
] as const)
  test(`counted() gives the plural of ${noun}`, (t) => {
    t.deepEqual(
      [counted(1, noun), counted(2, noun), counted(0, noun)],
      [`1 ${noun}`, `2 ${plural}`, `0 ${plural}`],
    );
  });
