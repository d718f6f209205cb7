import test from 'ava';
import type { ServicePort } from '../../../../agent/kubernetes/objects.ts';
import {
  ANNOTATION_DEFAULTS,
  readAnnotationDefaults,
  readAnnotations,
} from '../../../../agent/translate/annotations/annotations.ts';
import { healthMonitor, monitorProblems } from '../../../../agent/translate/service/health-monitor.ts';
import { service } from '../../../support/values/build.ts';
import { parsedObject, serviceJson } from '../../../support/values/kubernetes-json.ts';

type Texts = Readonly<Record<string, string>>;

/** The port of the probe of kube-proxy; annotations by their names without the prefix. */
function portOf(own: Texts, defaults: Texts, spec: Readonly<Record<string, unknown>>): number | undefined {
  const prefixed = Object.entries(own).map(([name, value]) => [`headgate.io/${name}`, value]);
  const service = parsedObject(
    serviceJson('web', { metadata: { annotations: Object.fromEntries(prefixed) }, spec }),
  );
  if (service.kind !== 'Service') throw new Error('It is no Service');
  const { values } = readAnnotations(
    service.annotations,
    'Service default/web',
    readAnnotationDefaults(defaults).values,
  );
  const [port] = service.ports;
  return port && healthMonitor(service, port, values, true)?.port;
}

const LOCAL = { externalTrafficPolicy: 'Local', healthCheckNodePort: 31_000 };

test("The probe of kube-proxy uses the Service's own port unless an annotation of the Service sets one", (t) => {
  const monitor = { 'health-monitor': 'kube-proxy' };
  const port = { 'health-monitor-port': '10356' };
  t.is(portOf(monitor, {}, {}), 10_256);
  t.is(portOf(monitor, {}, LOCAL), 31_000);
  t.is(portOf({ ...monitor, ...port }, {}, LOCAL), 10_356);
  t.is(portOf({}, { ...monitor, ...port }, LOCAL), 31_000);
  t.is(portOf({}, { ...monitor, ...port }, {}), 10_356);
  // A default for the pods of other Services.
  t.is(portOf(monitor, { 'health-monitor': 'http', ...port }, {}), 10_256);
});

type Given = Partial<ServicePort>;
const dns: Given = { name: 'dns', port: 53, protocol: 'UDP' };
const dnsByTcp: Given = { name: 'dns-tcp', port: 53 };
const web: Given = { name: 'web', port: 80 };
const signalling: Given = { name: 'sig', port: 2905, protocol: 'SCTP' };

/** Annotations by their full names, the ports, the type for each of them, and the reason against the annotation. */
const typesOf = test.macro(
  (t, annotations: Texts, ports: readonly Given[], types: readonly string[], why = '') => {
    const given = service({ annotations, ports });
    const { values, problems } = readAnnotations(annotations, 'Service default/web', ANNOTATION_DEFAULTS);
    t.deepEqual(
      given.ports.map((port) => healthMonitor(given, port, values, false)?.type ?? ''),
      types,
    );
    const messages = [...problems, ...monitorProblems(given, values, false)].map(({ message }) => message);
    t.deepEqual(messages, why === '' ? [] : [`Cannot use annotation ${why}`]);
  },
);

const named = (type: string, more: Texts = {}) => ({ 'headgate.io/health-monitor': type, ...more });
const onPort = { 'headgate.io/health-monitor-port': '8081' };
const ofOctavia = { 'loadbalancer.openstack.org/enable-health-monitor': 'true' };

test('A UDP port alone is probed by TCP', typesOf, named('tcp'), [dns], ['tcp']);
test(
  'A UDP port is probed by TCP like the TCP port of its number',
  typesOf,
  named('http'),
  [dns, dnsByTcp],
  ['http', 'http'],
);
test(
  'A UDP port is not probed by TCP like TCP ports of other numbers',
  typesOf,
  named('http'),
  [dns, web],
  ['', 'http'],
);
test(
  'All ports are probed on the port for probes',
  typesOf,
  named('http', onPort),
  [dns, web, signalling],
  ['http', 'http', 'http'],
);
test('Only UDP ports are probed by UDP', typesOf, named('udp'), [dns, web, signalling], ['udp', '', '']);
test(
  'A probe by UDP without UDP ports is a problem',
  typesOf,
  named('udp'),
  [web],
  [''],
  '"headgate.io/health-monitor": "udp" is for UDP ports, and the Service has none',
);
test(
  "Octavia's annotation probes each port by its protocol",
  typesOf,
  ofOctavia,
  [dns, web, signalling],
  ['udp', 'tcp', ''],
);
test(
  "Octavia's annotation with SCTP ports only is a problem",
  typesOf,
  ofOctavia,
  [signalling],
  [''],
  '"headgate.io/health-monitor": there is no probe by SCTP; use a probe by TCP with annotation "headgate.io/health-monitor-port"',
);
test(
  'A probe by SCTP is a problem that names a probe by TCP',
  typesOf,
  named('sctp'),
  [signalling],
  [''],
  '"headgate.io/health-monitor": "sctp": there is no probe by SCTP; use a probe by TCP with annotation "headgate.io/health-monitor-port"',
);

test('A default monitor is for UDP ports only if it has a port of its own', (t) => {
  const given = service({ ports: [dns, web] });
  const types = (defaults: Texts) => {
    const { values } = readAnnotationDefaults(defaults);
    return given.ports.map((port) => healthMonitor(given, port, values, false)?.type);
  };
  t.deepEqual(types({ 'health-monitor': 'tcp' }), [undefined, 'tcp']);
  t.deepEqual(types({ 'health-monitor': 'tcp', 'health-monitor-port': '8081' }), ['tcp', 'tcp']);
  t.deepEqual(types({ 'health-monitor': 'udp' }), ['udp', undefined]);
});
