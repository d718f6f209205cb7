// From annotations and Secrets to the TLS of listeners.

import test from 'ava';
import { service, slice } from '../../../support/values/build.ts';
import { AUTHORITY, configMap, EXPIRED_CRL, SMALL, secret } from '../../../support/values/certificates.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

type Annotations = Readonly<Record<string, string>>;
const PORTS = [
  { port: 80, name: 'http' },
  { port: 443, name: 'https' },
  { port: 53, protocol: 'UDP' as const },
];
const WITH_CLIENTS = {
  'tls-certificate': 'web-tls',
  'tls-client-certificates': 'required',
  'tls-client-ca': 'clients',
} as const;
const OBJECTS = [
  ...[secret('web-tls'), secret('small', SMALL), configMap('clients'), secret('ca')],
  configMap('broken', 'default', AUTHORITY),
  configMap('expired', 'default', EXPIRED_CRL),
];

/** With annotations by their names without the prefix. */
function translate(annotations: Annotations) {
  const own = Object.fromEntries(
    Object.entries(annotations).map(([name, text]) => [`headgate.io/${name}`, text]),
  );
  return loadBalancerOf(translated([service({ annotations: own, ports: PORTS }), slice(), ...OBJECTS]));
}

/** Each listener as `port mode tls`, with `-` for one that is not served. */
function shapes(annotations: Annotations): readonly string[] {
  return translate(annotations).listeners.map(({ port, mode, tls, addresses }) =>
    addresses.length === 0 ? `${port} -` : `${port} ${mode}${tls === undefined ? '' : ' tls'}`,
  );
}

function messages(annotations: Annotations): readonly string[] {
  return translate(annotations).problems.map(({ reason, message }) => `${reason}: ${message}`);
}

const served: readonly (readonly [annotations: Annotations, shapes: readonly string[]])[] = [
  [{}, ['80 tcp', '443 tcp', '53 tcp']],
  [{ mode: 'http' }, ['80 http', '443 http', '53 tcp']],
  [{ 'tls-certificate': 'web-tls' }, ['80 tcp tls', '443 tcp tls', '53 tcp']],
  [{ mode: 'https', 'tls-certificate': 'web-tls' }, ['80 http tls', '443 http tls', '53 tcp']],
  [{ mode: 'http', 'tls-certificate': 'web-tls', 'tls-ports': '443' }, ['80 http', '443 http tls', '53 tcp']],
  [
    { mode: 'http', 'tls-certificate': 'web-tls', 'tls-ports': 'https' },
    ['80 http', '443 http tls', '53 tcp'],
  ],
  [{ 'tls-certificate': 'absent,web-tls' }, ['80 tcp tls', '443 tcp tls', '53 tcp']],
  // Never without TLS.
  [{ mode: 'https' }, ['80 -', '443 -', '53 tcp']],
  [{ mode: 'https', 'tls-ports': '443' }, ['80 http', '443 -', '53 tcp']],
  [{ 'tls-certificate': 'absent' }, ['80 -', '443 -', '53 tcp']],
  [{ 'tls-certificate': 'small' }, ['80 -', '443 -', '53 tcp']],
  [{ 'tls-certificate': 'web-tls\n    stats enable' }, ['80 -', '443 -', '53 tcp']],
  [{ engine: 'kernel', 'tls-certificate': '../web-tls' }, ['80 -', '443 -', '53 tcp']],
  [{ 'tls-certificate': 'web-tls', 'tls-client-certificates': 'required' }, ['80 -', '443 -', '53 tcp']],
  [
    { 'tls-certificate': 'web-tls', 'tls-client-certificates': 'optional', 'tls-client-ca': 'absent' },
    ['80 -', '443 -', '53 tcp'],
  ],
  [{ ...WITH_CLIENTS, 'tls-client-crl': 'secret/ca' }, ['80 tcp tls', '443 tcp tls', '53 tcp']],
  [{ ...WITH_CLIENTS, 'tls-client-crl': 'absent' }, ['80 -', '443 -', '53 tcp']],
  [{ ...WITH_CLIENTS, 'tls-client-crl': 'broken' }, ['80 -', '443 -', '53 tcp']],
  [{ ...WITH_CLIENTS, 'tls-client-crl': '../ca' }, ['80 -', '443 -', '53 tcp']],
  [{ 'member-tls': 'verified', 'member-tls-name': 'a.internal' }, ['80 -', '443 -', '53 tcp']],
  [{ 'member-tls': 'verified', 'member-tls-ca': 'clients' }, ['80 -', '443 -', '53 tcp']],
  [{ 'tls-certificate': 'web-tls', 'tls-client-certificates': 'requird' }, ['80 -', '443 -', '53 tcp']],
  [
    { 'tls-certificate': 'web-tls', 'tls-min-version': '1.4', 'tls-ports': '443' },
    ['80 tcp', '443 -', '53 tcp'],
  ],
  [{ 'tls-certificate': 'web-tls', 'tls-ciphers': 'ALL:eNULL' }, ['80 -', '443 -', '53 tcp']],
  [{ 'tls-min-version': '1.4' }, ['80 -', '443 -', '53 tcp']],
  [{ 'tls-client-certificates': 'required' }, ['80 -', '443 -', '53 tcp']],
  [{ 'tls-min-version': '1.2' }, ['80 tcp', '443 tcp', '53 tcp']],
  [{ 'member-tls-ca': 'clients' }, ['80 -', '443 -', '53 tcp']],
  [{ 'member-tls': 'verifed' }, ['80 -', '443 -', '53 tcp']],
  [{ 'member-tls': 'unverified' }, ['80 tcp', '443 tcp', '53 tcp']],
];
for (const [annotations, expected] of served)
  test(`Ports with ${JSON.stringify(annotations)} are ${expected.join(', ')}`, (t) => {
    t.deepEqual(shapes(annotations), expected);
  });

const reported: readonly (readonly [annotations: Annotations, messages: readonly string[]])[] = [
  [{ 'tls-certificate': 'web-tls', 'tls-ports': '443' }, []],
  [
    { 'tls-certificate': 'absent,web-tls', 'tls-ports': '443' },
    [
      'CertificateMissing: Cannot use Secret "default/absent" for TLS on port 443: there is no Secret of this name and of type kubernetes.io/tls',
    ],
  ],
  [
    { 'tls-certificate': 'small', 'tls-ports': '443' },
    [
      'InvalidCertificate: Cannot use Secret "default/small" for TLS on port 443: the key is rsa 1024: allowed are RSA of 2048 bits or more, ECDSA with P-256, P-384 or P-521, and Ed25519',
    ],
  ],
  [
    { 'tls-certificate': 'web-tls', 'tls-ports': '443', 'tls-min-version': '1.4' },
    [
      'InvalidAnnotation: Cannot use annotation "headgate.io/tls-min-version": "1.4" is not 1.2 or 1.3',
      'InvalidAnnotation: Cannot serve port 443: annotation "headgate.io/tls-min-version" has a value that is not allowed, and no default is as strict',
    ],
  ],
  [
    { mode: 'https', 'tls-ports': '443' },
    [
      'CertificateMissing: Cannot end TLS on port 443: annotation "headgate.io/tls-certificate" names no Secret; it is not served without TLS',
    ],
  ],
  [
    {
      'tls-certificate': 'web-tls',
      'tls-ports': '443',
      'tls-client-certificates': 'required',
      'tls-client-ca': 'gone',
    },
    [
      'CertificateMissing: Cannot use ConfigMap "default/gone" for TLS on port 443: it does not exist, or has no ca.crt',
    ],
  ],
  [{ ...WITH_CLIENTS, 'tls-ports': '443', 'tls-client-crl': 'clients' }, []],
  [
    { ...WITH_CLIENTS, 'tls-ports': '443', 'tls-client-crl': 'gone' },
    [
      'CertificateMissing: Cannot use ConfigMap "default/gone" for TLS on port 443: it does not exist, or has no ca.crl',
    ],
  ],
  [
    { ...WITH_CLIENTS, 'tls-ports': '443', 'tls-client-crl': 'broken' },
    [
      'InvalidCertificate: Cannot use ConfigMap "default/broken" for TLS on port 443: ca.crl has no revocation list in PEM',
    ],
  ],
  [
    { ...WITH_CLIENTS, 'tls-ports': '443', 'tls-client-crl': 'expired' },
    [
      'CertificateExpired: The revocation list in ConfigMap "default/expired" for port 443 has expired, so that handshakes fail; renew it',
    ],
  ],
];
for (const [annotations, expected] of reported)
  test(`The problems with ${JSON.stringify(annotations)} are ${expected.length}`, (t) => {
    t.deepEqual(messages(annotations), expected);
  });

test('Options of TLS reach the listener and its pool', (t) => {
  const { listeners } = translate({
    mode: 'https',
    'tls-certificate': 'web-tls',
    'tls-min-version': '1.3',
    'tls-ciphers': 'TLS_AES_128_GCM_SHA256,ECDHE-RSA-AES128-GCM-SHA256',
    'tls-alpn': 'http/1.1',
    'tls-client-certificates': 'optional',
    'tls-client-ca': 'secret/ca',
    'tls-client-crl': 'clients',
    'member-tls': 'verified',
    'member-tls-ca': 'clients',
    'member-tls-name': 'web.internal',
    'member-http-version': '2',
  });
  const [{ tls, pool } = {}] = listeners;
  t.like(tls, {
    minVersion: '1.3',
    ciphers: ['TLS_AES_128_GCM_SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
    alpn: ['http/1.1'],
    clients: {
      verify: 'optional',
      authority: { name: 'secret default/ca' },
      crl: { name: 'configmap default/clients' },
    },
  });
  t.deepEqual(
    tls?.certificates.map(({ name }) => name),
    ['default/web-tls'],
  );
  t.like(pool?.tls, { serverName: 'web.internal', authority: { name: 'configmap default/clients' } });
  t.is(pool?.httpVersion, '2');
  t.false(JSON.stringify(listeners).includes('BEGIN'), 'No text is in the model');
});

test("OpenStack's annotation names a Secret", (t) => {
  const annotations = { 'loadbalancer.openstack.org/default-tls-container-ref': 'web-tls' };
  const { listeners } = loadBalancerOf(translated([service({ annotations }), ...OBJECTS]));
  t.is(listeners[0]?.tls?.certificates[0]?.name, 'default/web-tls');
});
