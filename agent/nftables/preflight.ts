// Checks if this host can forward UDP and SCTP: programs, parameters of the kernel, other tools that filter. Reads only.

import { inNamespace } from '../host/namespace.ts';
import { runCommand } from '../host/run-command.ts';
import type { Family } from '../model/load-balancer.ts';
import { whyNotForwarding } from './forwarding.ts';

export interface KernelFinding {
  readonly what: string;
  readonly ok: boolean;
  /** The finding, and the remedy if it is a fault. */
  readonly detail: string;
}

const TIMEOUT_MS = 5_000;
/** Names of tables, and the tool that filters forwarded packets with them. */
const FILTERS: readonly (readonly [RegExp, string])[] = [
  [/^table inet firewalld$/m, 'firewalld'],
  [/^table (?:ip|inet) (?:docker-bridges|filter)$/m, 'Docker or iptables'],
  [/^table ip kube-proxy$/m, 'kube-proxy'],
];

/** `families`: of the ports that Services have for it; without any, what is missing is no fault. */
export async function kernelPreflight(
  { nft, netns }: { readonly nft: string; readonly netns: string },
  families: ReadonlySet<Family>,
): Promise<readonly KernelFinding[]> {
  const isNeeded = families.size > 0;
  const said = async (program: string, ...words: readonly string[]): Promise<string> => {
    const [outer, args] = inNamespace(netns, program, words);
    return runCommand(outer, args, { timeout: TIMEOUT_MS }).then(
      ({ exitCode, stdout }) => (exitCode === 0 ? stdout : ''),
      () => '',
    );
  };
  const judged = (what: string, found: string, why: string): KernelFinding => {
    if (found !== '') return { what, ok: true, detail: found };
    return {
      what,
      ok: !isNeeded,
      detail: `${why}${isNeeded ? '' : '; only UDP, SCTP and the kernel path need it'}`,
    };
  };
  const version = /v[\d.]+/.exec(await said(nft, '--version'))?.[0] ?? '';
  const conntrack = /v[\d.]+/.exec(await said('conntrack', '--version'))?.[0] ?? '';
  const whyNot = await whyNotForwarding(netns, isNeeded ? families : new Set(['v4']));
  const tables = await said(nft, 'list', 'tables');
  const filters = FILTERS.filter(([table]) => table.test(tables)).map(([, tool]) => tool);
  return [
    judged('nft', version, 'the program is missing: install nftables, or set "nft"'),
    judged(
      'conntrack',
      conntrack,
      'the program is missing, so that clients of UDP stay with members that are gone: install it',
    ),
    judged('forwarding', whyNot === '' ? 'on' : '', whyNot),
    ...filters.map((tool) => ({
      what: 'other rules',
      ok: true,
      detail: `${tool} has tables of its own: let it accept forwarded packets to the members of UDP and SCTP ports`,
    })),
  ];
}
