// Checks if this host can forward UDP and SCTP: programs, parameters of the kernel, other tools that filter. Reads only.

import { bad, type Finding, good } from '../host/finding.ts';
import { inNamespace } from '../host/namespace.ts';
import { runCommand } from '../host/run-command.ts';
import type { Family } from '../model/load-balancer.ts';
import type { SourceGroups } from '../model/source-groups.ts';
import { directFindings } from './checks/direct-preflight.ts';
import { conntrackUsage, whyFull } from './flows/conntrack-usage.ts';
import { flowFindings, strictFilters } from './flows/flow-preflight.ts';
import { whyNotForwarding } from './forwarding.ts';
import { markFindings } from './mark-preflight.ts';
import { isInGatewayMode, type KernelListener } from './rules/kernel-listener.ts';

const TIMEOUT_MS = 5_000;
/** Names of tables with chains, and the tool that filters forwarded packets with them. */
const FILTERS: readonly (readonly [RegExp, string])[] = [
  [/^table inet firewalld \{$/m, 'firewalld'],
  [/^table (?:ip|inet) (?:docker-bridges|filter) \{$/m, 'Docker or iptables'],
  [/^table ip kube-proxy \{$/m, 'kube-proxy'],
];

/** The beginning of the names of the agent's tables (paths.ts). */
const OWN_TABLES = 'headgate';

/** One line for each interface: `/proc/sys/net/ipv4/conf/eth0/rp_filter:1`. */
const READ_FILTERS = ['-rs', '.', '--include', 'rp_filter', '/proc/sys/net/ipv4/conf'];

/** `listeners`: those that Services have for it; without any, what is missing is no fault. */
export async function kernelPreflight(
  { nft, netns }: { readonly nft: string; readonly netns: string },
  listeners: readonly KernelListener[],
  sources: SourceGroups,
): Promise<readonly Finding[]> {
  const families: ReadonlySet<Family> = new Set(listeners.map(({ family }) => family));
  const isNeeded = families.size > 0;
  const said = async (program: string, ...words: readonly string[]): Promise<string> => {
    const [outer, args] = inNamespace(netns, program, words);
    return runCommand(outer, args, { timeout: TIMEOUT_MS }).then(
      ({ exitCode, stdout }) => (exitCode === 0 ? stdout : ''),
      () => '',
    );
  };
  const judged = (what: string, found: string, why: string): Finding => {
    if (found !== '') return good(what, found);
    return isNeeded ? bad(what, why) : good(what, `only UDP, SCTP and the kernel path need it: ${why}`);
  };
  const version = /v[\d.]+/.exec(await said(nft, '--version'))?.[0] ?? '';
  const conntrack = /v[\d.]+/.exec(await said('conntrack', '--version'))?.[0] ?? '';
  const perl = /v[\d.]+/.exec(await said('perl', '--version'))?.[0] ?? '';
  const whyNot = await whyNotForwarding(netns, isNeeded ? families : new Set(['v4']));
  const usage = await conntrackUsage(netns);
  const full = whyFull(usage);
  // To list the tables alone, nft 1.0.6 reads all their elements.
  const chains = await said(nft, '-y', 'list', 'chains');
  const filters = FILTERS.filter(([table]) => table.test(chains)).map(([, tool]) => tool);
  return [
    judged('nft', version, 'the program is missing: install nftables, or set "nft"'),
    judged(
      'conntrack',
      conntrack,
      'the program is missing, so that members that do not answer are not found: install it',
    ),
    judged(
      'perl',
      perl,
      'the program is missing, so that clients of UDP stay with members that are gone: install it',
    ),
    judged('forwarding', whyNot === '' ? 'on' : '', whyNot),
    ...(usage === undefined
      ? []
      : [
          full === ''
            ? good('table of connections', `${usage.entries} of ${usage.limit} entries`)
            : bad('table of connections', full),
        ]),
    ...filters.map((tool) =>
      good(
        'other rules',
        `${tool} has tables of its own: let it accept forwarded packets to the members of UDP and SCTP ports`,
      ),
    ),
    ...markFindings(chains, (table) => table.startsWith(OWN_TABLES)),
    ...(conntrack === '' ? [] : await flowFindings(netns, listeners, sources)),
    ...(await directFindings(netns, listeners)),
    ...(listeners.some(isInGatewayMode) ? strictFilters(await said('grep', ...READ_FILTERS)) : []),
  ];
}
