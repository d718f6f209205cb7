import test from 'ava';
import {
  readAnnotationDefaults,
  readAnnotations,
} from '../../../../agent/translate/annotations/annotations.ts';
import { healthMonitor } from '../../../../agent/translate/service/health-monitor.ts';
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
  return healthMonitor(service, values, true, [])?.port;
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
