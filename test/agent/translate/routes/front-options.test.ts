// Compression and error pages: from annotations of Services, Gateways and IngressClasses to the model.

import test from 'ava';
import { parseObject } from '../../../../agent/kubernetes/parse-object.ts';
import type { Listener, Problem } from '../../../../agent/model/load-balancer.ts';
import { service } from '../../../support/values/build.ts';
import { GatewayWorld } from '../../../support/values/gateway-world.ts';
import { gatewayJson, ingressClassJson, ingressJson, routeJson } from '../../../support/values/gateways.ts';
import { listenerOf, loadBalancerOf, translated } from '../../../support/values/translated.ts';

type Json = Readonly<Record<string, unknown>>;
type Annotations = Readonly<Record<string, string>>;

const PAGES = { 404: 'Not here', 503: 'Soon back' };

function annotated(object: Json, annotations: Annotations): Json {
  return { ...object, metadata: { ...(object.metadata as Json), annotations } };
}

function configMapJson(name: string, data: Json = PAGES, namespace = 'default'): Json {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data };
}

interface Made {
  readonly listener: Listener;
  readonly problems: readonly Problem[];
}

/** What the annotations make of the listener of each kind of owner. */
const OWNERS: Readonly<Record<string, (annotations: Annotations, objects: readonly Json[]) => Made>> = {
  'Gateway default/edge': (annotations, objects) => {
    const world = new GatewayWorld([
      annotated(gatewayJson(), annotations),
      routeJson('api', [{ name: 'edge' }]),
      ...objects,
    ]);
    return { listener: world.listener(), problems: world.loadBalancer().problems };
  },
  'IngressClass edge': (annotations, objects) => {
    const ofClass = ingressClassJson();
    const before = (ofClass.metadata as Json).annotations as Annotations | undefined;
    const world = new GatewayWorld([
      annotated(ofClass, { ...before, ...annotations }),
      ingressJson('web', {}),
      ...objects,
    ]);
    const key = 'ingress:-/edge';
    return { listener: world.listener(80, 'tcp', key), problems: world.loadBalancer(key).problems };
  },
  'Service default/web': (annotations, objects) => {
    const read = objects.flatMap((json) => parseObject(json, '').objects);
    const desired = translated([
      service({ annotations: { 'headgate.io/mode': 'http', ...annotations } }),
      ...read,
    ]);
    return { listener: listenerOf(desired), problems: loadBalancerOf(desired).problems };
  },
};

for (const [owner, make] of Object.entries(OWNERS)) {
  const named = owner.startsWith('IngressClass') ? 'default/pages' : 'pages';
  const messages = ({ problems }: Made) =>
    problems
      .filter(({ reason }) => ['InvalidAnnotation', 'InvalidErrorPages'].includes(reason))
      .map(({ object, message }) => `${object}: ${message}`);

  test(`${owner} asks for compression by an annotation`, (t) => {
    t.is(make({ 'headgate.io/compression': 'gzip' }, []).listener.compression, 'gzip');
    t.false('compression' in make({ 'headgate.io/compression': 'none' }, []).listener);
    const bad = make({ 'headgate.io/compression': 'brotli' }, []);
    t.false('compression' in bad.listener);
    t.deepEqual(messages(bad), [
      `${owner}: Cannot use annotation "headgate.io/compression": "brotli" is not none or gzip`,
    ]);
  });

  test(`${owner} has the pages of the ConfigMap that it names`, (t) => {
    const made = make({ 'headgate.io/error-pages': named }, [configMapJson('pages')]);
    t.is(made.listener.errorPages?.name, 'configmap default/pages');
    t.deepEqual(made.listener.errorPages?.statuses, ['404', '503']);
    t.deepEqual(messages(made), []);
    const other = make({ 'headgate.io/error-pages': named }, [
      configMapJson('pages', { ...PAGES, 503: 'x' }),
    ]);
    t.not(other.listener.errorPages?.fingerprint, made.listener.errorPages?.fingerprint);
    t.false('errorPages' in make({}, [configMapJson('pages')]).listener);
  });

  test(`${owner} names what is wrong with a ConfigMap of pages, and has the other pages`, (t) => {
    const made = make({ 'headgate.io/error-pages': named }, [
      configMapJson('pages', { ...PAGES, 'index.html': 'x' }),
    ]);
    t.deepEqual(made.listener.errorPages?.statuses, ['404', '503']);
    t.deepEqual(messages(made), [
      `${owner}: Cannot use ConfigMap "default/pages" for error pages: key "index.html" is not a status that can have a page: 400, 401, 403, 404, 413, 429, 500, 502, 503, 504`,
    ]);
    const missing = make({ 'headgate.io/error-pages': named }, []);
    t.false('errorPages' in missing.listener);
    t.deepEqual(messages(missing), [
      `${owner}: Cannot use ConfigMap "default/pages" for error pages: it does not exist, or has no page`,
    ]);
  });
}

test('A Gateway and a Service have no pages of another namespace, and an IngressClass names one', (t) => {
  const of = (owner: keyof typeof OWNERS, named: string) => {
    const make = OWNERS[owner];
    if (make === undefined) throw new Error(owner);
    const { listener, problems } = make({ 'headgate.io/error-pages': named }, [
      configMapJson('pages', PAGES, 'other'),
    ]);
    return [
      listener.errorPages?.name,
      problems.find(({ reason }) => reason === 'InvalidErrorPages')?.message,
    ];
  };
  const refused =
    'Cannot use annotation "headgate.io/error-pages": "other/pages" is not of namespace "default"';
  t.deepEqual(of('Gateway default/edge', 'other/pages'), [undefined, refused]);
  t.deepEqual(of('Service default/web', 'other/pages'), [undefined, refused]);
  t.deepEqual(of('IngressClass edge', 'other/pages'), ['configmap other/pages', undefined]);
  t.deepEqual(of('IngressClass edge', 'pages'), [
    undefined,
    'Cannot use annotation "headgate.io/error-pages": "pages" has no namespace, and an IngressClass needs NAMESPACE/NAME',
  ]);
});

test('A port in mode tcp has neither', (t) => {
  const desired = translated([
    service({ annotations: { 'headgate.io/compression': 'gzip', 'headgate.io/error-pages': 'pages' } }),
    ...parseObject(configMapJson('pages'), '').objects,
  ]);
  t.false('compression' in listenerOf(desired));
  t.false('errorPages' in listenerOf(desired));
});

test('The pages of a ConfigMap follow its changes, and go with it', (t) => {
  const annotations = { 'headgate.io/error-pages': 'pages' };
  const world = new GatewayWorld([
    annotated(gatewayJson(), annotations),
    routeJson('api', [{ name: 'edge' }]),
    configMapJson('pages'),
  ]);
  const first = world.listener().errorPages;
  world.apply([configMapJson('pages', { 404: 'Gone' })]);
  t.deepEqual(world.listener().errorPages?.statuses, ['404']);
  t.not(world.listener().errorPages?.fingerprint, first?.fingerprint);
  world.apply([configMapJson('pages', { 404: '' })]);
  t.deepEqual(world.listener().errorPages?.statuses, ['404'], 'the last good ones stay');
  t.regex(
    world
      .loadBalancer()
      .problems.map(({ message }) => message)
      .join(),
    /"default\/pages" for error pages: the page of "404" is no text, or empty; the pages that it had stay in use/,
  );
  world.remove('ConfigMap', 'default/pages');
  t.false('errorPages' in world.listener());
});
