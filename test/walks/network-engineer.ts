// Does what docs/bgp.md says: a host with the settings of the page beside a router with the text of the page, each in a network
// namespace; the commands of the page, maintenance, and a router that refuses. network-engineer.test.ts starts it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { blocksOf } from '../support/repository/markdown.ts';
import { Reader, textOf } from './reader.ts';

const PAGE = 'docs/bgp.md';
const VIP = '198.51.100.1';
const reader = new Reader(process.argv[2] ?? '');
const [commands = ''] = reader.blocks(PAGE, 1);
const [settings = ''] = blocksOf(textOf(PAGE), 'yaml');
const [, router = ''] = /\nBIRD, with two hosts:\n\n```\n([\s\S]*?)\n```\n/.exec(textOf(PAGE)) ?? [];
const [check = '', status = '', why = '', lock = '', unlock = ''] = commands
  .trim()
  .split('\n')
  .map((line) => line.replace(/ +#.*/, ''));
assert.equal(why, `headgate why ${VIP}`);

// The network of the page: this host has 192.0.2.11, the router 192.0.2.1.
const there = spawn('unshare', ['--net', 'sh', '-c', 'echo; exec sleep 600'], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
await once(there.stdout, 'data');
const at = `nsenter -t ${there.pid} -n`;
await reader.run(`ip link add eth0 type veth peer name eth1
ip link set eth1 netns ${there.pid}
ip address add 192.0.2.11/24 dev eth0
ip link set eth0 up
sysctl -qw net.ipv4.ip_nonlocal_bind=1 net.ipv6.ip_nonlocal_bind=1
${at} ip link set lo up
${at} ip address add 192.0.2.1/24 dev eth1
${at} ip link set eth1 up`);
mkdirSync('/etc/bird', { recursive: true });
writeFileSync('/etc/bird/router.conf', `${router}\n`);
reader.start(`${at} bird -f -c /etc/bird/router.conf -s /run/router.sock`);

// The host: the settings of the page, a Service and its members.
mkdirSync('/etc/headgate/manifests', { recursive: true });
writeFileSync('/etc/headgate/headgate.yaml', settings);
const web = textOf('examples/manifests/web.yaml').replaceAll('127.0.0.1', VIP);
assert.match(web, /198\.51\.100\.1/);
writeFileSync('/etc/headgate/manifests/web.yaml', web);
reader.start('node_modules/.bin/node examples/member.ts 127.0.0.2 8081 web-1');
reader.start('node_modules/.bin/node examples/member.ts 127.0.0.3 8081 web-2');
const manifests = '--manifests /etc/headgate/manifests';
assert.match(await reader.run(`${check} ${manifests}`), /^ok +BIRD: \d/m);
const agent = reader.start(
  'headgate run --config /etc/headgate/headgate.yaml --manifests /etc/headgate/manifests',
);

// The router leads clients here, and the commands say so.
await reader.until(`${at} curl -s -m 2 http://${VIP}:8080/`, /^Hello from web-[12]$/m);
await reader.until(status, /router tor-a, 192\.0\.2\.1, AS 65000: established since .*, 1 route, BFD up/);
await reader.until(why, /is announced to 1 of 1 router since \d{4}-/);
assert.match(await reader.run(lock), /its routes are the last choice of the routers/);
await reader.until(why, /as the last choice: this host is lowered: maintenance/);
await reader.until(`${at} curl -s -m 2 http://${VIP}:8080/`, /^Hello from web-[12]$/m);
assert.match(await reader.run(unlock), /This host is not locked/);

// A router with another ASN for this host: the reason in words.
writeFileSync('/etc/bird/router.conf', `${router.replaceAll('as 65001', 'as 65009')}\n`);
await reader.run('birdc -s /run/router.sock configure');
await reader.until(status, /it expects another ASN of this host than 65001: correct "asn"/);
await reader.until(why, /is not announced: tor-a: /);
writeFileSync('/etc/bird/router.conf', `${router}\n`);
await reader.run('birdc -s /run/router.sock configure');
await reader.until(why, /is announced to 1 of 1 router/);
assert.equal(await agent.interrupt(), 0);
console.log('\nThe walk is complete');
process.exit();
