// Which answers of members a default backend replaces, by annotations of an Ingress.

import test from 'ava';
import { customErrorsText } from '../../../../agent/haproxy/routes/encode.ts';
import { poolsOf } from '../../../../agent/haproxy/routes/needs.ts';
import { ruleTarget } from '../../../../agent/haproxy/routes/rule-rows.ts';
import type { ForwardAction, HttpRouting } from '../../../../agent/model/routes.ts';
import { actionInWords } from '../../../../agent/report/answers/route-words.ts';
import { service } from '../../../support/values/build.ts';
import { GatewayWorld } from '../../../support/values/gateway-world.ts';
import { ingressClassJson, ingressJson } from '../../../support/values/gateways.ts';

const KEY = 'ingress:-/edge';
const PAGES = service({ name: 'pages', key: 'default/pages', type: 'ClusterIP' });

function served(annotations: Readonly<Record<string, string>>) {
  const own = Object.entries(annotations).map(([name, value]) => [
    `nginx.ingress.kubernetes.io/${name}`,
    value,
  ]);
  const world = new GatewayWorld([
    ingressClassJson(),
    ingressJson('web', {}, Object.fromEntries(own)),
    PAGES,
  ]);
  const listener = world.listener(80, 'tcp', KEY);
  const rule = (listener.routing as HttpRouting).sections[0]?.hosts[0]?.entries[0]?.rule;
  if (rule === undefined) throw new Error('There is no rule');
  const problems = world.loadBalancer(KEY).problems.map(({ message }) => message);
  return { rule, errors: (rule.action as ForwardAction).customErrors, listener, problems };
}

test('Statuses lead to the pool of the default backend, which is told of Ingress and Service', (t) => {
  const { rule, errors, listener, problems } = served({
    'custom-http-errors': '503, 404,404',
    'default-backend': 'pages',
  });
  t.deepEqual(problems, []);
  t.deepEqual(errors, { codes: [404, 503], namespace: 'default', ingress: 'web', service: 'web', port: 80 });
  t.true(listener.replacesErrors);
  const { rows } = ruleTarget(rule, 't', '');
  const row = rows.find(({ map }) => map === 'custom-errors');
  t.is(row?.value, '404,503 pool:default:pages:tcp:80:v4 default web web 80');
  t.deepEqual(poolsOf(row === undefined ? [] : [row]), ['pool:default:pages:tcp:80:v4']);
});

for (const [title, annotations, problem] of [
  ['it is switched off', { 'disable-proxy-intercept-errors': 'true', 'default-backend': 'pages' }, /^$/],
  ['members speak gRPC', { 'default-backend': 'pages', 'backend-protocol': 'GRPCS' }, /members speak gRPC/],
] as const)
  test(`No answer is replaced if ${title}`, (t) => {
    const { errors, listener, problems } = served({ 'custom-http-errors': '404', ...annotations });
    t.deepEqual(errors?.codes ?? [], []);
    t.is(listener.replacesErrors, undefined);
    t.regex(problems.join(), problem);
  });

for (const [title, annotations, problem] of [
  ['there is no default backend', {}, /^$/],
  ['it does not exist', { 'default-backend': 'missing' }, /"default\/missing" does not exist/],
] as const)
  test(`The class has the pages if ${title}`, (t) => {
    const { rule, listener, problems } = served({ 'custom-http-errors': '404', ...annotations });
    t.is((rule.action as ForwardAction).fallback, undefined);
    t.true(listener.replacesErrors);
    t.regex(problems.join(), problem);
    const row = ruleTarget(rule, 't', '').rows.find(({ map }) => map === 'custom-errors');
    t.is(row?.value, '404 none default web web 80');
    t.deepEqual(poolsOf(row === undefined ? [] : [row]), []);
    t.regex(actionInWords(rule), /^forwards to one pool, with pages of the class instead of 404$/);
  });

test('Statuses below 400, names and ranges are refused', (t) => {
  for (const wrong of ['', '200', '404 503', '4xx', '404,', '600', '400-499'])
    t.regex(
      served({ 'custom-http-errors': wrong, 'default-backend': 'pages' }).problems.join(),
      /custom-http-errors" is ignored/,
      wrong,
    );
});

test('customErrorsText() has no blank within a field', (t) => {
  const errors = { codes: [], namespace: 'a b', ingress: '\n', service: 'web', port: 80 };
  const action = { fallback: 'pool:default:pages:tcp:80:v4', customErrors: errors } as Partial<ForwardAction>;
  t.is(customErrorsText(action as ForwardAction), '- pool:default:pages:tcp:80:v4 ab - web 80');
});

test('A canary that a header chooses has the default backend of the other Ingress, and why names it', (t) => {
  const named = (annotations: Readonly<Record<string, string>>) =>
    Object.fromEntries(
      Object.entries(annotations).map(([name, value]) => [`nginx.ingress.kubernetes.io/${name}`, value]),
    );
  const world = new GatewayWorld([
    ingressClassJson(),
    ingressJson('web', {}, named({ 'custom-http-errors': '404,503', 'default-backend': 'pages' })),
    ingressJson('next', {}, named({ canary: 'true', 'canary-by-header': 'X-Next' })),
    PAGES,
  ]);
  const { routing } = world.listener(80, 'tcp', KEY);
  const entries = (routing as HttpRouting).sections[0]?.hosts[0]?.entries ?? [];
  const chosen = entries.find(({ rule }) => rule.name.includes('default/next'))?.rule;
  if (chosen === undefined) throw new Error('The canary has no rule');
  t.deepEqual((chosen.action as ForwardAction).customErrors?.codes, [404, 503]);
  t.regex(
    actionInWords(chosen),
    /^forwards to one pool, with answers of \S* ?default\/pages instead of 404, 503$/,
  );
});
