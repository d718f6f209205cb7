// The back network as passing needs it: which interface has this host's back address, and what the kernel would do to packets
// that come in there. Reads only.

import { parseCidrOrAddress } from '../../base/ip.ts';
import { listOf, number, object, string } from '../../base/validate.ts';
import { bad, type Finding, good } from '../../host/finding.ts';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';
import { readSysctl } from '../../host/sysctl.ts';
import type { HostGroup } from '../../model/host-group.ts';
import type { BgpPeer } from '../bgp.ts';
import { anchorFindings } from './anchor-findings.ts';

export interface BackLink {
  /** The interface; '' if this host lacks the address. */
  readonly device: string;
  readonly isUp: boolean;
  readonly isLoose: boolean;
  readonly findings: readonly Finding[];
}

const TIMEOUT_MS = 5_000;
const links = listOf(
  object({
    ifname: string(),
    mtu: number(),
    operstate: string().nullish(),
    addr_info: listOf(object({ local: string().nullish(), prefixlen: number().nullish() })),
  }),
);
const ways = listOf(object({ dev: string().nullish() }));

/** `peers`: the routers, which are in front. Errors: COMMAND_FAILED, JSON. */
export async function readBackLink(
  netns: string,
  group: HostGroup,
  peers: readonly Pick<BgpPeer, 'address' | 'interface' | 'families'>[],
): Promise<BackLink> {
  const { back } = group.self;
  const all = links.parse(JSON.parse(await ip(netns, 'address', 'show')));
  const found = back.map((address) =>
    all.find(({ addr_info }) => addr_info.some(({ local }) => local === address)),
  );
  const [link] = found;
  const ofTcp = (key: string): Promise<string> =>
    readSysctl(netns, ['net', 'netfilter', `nf_conntrack_tcp_${key}`]).catch(() => '');
  const isLoose = (await ofTcp('loose')) !== '0';
  const missing = back.filter((_, at) => found[at] === undefined || found[at] !== link);
  if (link === undefined || missing.length > 0) {
    const why =
      link === undefined
        ? `no interface of this host has the back address ${missing.join(', ')} of the setting hosts: add it`
        : `${missing.join(', ')} of the setting hosts is not on the interface ${link.ifname}, as the other back address is: add it there`;
    return { device: '', isUp: false, isLoose, findings: [bad('back network', why)] };
  }
  const { ifname, mtu, operstate } = link;
  const isUp = operstate !== 'DOWN' && operstate !== 'LOWERLAYERDOWN';
  const findings: Finding[] = [
    isUp ? good('back network', ifname) : bad('back network', `the interface ${ifname} is down: set it up`),
  ];
  const front = await frontOf(netns, peers);
  for (const each of all)
    if (front.has(each.ifname) && each.mtu > mtu)
      findings.push(
        bad(
          'MTU',
          `that of ${ifname} is ${mtu}, less than ${each.mtu} of ${each.ifname}: connections that are passed on would stall: set it to ${each.mtu} or more`,
        ),
      );
  findings.push(...(await filterFindings(netns, ifname)));
  if (!isLoose)
    findings.push(
      bad(
        'nf_conntrack_tcp_loose',
        'is 0, so that connections of the kernel path do not continue on another host: set it to 1 (sysctl -w net.netfilter.nf_conntrack_tcp_loose=1)',
      ),
    );
  const isLiberal = (await ofTcp('be_liberal')) !== '0';
  const networks = new Map(all.map((each) => [each.ifname, networksOf(each.addr_info)]));
  findings.push(...anchorFindings(group, peers, { networks, isLiberal }));
  return { device: ifname, isUp, isLoose, findings };
}

/** Without single addresses. */
function networksOf(
  addresses: readonly { readonly local?: string | undefined; readonly prefixlen?: number | undefined }[],
): readonly string[] {
  return addresses.flatMap(({ local, prefixlen }) => {
    const cidr = parseCidrOrAddress(`${local}/${prefixlen}`)?.cidr;
    return cidr === undefined || /\/(?:32|128)$/.test(cidr) ? [] : [cidr];
  });
}

/** The kernel takes the higher of two values. */
async function filterFindings(netns: string, device: string): Promise<readonly Finding[]> {
  const values = await Promise.all(
    ['all', device].map((each) =>
      readSysctl(netns, ['net', 'ipv4', 'conf', each, 'rp_filter']).catch(() => ''),
    ),
  );
  const value = Math.max(...values.map(Number));
  if (value !== 1) return [good('rp_filter', `is ${value} on ${device}`)];
  const where = values[1] === '1' ? `net.ipv4.conf.${device}` : 'net.ipv4.conf.all';
  return [
    bad(
      'rp_filter',
      `is 1 on ${device}, so that the kernel drops packets of connections that other hosts pass on: set it to 2 (sysctl -w net.ipv4.conf.${device}.rp_filter=2; ${where}.rp_filter is 1)`,
    ),
  ];
}

async function frontOf(
  netns: string,
  peers: readonly { readonly address: string; readonly interface: string }[],
): Promise<ReadonlySet<string>> {
  const devices = await Promise.all(
    peers.map(async ({ address, interface: own }) => {
      if (own !== '') return own;
      const text = await ip(netns, 'route', 'get', address).catch(() => '[]');
      return ways.parse(JSON.parse(text))[0]?.dev ?? '';
    }),
  );
  return new Set(devices);
}

async function ip(netns: string, ...words: readonly string[]): Promise<string> {
  const [program, args] = inNamespace(netns, 'ip', ['-j', ...words]);
  const { exitCode, stdout, stderr } = await runCommand(program, args, { timeout: TIMEOUT_MS });
  if (exitCode !== 0) throw new Error(`ip ${words.join(' ')}: ${stderr.trim()}`);
  return stdout.trim() === '' ? '[]' : stdout;
}
