// Checks if this host can hold and release VIPs: its interface, the settings of the kernel, another keepalived with the
// same virtual router. Reads only.

import { readdir, readFile, stat } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { messageOf } from '../../../base/errors.ts';
import { bad, type Finding, good } from '../../../host/finding.ts';
import { inNamespace } from '../../../host/namespace.ts';
import { runCommand } from '../../../host/run-command.ts';
import { readSysctl } from '../../../host/sysctl.ts';
import { hostAddresses } from '../../host-addresses.ts';
import type { VrrpSettings } from '../../vrrp.ts';
import { readAdvertKey } from '../auth/advert-key.ts';
import { AUTH_VERSION } from '../auth/authentication.ts';
import type { KeepalivedPaths } from '../paths.ts';
import { type KeepalivedProgram, keepalivedProgram, networkOf } from '../process/process.ts';

export interface PreflightSettings {
  readonly keepalived: string;
  readonly netns: string;
  readonly vrrp: VrrpSettings;
  /** See KeepalivedSettings. */
  readonly vrrpKey?: string;
}

/** `now` in milliseconds since the epoch. */
export async function preflight(
  settings: PreflightSettings,
  paths: Pick<KeepalivedPaths, 'config'>,
  now = Date.now(),
): Promise<readonly Finding[]> {
  const { keepalived, netns, vrrp } = settings;
  const found = await keepalivedProgram(keepalived).catch((error: unknown) => messageOf(error));
  const program = typeof found === 'string' ? bad('keepalived', found) : good('keepalived', found.version);
  const network = await networkFinding(netns);
  if (network.what === 'netns') return [program, network];
  return [
    program,
    ...(typeof found === 'string' ? [] : [await advertisements(found, settings.vrrpKey ?? '')]),
    network,
    await ownAddress(settings),
    ...(await sysctls(netns, vrrp)),
    ...(await forwarding(netns, vrrp)),
    await routerIds(settings, paths),
    clock(now),
  ];
}

/** Whether keepalived authenticates advertisements. */
async function advertisements(
  { version, canAuthenticate }: KeepalivedProgram,
  key: string,
): Promise<Finding> {
  const what = 'advertisements';
  if (key === '') return good(what, 'are not authenticated: the setting vrrpKey is empty');
  if (!canAuthenticate)
    return bad(
      what,
      `are not authenticated: keepalived ${version} cannot, ${AUTH_VERSION} or newer can; until then only rules of the network protect them`,
    );
  return readAdvertKey(key).then(
    ({ name }) => good(what, `can be authenticated, with key ${name}`),
    (error: unknown) => bad(what, messageOf(error)),
  );
}

/** The network namespace and its loopback interface, which HAProxy needs without VRRP as well. */
export async function networkFinding(netns: string): Promise<Finding> {
  if (netns !== '' && !(await exists(`/run/netns/${netns}`))) {
    const detail = `there is no network namespace "${netns}": make it (ip netns add ${netns}), or correct "netns"`;
    return bad('netns', detail);
  }
  const what = 'loopback interface';
  // A namespace that was only added has it down.
  const isUp =
    netns === ''
      ? networkInterfaces().lo !== undefined
      : (await output(netns, 'ip', ['-o', 'link', 'show', 'dev', 'lo', 'up'])) !== '';
  if (isUp) return good(what, 'is up');
  const command = `ip ${netns === '' ? '' : `-n ${netns} `}link set lo up`;
  const detail = `is down, so that HAProxy loses session affinity at each reload, and nothing reaches 127.0.0.1: set it up (${command})`;
  return bad(what, detail);
}

async function ownAddress({ netns, vrrp }: PreflightSettings): Promise<Finding> {
  const what = `interface ${vrrp.interface}`;
  try {
    const found = (await hostAddresses(netns)).find(({ address }) => address === vrrp.address);
    if (found?.interface === vrrp.interface) return good(what, `has ${vrrp.address}`);
    const place = found === undefined ? 'is not on this host' : `is on ${found.interface}`;
    const detail = `${vrrp.address} ${place}: correct "interface" or "address" of the setting vrrp`;
    return bad(what, detail);
  } catch (error) {
    return bad(what, messageOf(error));
  }
}

/** The parts of a sysctl's name; an interface name may contain dots: eth0.100 is a VLAN. */
type SysctlKey = readonly string[];

/** A sysctl that VIPs need. */
interface RequiredSysctl {
  readonly key: SysctlKey;
  /** A second sysctl; the kernel uses the higher value of the two. */
  readonly orKey?: SysctlKey;
  readonly values: readonly string[];
  /** What goes wrong with another value, as half a sentence. */
  readonly otherwise: string;
}

function requiredSysctls(vrrp: VrrpSettings): readonly RequiredSysctl[] {
  const { interface: device } = vrrp;
  const bind = 'HAProxy cannot listen on VIPs that the other host holds';
  const conf = (of: string, name: string): SysctlKey => ['net', 'ipv4', 'conf', of, name];
  const required: RequiredSysctl[] = [
    { key: ['net', 'ipv4', 'ip_nonlocal_bind'], values: ['1'], otherwise: bind },
    {
      key: conf(device, 'arp_announce'),
      orKey: conf('all', 'arp_announce'),
      values: ['2'],
      otherwise:
        'ARP requests may be sent in the name of a VIP, so that neighbours keep an address that has moved',
    },
    {
      key: conf(device, 'arp_ignore'),
      orKey: conf('all', 'arp_ignore'),
      values: ['1', '2'],
      otherwise: 'the host answers ARP for addresses of its other interfaces',
    },
  ];
  if (hasV6(vrrp))
    required.push(
      { key: ['net', 'ipv6', 'ip_nonlocal_bind'], values: ['1'], otherwise: bind },
      {
        key: ['net', 'ipv6', 'conf', device, 'disable_ipv6'],
        values: ['0'],
        otherwise: 'keepalived cannot have the IPv6 addresses of the setting vrrp there',
      },
    );
  return required;
}

function hasV6({ address, instances }: VrrpSettings): boolean {
  return [address, ...instances.flatMap(({ anchors }) => anchors)].some((one) => one.includes(':'));
}

async function sysctls(netns: string, vrrp: VrrpSettings): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const { key, orKey = key, values, otherwise } of requiredSysctls(vrrp)) {
    const [own, other] = [await readSysctl(netns, key), await readSysctl(netns, orKey)];
    const value = String(Math.max(Number(own), Number(other)));
    const name = sysctlName(key);
    const [first = ''] = values;
    const remedy = `set it to ${first} (sysctl -w ${name}=${first})`;
    findings.push(
      values.includes(value)
        ? good(name, `is ${value}`)
        : bad(name, `is ${value}, so that ${otherwise}: ${remedy}`),
    );
  }
  return findings;
}

/**
 * HAProxy opens its own connections and needs no forwarding, so either value is right. But a host that forwards IPv6
 * accepts no routes from router advertisements any more.
 */
async function forwarding(netns: string, vrrp: VrrpSettings): Promise<readonly Finding[]> {
  const { interface: device } = vrrp;
  const v4 = await readSysctl(netns, ['net', 'ipv4', 'ip_forward']);
  const findings = [good('net.ipv4.ip_forward', forwards(v4))];
  if (!hasV6(vrrp)) return findings;
  const conf = ['net', 'ipv6', 'conf', device];
  const [forwardingKey, acceptKey] = [
    [...conf, 'forwarding'],
    [...conf, 'accept_ra'],
  ];
  const [name, accept] = [sysctlName(forwardingKey), sysctlName(acceptKey)];
  const v6 = await readSysctl(netns, forwardingKey);
  const takesRoutes = v6 === '0' || (await readSysctl(netns, acceptKey)) !== '1';
  if (takesRoutes || (await output(netns, 'ip', ['-6', 'route', 'show', 'default'])) !== '')
    return [...findings, good(name, forwards(v6))];
  const detail = `is ${v6}, so that the host takes no route from router advertisements, and it has no default route: accept them (sysctl -w ${accept}=2), add a route, or do not forward (sysctl -w ${name}=0)`;
  return [...findings, bad(name, detail)];
}

function forwards(value: string): string {
  if (Number(value) === 0) return 'is 0: HAProxy needs no forwarding';
  return `is ${value}: HAProxy needs no forwarding; leave it on only if the host routes for other hosts, which can then reach members past HAProxy`;
}

/** The name for the command sysctl: if the first separator is a slash, a dot is part of a name. */
function sysctlName(key: SysctlKey): string {
  return key.join(key.some((part) => part.includes('.')) ? '/' : '.');
}

async function output(netns: string, program: string, words: readonly string[]): Promise<string> {
  const [outer, args] = inNamespace(netns, program, words);
  const { stdout } = await runCommand(outer, args, { timeout: 5_000 });
  return stdout.trim();
}

/** A second keepalived on this host with the same virtual router in the same network namespace would be a second master. */
async function routerIds(
  { netns, vrrp }: PreflightSettings,
  { config }: Pick<KeepalivedPaths, 'config'>,
): Promise<Finding> {
  const ids = vrrp.instances.map(({ virtualRouterId }) => virtualRouterId);
  const what = `virtual router ${ids.join(', ')}`;
  const network = await networkOf(netns === '' ? '/proc/self/ns/net' : `/run/netns/${netns}`);
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
    if (!/(^|\/)keepalived$/.test(words[0] ?? '') || words.includes(config)) continue;
    if ((await networkOf(`/proc/${pid}/ns/net`)) !== network) continue;
    const at = words.findIndex((word) => word === '-f' || word === '--use-file');
    const file = at < 0 ? '/etc/keepalived/keepalived.conf' : (words[at + 1] ?? '');
    const text = await readFile(file, 'utf8').catch(() => '');
    const clash = [...text.matchAll(/^\s*virtual_router_id\s+(\d+)/gm)].find(([, id]) =>
      ids.includes(Number(id)),
    );
    if (clash === undefined) continue;
    const detail = `keepalived with process id ${pid} also has virtual router ${clash[1]} (${file}): choose another virtualRouterId, or stop it`;
    return bad(what, detail);
  }
  return good(what, 'no other keepalived of this host has it');
}

/** VRRP works with a wrong time of day; certificates, leases and the log do not. */
function clock(now: number): Finding {
  const time = new Date(now).toISOString();
  if (now > Date.UTC(2025, 0, 1)) return good('clock', time);
  return bad('clock', `${time} is in the past: set the clock of this host (NTP)`);
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
