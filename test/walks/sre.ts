// Does what the documents of operations say: a check, a start, a Service that fails, the connection log, metrics, alerts, the
// page, a stop; sre.test.ts starts it. Alerts of every kind are in test/deploy/alerts.test.ts.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { eventually } from '../support/basics/eventually.ts';
import { blocksOf } from '../support/repository/markdown.ts';
import { Reader, textOf } from './reader.ts';

// The target of the connection log for hosts without journald or syslog.
const [, target = ''] = /^- `(file:[^`]+)`/m.exec(textOf('docs/connection-log.md')) ?? [];
const reader = new Reader(process.argv[2] ?? '', { HEADGATE_CONNECTION_LOG_TARGET: target });
// The others end a cluster, and compare folders.
const [check = '', start = ''] = reader.blocks('docs/operations.md', 4);
const [logQuestion = ''] = reader.blocks('docs/connection-log.md', 1);
const [symptoms = ''] = reader.blocks('docs/troubleshooting.md', 1);
const [annotation = ''] = blocksOf(textOf('docs/connection-log.md'), 'yaml');
const [sample = ''] = blocksOf(textOf('docs/connection-log.md'), 'json');
const [scrapeConfig = '', fromElsewhere = '', ruleFiles = ''] = blocksOf(textOf('docs/metrics.md'), 'yaml');

// payments/api, of the documents' examples, serves; default/web has a port that its EndpointSlice calls otherwise.
const example = textOf('examples/manifests/web.yaml');
const [, logged = ''] = /^ +(headgate\.io\/log: all)$/m.exec(annotation) ?? [];
const http = (yaml: string, more = '') =>
  yaml.replace('annotations:', `annotations:\n    headgate.io/mode: http${more}`);
const good = http(example, `\n    ${logged}`)
  .replace('service-name: web', 'service-name: api')
  .replace('name: web\n', 'name: api\n  namespace: payments\n')
  .replace('name: web-1\n  labels', 'name: api-1\n  namespace: payments\n  labels');
const failing = http(example).replaceAll('port: 8080', 'port: 8090').replaceAll('port: 8082', 'port: 8092');
const broken = failing.replace('- name: http\n    port: 8081', '- name: web\n    port: 8081');
assert.notEqual(broken, failing);
for (const place of ['/etc/headgate/manifests', '/var/log/headgate']) mkdirSync(place, { recursive: true });
writeFileSync('/etc/headgate/manifests/api.yaml', good);
reader.start('node_modules/.bin/node examples/member.ts 127.0.0.2 8081 web-1');
reader.start('node_modules/.bin/node examples/member.ts 127.0.0.3 8081 web-2');

// Check a host, and start.
assert.match(await reader.run(check), /^ok +\/etc\/headgate\/manifests: readable$/m);
const agent = reader.start(start);
const URL = 'http://127.0.0.1:9180';
const statusCommand = (path: string) => `curl -s -o /dev/null -w '%{http_code}' ${URL}${path}`;
await reader.until(statusCommand('/readyz'), /^200$/);
assert.equal(await reader.run(statusCommand('/healthz')), '200');

// A Service that fails: the log, then the four commands of the page.
writeFileSync('/etc/headgate/manifests/web.yaml', broken);
await agent.printed(/"namespace":"default","service":"web",.*"message":"A load balancer appeared"/);
const [list = '', why = '', status = '', checkAgain = ''] = symptoms.replaceAll(/ +#.*/g, '').split('\n');
const ofWeb = why.replace('NAMESPACE/NAME', 'default/web');
await reader.until(list, /^NAME .*\ndefault\/web .* {2}served in part .*\npayments\/api .* {2}served {2}/);
const [, message = ''] =
  /^\| `(has no member: the Service has [^`]+)` \|/m.exec(textOf('docs/troubleshooting.md')) ?? [];
assert.match(await reader.run(ofWeb, 1), new RegExp(message.replaceAll(' ...', ' .+')));
await reader.until(status, /default\/web/);
const [, flags = ''] = /^headgate check (.+)$/m.exec(check) ?? [];
await reader.run(checkAgain.replace('headgate check', `$& ${flags}`));

// The connection log: the line of the page, and the answer to its question.
await reader.until('curl -s http://127.0.0.1:8080/v1/orders', /^Hello from web-[12]$/m);
const file = target.replace('file:', '');
const lines = () => readFileSync(file, 'utf8').trim().split('\n');
const [line = ''] = await eventually(
  async () => lines(),
  ([first = '']) => first !== '',
);
assert.deepEqual(Object.keys(JSON.parse(line)), Object.keys(JSON.parse(sample)));
// journalctl needs systemd: test/real/connection-log-journal.test.ts. Here jq reads the file.
const [, jq = ''] = /\|\s+(jq .*)$/s.exec(logQuestion) ?? [];
assert.match(await reader.run(`cat ${file} | ${jq}`), /^\d{4}-[\d-]+T[\d:]+Z\t127\.0\.0\.1\tweb-[12]\t--$/m);
await reader.run(`mv ${file} ${file}.1`);
await reader.until(`curl -s -o /dev/null http://127.0.0.1:8080/; cat ${file} 2>/dev/null`, /"service":"api"/);

// Metrics, and an alert in a Prometheus with the configuration of the page, which only asks more often.
await reader.run(`curl -s ${URL}/metrics | promtool check metrics`);
mkdirSync('/etc/prometheus', { recursive: true });
const often = 'global: { scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }';
writeFileSync('/etc/prometheus/prometheus.yml', `${often}\n${ruleFiles}\n${scrapeConfig}\n`);
// The proxy itself: test/real/metrics-proxy.test.ts.
writeFileSync(
  '/etc/prometheus/elsewhere.yml',
  scrapeConfig.replace(/ {4}static_configs:.*$/s, fromElsewhere),
);
await reader.run('promtool check config --syntax-only /etc/prometheus/elsewhere.yml');
await reader.run('cp deploy/prometheus/headgate.rules.yaml /etc/prometheus/');
await reader.run('promtool check config /etc/prometheus/prometheus.yml');
reader.start(
  'prometheus --config.file=/etc/prometheus/prometheus.yml --storage.tsdb.path=/var/lib/prometheus --web.listen-address=127.0.0.1:9090',
);
const alert = await reader.until(
  `curl -s -o /dev/null http://127.0.0.1:8090/ || :; promtool query instant http://127.0.0.1:9090 'ALERTS{alertname="HeadgatePoolDown"}'`,
  /HeadgatePoolDown/,
);
const [, namespace = ''] = /namespace="([^"]+)"/.exec(alert) ?? [];
const [, service = ''] = /service="([^"]+)"/.exec(alert) ?? [];
assert.match(textOf('docs/operations.md'), /^### `HeadgatePoolDown`\n[^#]*`headgate why NAMESPACE\/NAME`/m);
assert.equal(`${namespace}/${service}`, 'default/web');

// The page, and the remedy that `why` has named.
assert.match(await reader.run(`curl -s ${URL}/`), /<html/);
writeFileSync('/etc/headgate/manifests/web.yaml', failing);
await reader.until(ofWeb, /^Service default\/web: served, ONLINE\n/);
await reader.until('curl -s http://127.0.0.1:8090/', /^Hello from web-[12]$/m);

// Stop: HAProxy continues, until the command of the last line.
assert.equal(await agent.interrupt(), 0);
assert.match(await reader.run('curl -s http://127.0.0.1:8080/'), /^Hello from web-[12]$/m);
const [, toEndIt = ''] =
  /"toEndIt":"(kill [\d ]+)","message":"HAProxy continues to serve"\}\n$/.exec(agent.output()) ?? [];
await reader.run(toEndIt);
await reader.until('curl -s http://127.0.0.1:8080/ || echo gone', /^gone\n$/);
console.log('The walk is complete');
process.exit(0);
