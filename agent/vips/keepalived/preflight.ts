// Whether this host can hold VIPs and give them up: its interface, what the kernel must be told, who else speaks VRRP
// here. Reads only.

import { readdir, readFile, readlink, stat } from 'node:fs/promises';
import { messageOf } from '../../base/errors.ts';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';
import { hostAddresses } from '../host-addresses.ts';
import type { VrrpSettings } from '../vrrp.ts';
import type { KeepalivedPaths } from './paths.ts';
import { keepalivedProgram } from './process.ts';

export interface Finding {
  readonly what: string;
  readonly ok: boolean;
  /** What was found and, where it is bad, what to do. */
  readonly detail: string;
}

export interface PreflightSettings {
  readonly keepalived: string;
  readonly netns: string;
  readonly vrrp: VrrpSettings;
}

/** `now` in milliseconds since the epoch. */
export async function preflight(
  settings: PreflightSettings,
  paths: Pick<KeepalivedPaths, 'config'>,
  now = Date.now(),
): Promise<readonly Finding[]> {
  const { keepalived, netns, vrrp } = settings;
  const program = await keepalivedProgram(keepalived).then(
    ({ version }) => ({ what: 'keepalived', ok: true, detail: version }),
    (error) => ({ what: 'keepalived', ok: false, detail: messageOf(error) }),
  );
  if (netns !== '' && !(await exists(`/run/netns/${netns}`))) {
    const detail = `there is no network namespace "${netns}": make it (ip netns add ${netns}), or correct "netns"`;
    return [program, { what: 'netns', ok: false, detail }];
  }
  return [
    program,
    await ownAddress(settings),
    ...(await sysctls(netns, vrrp)),
    ...(await forwarding(netns, vrrp)),
    await routerIds(settings, paths),
    clock(now),
  ];
}

async function ownAddress({ netns, vrrp }: PreflightSettings): Promise<Finding> {
  const what = `interface ${vrrp.interface}`;
  try {
    const found = (await hostAddresses(netns)).find(({ address }) => address === vrrp.address);
    if (found?.interface === vrrp.interface) return { what, ok: true, detail: `has ${vrrp.address}` };
    const place = found === undefined ? 'is not on this host' : `is on ${found.interface}`;
    const detail = `${vrrp.address} ${place}: correct "interface" or "address" of the setting vrrp`;
    return { what, ok: false, detail };
  } catch (error) {
    return { what, ok: false, detail: messageOf(error) };
  }
}

/** Its parts, of which the name of an interface may have dots itself: eth0.100 is a VLAN. */
type SysctlKey = readonly string[];

/** What a sysctl must be, and what goes wrong otherwise. */
interface Wanted {
  readonly key: SysctlKey;
  /** Another one that counts as well: the higher of the two holds. */
  readonly orKey?: SysctlKey;
  readonly values: readonly string[];
  readonly why: string;
}

function wantedSysctls(vrrp: VrrpSettings): readonly Wanted[] {
  const { interface: device } = vrrp;
  const bind = 'HAProxy cannot listen on VIPs that the other host holds';
  const conf = (of: string, name: string): SysctlKey => ['net', 'ipv4', 'conf', of, name];
  const wanted: Wanted[] = [
    { key: ['net', 'ipv4', 'ip_nonlocal_bind'], values: ['1'], why: bind },
    {
      key: conf(device, 'arp_announce'),
      orKey: conf('all', 'arp_announce'),
      values: ['2'],
      why: 'ARP requests may be sent in the name of a VIP, so that neighbours keep an address that has moved',
    },
    {
      key: conf(device, 'arp_ignore'),
      orKey: conf('all', 'arp_ignore'),
      values: ['1', '2'],
      why: 'the host answers ARP for addresses of its other interfaces',
    },
  ];
  if (hasV6(vrrp)) wanted.push({ key: ['net', 'ipv6', 'ip_nonlocal_bind'], values: ['1'], why: bind });
  return wanted;
}

function hasV6({ address, instances }: VrrpSettings): boolean {
  return [address, ...instances.flatMap(({ anchors }) => anchors)].some((one) => one.includes(':'));
}

async function sysctls(netns: string, vrrp: VrrpSettings): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const { key, orKey = key, values, why } of wantedSysctls(vrrp)) {
    const [own, other] = [await sysctl(netns, key), await sysctl(netns, orKey)];
    const value = String(Math.max(Number(own), Number(other)));
    const name = sysctlName(key);
    const ok = values.includes(value);
    const [first = ''] = values;
    const detail = ok
      ? `is ${value}`
      : `is ${value}, so that ${why}: set it to ${first} (sysctl -w ${name}=${first})`;
    findings.push({ what: name, ok, detail });
  }
  return findings;
}

/**
 * HAProxy makes connections of its own, so either value will do; which one is right depends on what else the host is.
 * What IPv6 takes away from a host that forwards is its routes: it takes none from router advertisements any more.
 */
async function forwarding(netns: string, vrrp: VrrpSettings): Promise<readonly Finding[]> {
  const { interface: device } = vrrp;
  const v4 = await sysctl(netns, ['net', 'ipv4', 'ip_forward']);
  const findings = [{ what: 'net.ipv4.ip_forward', ok: true, detail: forwards(v4) }];
  if (!hasV6(vrrp)) return findings;
  const conf = ['net', 'ipv6', 'conf', device];
  const [forwardingKey, acceptKey] = [
    [...conf, 'forwarding'],
    [...conf, 'accept_ra'],
  ];
  const [name, accept] = [sysctlName(forwardingKey), sysctlName(acceptKey)];
  const v6 = await sysctl(netns, forwardingKey);
  const takesRoutes = v6 === '0' || (await sysctl(netns, acceptKey)) !== '1';
  const ok = takesRoutes || (await output(netns, 'ip', ['-6', 'route', 'show', 'default'])) !== '';
  const detail = ok
    ? forwards(v6)
    : `is ${v6}, so that the host takes no route from router advertisements, and it has no default route: have it take them all the same (sysctl -w ${accept}=2), give it a route, or do not forward (sysctl -w ${name}=0)`;
  return [...findings, { what: name, ok, detail }];
}

function forwards(value: string): string {
  if (Number(value) === 0) return 'is 0: HAProxy needs no forwarding';
  return `is ${value}: HAProxy needs no forwarding; leave it on only where the host routes for others, who can then reach members past HAProxy`;
}

function sysctl(netns: string, key: SysctlKey): Promise<string> {
  return output(netns, 'cat', [`/proc/sys/${key.join('/')}`]);
}

/** As the command sysctl takes it: where the first separator is a slash a dot is no separator. */
function sysctlName(key: SysctlKey): string {
  return key.join(key.some((part) => part.includes('.')) ? '/' : '.');
}

async function output(netns: string, program: string, words: readonly string[]): Promise<string> {
  const [outer, args] = inNamespace(netns, program, words);
  const { stdout } = await runCommand(outer, args, { timeout: 5_000 });
  return stdout.trim();
}

/** Another keepalived of this host with the same virtual router on the same network would be a second master. */
async function routerIds(
  { netns, vrrp }: PreflightSettings,
  { config }: Pick<KeepalivedPaths, 'config'>,
): Promise<Finding> {
  const ids = vrrp.instances.map(({ virtualRouterId }) => virtualRouterId);
  const what = `virtual router ${ids.join(', ')}`;
  const ours = await networkOf(netns === '' ? '/proc/self/ns/net' : `/run/netns/${netns}`);
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
    if (!/(^|\/)keepalived$/.test(words[0] ?? '') || words.includes(config)) continue;
    if ((await networkOf(`/proc/${pid}/ns/net`)) !== ours) continue;
    const at = words.findIndex((word) => word === '-f' || word === '--use-file');
    const file = at < 0 ? '/etc/keepalived/keepalived.conf' : (words[at + 1] ?? '');
    const text = await readFile(file, 'utf8').catch(() => '');
    const clash = [...text.matchAll(/^\s*virtual_router_id\s+(\d+)/gm)].find(([, id]) =>
      ids.includes(Number(id)),
    );
    if (clash === undefined) continue;
    const detail = `keepalived with process id ${pid} has virtual router ${clash[1]}, too (${file}): choose another virtualRouterId, or stop it`;
    return { what, ok: false, detail };
  }
  return { what, ok: true, detail: 'no other keepalived of this host has it' };
}

/** What tells one network namespace from another. */
async function networkOf(path: string): Promise<string> {
  const link = await readlink(path).catch(() => undefined);
  if (link !== undefined) return /\d+/.exec(link)?.[0] ?? '';
  return stat(path).then(
    ({ ino }) => String(ino),
    () => '',
  );
}

/** VRRP itself does not mind the time of day; certificates, leases and the log do. */
function clock(now: number): Finding {
  const ok = now > Date.UTC(2025, 0, 1);
  const detail = new Date(now).toISOString();
  return {
    what: 'clock',
    ok,
    detail: ok ? detail : `${detail} cannot be: have the host set its clock (NTP)`,
  };
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
