// The examples for the first boot of a host, and of a provisioner.

import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { parseYamlDocuments } from '../../agent/base/yaml.ts';
import { readSettings } from '../../agent/settings/settings.ts';
import { filledIn } from '../support/values/user-data.ts';

interface WrittenFile {
  readonly path: string;
  readonly content: string;
  readonly permissions?: string;
}

for (const name of ['one-host', 'pair-a', 'pair-b']) {
  test(`The user data of ${name} has settings that the agent accepts, and credentials for root alone`, (t) => {
    const text = filledIn(readFileSync(`examples/cloud-init/${name}.yaml`, 'utf8'));
    t.true(text.startsWith('#cloud-config\n'));
    t.notRegex(text, /[A-Z]{2,}_[A-Z_]+/);
    const [document] = parseYamlDocuments(text).documents;
    const data = document?.value as { readonly write_files: readonly WrittenFile[] } | undefined;
    const files = data?.write_files ?? [];
    const settings = files.find(({ path }) => path === '/etc/headgate/headgate.yaml')?.content ?? '';
    const given = { argv: ['--config', '/etc/headgate/headgate.yaml'], env: {}, cwd: '/', uid: 0 };
    t.notThrows(() => readSettings({ ...given, readFile: () => settings }));
    const secrets = files.filter(({ path }) => path.startsWith('/etc/credstore/'));
    t.true(secrets.length > 0);
    for (const { permissions } of secrets) t.is(permissions, '0600');
  });
}

test('The hosts of the pair name each other, and share anchor and virtual router', (t) => {
  const [a = '', b = ''] = ['a', 'b'].map((host) =>
    readFileSync(`examples/cloud-init/pair-${host}.yaml`, 'utf8'),
  );
  const swapped = b
    .replaceAll('HOST_A', 'HOST_X')
    .replaceAll('HOST_B', 'HOST_A')
    .replaceAll('HOST_X', 'HOST_B');
  const settings = (text: string) => text.slice(text.indexOf('write_files'));
  t.is(settings(swapped), settings(a));
});

/** A program `openstack` that keeps the address pairs of ports in files. */
const OPENSTACK = `#!/usr/bin/python3
import json, os, sys
words = sys.argv[3:]
file = os.path.join(os.environ["PAIRS"], words[-1])
pairs = json.load(open(file)) if os.path.exists(file) else []
if words[1] == "show":
    print(json.dumps({"allowed_address_pairs": pairs}))
    sys.exit(0)
address = words[3].split(",")[0].removeprefix("ip-address=")
if words[1] == "set":
    assert all(pair["ip_address"] != address for pair in pairs), "twice"
    pairs.append({"ip_address": address, "mac_address": "fa:16:3e:00:00:01"})
else:
    assert words[3].endswith("mac-address=fa:16:3e:00:00:01")
    pairs = [pair for pair in pairs if pair["ip_address"] != address]
json.dump(pairs, open(file, "w"))
`;

test('The provisioner for OpenStack gives an address to the ports of both hosts while a Service has it', (t) => {
  const directory = folder(t);
  writeFileSync(join(directory, 'openstack'), OPENSTACK);
  chmodSync(join(directory, 'openstack'), 0o755);
  const settings = join(directory, 'settings.json');
  writeFileSync(settings, JSON.stringify({ cloud: 'headgate', ports: ['port-a', 'port-b'] }));
  const call = (action: string, others: readonly string[] = []) =>
    execFileSync('examples/provisioner/openstack-allowed-address-pairs', [settings], {
      input: JSON.stringify({ action, address: '192.0.2.10', service: 'default/web', ports: [], others }),
      env: { PATH: `${directory}:/usr/bin:/bin`, PAIRS: directory, LANG: 'C' },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
  const addresses = () =>
    ['port-a', 'port-b'].map((port) =>
      JSON.parse(readFileSync(join(directory, port), 'utf8')).map(
        (pair: { ip_address: string }) => pair.ip_address,
      ),
    );
  call('assign');
  call('assign');
  t.deepEqual(addresses(), [['192.0.2.10'], ['192.0.2.10']]);
  call('release', ['default/other']);
  t.deepEqual(addresses(), [['192.0.2.10'], ['192.0.2.10']]);
  call('release');
  call('release');
  t.deepEqual(addresses(), [[], []]);
});

/** A program `openstack` that keeps the network's ports and one floating IP in a file. */
const NEUTRON = `#!/usr/bin/python3
import json, os, sys
words = sys.argv[3:]
file = os.environ["NEUTRON"]
state = json.load(open(file)) if os.path.exists(file) else {"ports": [], "fip": None}
def after(flag): return words[words.index(flag) + 1]
if words[:2] == ["port", "list"]:
    assert after("--network") == "lb-net"
    address = after("--fixed-ip").removeprefix("ip-address=")
    print(json.dumps([port for port in state["ports"] if port["address"] == address]))
elif words[:2] == ["port", "create"]:
    port = {"ID": "vip-port", "Name": words[-3], "address": after("--fixed-ip").removeprefix("ip-address=")}
    state["ports"].append(port)
    print(json.dumps({"id": port["ID"]}))
elif words[:2] == ["port", "delete"]:
    state["ports"] = [port for port in state["ports"] if port["ID"] != words[2]]
elif words[:3] == ["floating", "ip", "set"]:
    assert after("--port") == "vip-port"
    state["fip"] = [words[-1], after("--fixed-ip-address")]
elif words[:3] == ["floating", "ip", "list"]:
    address = after("--fixed-ip-address")
    there = [state["fip"]] if state["fip"] and state["fip"][1] == address else []
    print(json.dumps([{"Floating IP Address": each[0], "Description": ""} for each in there]))
elif words[:3] == ["floating", "ip", "unset"]:
    state["fip"] = None
json.dump(state, open(file, "w"))
`;

test('The provisioner for OpenStack associates the floating IP of a VIP, and gives back what it has made', (t) => {
  const directory = folder(t);
  writeFileSync(join(directory, 'openstack'), NEUTRON, { mode: 0o755 });
  const [settings, state] = [join(directory, 'settings.json'), join(directory, 'neutron')];
  writeFileSync(settings, JSON.stringify({ cloud: 'headgate', ports: [], network: 'lb-net' }));
  const call = (action: string, others: readonly string[] = []) => {
    execFileSync('examples/provisioner/openstack-allowed-address-pairs', [settings], {
      input: JSON.stringify({ action, address: '10.0.0.5', public: '203.0.113.5', others }),
      env: { PATH: `${directory}:/usr/bin:/bin`, NEUTRON: state, LANG: 'C' },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    return JSON.parse(readFileSync(state, 'utf8'));
  };
  const given = {
    ports: [{ ID: 'vip-port', Name: 'headgate-10.0.0.5', address: '10.0.0.5' }],
    fip: ['203.0.113.5', '10.0.0.5'],
  };
  t.deepEqual(call('assign'), given);
  t.deepEqual(call('assign'), given);
  t.deepEqual(call('release', ['default/other']), given);
  t.deepEqual(call('release'), { ports: [], fip: null });
  t.deepEqual(call('release'), { ports: [], fip: null });
});

test('The provisioner refuses what is no address', (t) => {
  const settings = join(folder(t), 'settings.json');
  writeFileSync(settings, JSON.stringify({ cloud: 'headgate', ports: [] }));
  const { status, stderr } = spawnSync('examples/provisioner/openstack-allowed-address-pairs', [settings], {
    input: JSON.stringify({ action: 'assign', address: '--os-cloud', others: [] }),
    encoding: 'utf8',
  });
  t.is(status, 1);
  t.regex(stderr, /'--os-cloud' does not appear to be an IPv4 or IPv6 address/);
});

function folder(t: ExecutionContext): string {
  const path = mkdtempSync(join(tmpdir(), 'hg-first-boot-'));
  t.teardown(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
