import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { amphoraFindings } from '../../../agent/cli/check-amphora.ts';
import { readSettings } from '../../../agent/settings/settings.ts';

test('A file that Octavia has not brought, or that cannot be used, is the only finding', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'check-amphora-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'amphora-agent.conf');
  const findings = async () =>
    amphoraFindings({ ...readSettings({ argv: [], env: {}, readFile: () => '' }), amphora: path }, false);
  const [missing, ...none] = await findings();
  t.deepEqual(none, []);
  t.false(missing?.ok);
  t.regex(missing?.detail ?? '', /no such file.*Octavia brings it at the first boot$/);
  await writeFile(path, '[amphora_agent]\namphora_id = none\n');
  const [wrong] = await findings();
  t.regex(wrong?.detail ?? '', /\[amphora_agent\] amphora_id: "none" is not a UUID/);
});

test('What the controller has brought and what its texts need is named, each with a remedy if it is missing', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'check-amphora-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'amphora-agent.conf');
  const none = join(folder, 'none');
  await writeFile(
    path,
    `[haproxy_amphora]
bind_host = 127.0.0.1
bind_port = 0
haproxy_cmd = ${none}
[health_manager]
heartbeat_key = secret-of-the-heartbeat
[amphora_agent]
amphora_id = 11111111-2222-4333-8444-555555555555
agent_server_cert = ${none}
[controller_worker]
loadbalancer_topology = ACTIVE_STANDBY
`,
  );
  const settings = {
    ...readSettings({ argv: [], env: {}, readFile: () => '' }),
    amphora: path,
    keepalived: none,
  };
  const findings = await amphoraFindings(settings, false);
  const of = (what: string) => findings.find((finding) => finding.what === what);
  t.true(of(path)?.ok);
  t.regex(of('HAProxy')?.detail ?? '', /cannot be started/);
  t.is(
    of('certificate of the API')?.detail,
    `Cannot read "${none}": ENOENT: no such file or directory, open '${none}'`,
  );
  t.regex(
    of('controllers')?.detail ?? '',
    /replaces this amphora after a minute: set "controller_ip_port_list"/,
  );
  t.true(of('127.0.0.1 port 0')?.ok);
  t.regex(of('limits')?.detail ?? '', /open files/);
  t.regex(of(none)?.detail ?? '', /moves the VIP; install it$/);
  t.false(JSON.stringify(findings).includes('secret-of-the-heartbeat'));
});
