import test from 'ava';
import { readReported } from '../../../../agent/octavia/text/reported-text.ts';

const TEXT = `# Configuration for loadbalancer lb
global
    daemon
    stats socket /var/lib/octavia/lb.sock mode 0666 level user

frontend prometheus-exporter-internal-endpoint
    bind 127.0.0.1:9101
    mode http
backend prometheus-exporter-internal
    mode http
    server prometheus-internal 127.0.0.1:9102
frontend web
    maxconn 50000
    bind 10.0.0.10:443 ssl crt-list /certs/lb/web.pem ca-file /certs/lb/ca.pem verify required crl-file /certs/lb/crl.pem
    mode http
    default_backend pool:web
frontend plain
    bind 10.0.0.10:80
    mode http
frontend tcp
    bind 10.0.0.10:22
    mode tcp
backend pool:web
    mode http
    server one 10.0.0.1:80 weight 1 check inter 5s fall 3 rise 3 cookie one
    server two 10.0.0.2:80 weight 1 disabled ssl crt /certs/lb/client.pem ca-file /certs/lb/pool.pem
backend empty:tcp
    mode tcp
`;

test('readReported() has the listeners of users with the types of Octavia', (t) => {
  t.deepEqual(readReported(TEXT).listeners, [
    { id: 'web', type: 'TERMINATED_HTTPS', bind: '10.0.0.10:443' },
    { id: 'plain', type: 'HTTP', bind: '10.0.0.10:80' },
    { id: 'tcp', type: 'TCP', bind: '10.0.0.10:22' },
  ]);
});

test('readReported() has the pools of users with their members', (t) => {
  t.deepEqual(readReported(TEXT).pools, [
    { name: 'pool:web', pool: 'pool', listener: 'web', members: ['one', 'two'] },
    { name: 'empty:tcp', pool: 'empty', listener: 'tcp', members: [] },
  ]);
});

test('readReported() has every file that the text names', (t) => {
  t.deepEqual(
    [...readReported(TEXT).files],
    [
      '/certs/lb/web.pem',
      '/certs/lb/ca.pem',
      '/certs/lb/crl.pem',
      '/certs/lb/client.pem',
      '/certs/lb/pool.pem',
    ],
  );
});
