// The page about the suite for the move from ingress-nginx says of each annotation what the agent does with it.

import test from 'ava';
import { readIngress } from '../../agent/translate/ingress/ingress-rules.ts';
import { service } from '../support/values/build.ts';
import { ingress } from '../support/values/gateways.ts';
import { FEATURES, type Outcome, RUN, type Scenario, SUITE } from './ingress-nginx-tests.ts';

/** `served`: with all that it asks for. */
type Judged = 'served' | 'ignored' | 'closed' | 'broken';

const ALLOWED: Readonly<Record<Outcome, readonly Judged[]>> = {
  same: ['served'],
  differs: ['served'],
  ignored: ['ignored'],
  closed: ['closed'],
};

const WEB = service({ ports: [{ port: 80 }] });
const named = Object.entries(FEATURES).flatMap(([feature, scenarios]) =>
  scenarios.map((scenario) => ({ feature, scenario })),
);

test('Each test of the suite is named once', (t) => {
  const names = named.flatMap(({ scenario }) => scenario.tests.split(' '));
  t.is(names.length, SUITE.tests);
  t.is(new Set(names).size, SUITE.tests);
  t.deepEqual(
    RUN.failed.split(' ').filter((name) => !names.includes(name)),
    [],
  );
});

for (const { feature, scenario } of named)
  test(`${feature}: ${JSON.stringify(scenario.asks)} is ${scenario.outcome} (${scenario.tests})`, (t) => {
    const { outcome, why } = scenario;
    const judged = judgedOf(scenario);
    // Headgate always does what such an annotation asks for.
    const isHere = outcome === 'same' && why !== undefined && judged === 'ignored';
    t.true(isHere || ALLOWED[outcome].includes(judged), `It is ${judged} now: move its tests`);
    t.true(outcome === 'same' || why !== undefined, 'It needs a reason');
  });

function judgedOf({ asks, path = '/' }: Scenario): Judged {
  const annotations = Object.entries(asks).map(([name, value]) => [
    `nginx.ingress.kubernetes.io/${name}`,
    value,
  ]);
  const backend = { service: { name: 'web', port: { number: 80 } } };
  const pathType = path === '/' ? 'Prefix' : 'ImplementationSpecific';
  const rules = [{ host: 'example.org', http: { paths: [{ path, pathType, backend }] } }];
  const read = readIngress(ingress('web', { rules }, Object.fromEntries(annotations)), () => WEB);
  const actions = read.hosts.flatMap(({ entries }) => entries.entries.map(({ rule }) => rule.action));
  if (actions.some((action) => action.kind === 'answer' && action.status === 500)) return 'broken';
  // A canary that is closed is none.
  const isCanary = asks.canary === 'true' && read.canaries.length > 0;
  // Requests are refused, because TLS goes past them.
  if (!isCanary && read.passed.size === 0 && actions.every(({ kind }) => kind === 'answer')) return 'closed';
  return read.ignored.length + read.faults.length > 0 ? 'ignored' : 'served';
}
