// The revocation list beside the authorities of a Gateway's client certificates.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { startEcho } from '../support/traffic/echo.ts';
import { Authority, askInTls, configMap, type IssuedCertificate, tlsSecret } from '../support/traffic/tls.ts';
import { gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';
import { VIP_PORT, webObjects } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true, programs: ['openssl'] });

const NAME = 'shop.example.org';

test.serial(
  'A client of a Gateway whose certificate is revoked is refused, and others are served',
  async (t) => {
    const host = await TestHost.create(t);
    const place = { address: host.address(1), port: VIP_PORT };
    const [own, clients] = [await Authority.create(t), await Authority.create(t, 'Clients')];
    const [ann, bob] = [await clients.issue({ names: ['ann'] }), await clients.issue({ names: ['bob'] })];
    const member = await startEcho(t, 'web');
    const [, slice = {}] = webObjects({ address: '', members: ['127.0.0.1'], portName: 'http' });
    const ports = [{ name: 'http', port: 80, protocol: 'TCP' }];
    const caCertificateRefs = [{ group: '', kind: 'ConfigMap', name: 'clients' }];
    await host.write('objects.yaml', [
      gatewayClassJson(),
      gatewayJson('edge', {
        addresses: [{ type: 'IPAddress', value: place.address }],
        listeners: [
          {
            name: 'https',
            port: place.port,
            protocol: 'HTTPS',
            hostname: NAME,
            tls: { certificateRefs: [{ name: 'web-tls' }] },
          },
        ],
        tls: { frontend: { default: { validation: { caCertificateRefs } } } },
      }),
      routeJson('shop', [{ name: 'edge' }]),
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { namespace: 'default', name: 'web' },
        spec: { type: 'ClusterIP', clusterIP: '10.96.0.1', ports },
      },
      { ...slice, ports: [{ name: 'http', port: Number(member.split(':')[1]), protocol: 'TCP' }] },
      tlsSecret('web-tls', await own.issue({ names: [NAME] })),
    ]);
    const question = `GET / HTTP/1.1\r\nhost: ${NAME}\r\nconnection: close\r\n\r\n`;
    const isServed = (client: IssuedCertificate): Promise<boolean> =>
      askInTls(place, { servername: NAME, ca: own.cert, ...client }, question).then(
        (text) => text.includes('"member":"web"'),
        () => false,
      );
    const list = (crl: string): Promise<void> => {
      const map = configMap('clients', clients.cert);
      return host.write('clients.yaml', [
        { ...map, data: { ...(map.data as object), ...(crl !== '' && { 'ca.crl': crl }) } },
      ]);
    };
    await list('');
    await host.start();
    await host.until('both are served', async () => (await isServed(ann)) && (await isServed(bob)));
    await list(await clients.revoke([ann]));
    await host.until('ann is refused', async () => !(await isServed(ann)) && (await isServed(bob)));

    await list('rubbish');
    const why = async (): Promise<string> => (await host.command('why', ['Gateway/default/edge'])).stdout;
    await host.until('the fault is told', async () =>
      /ca\.crl has no revocation list in PEM; the revocation list that it had stays in use/.test(await why()),
    );
    t.deepEqual([await isServed(ann), await isServed(bob)], [false, true]);

    await list('');
    await host.until('without the list ann is served', () => isServed(ann));
  },
);
