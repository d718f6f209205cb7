// Finds chains of other programs that packets pass between two of the agent's own, while these have noted a member in the mark of
// the packet. Pure.

import { type Finding, good } from '../host/finding.ts';

/** Priorities of the chains that set the mark and read it: `dstnat - 4` and `dstnat` (templates/nftables/table.mustache). */
const [SETS_MARK, READS_MARK] = [-104, -100];
const HOOKS = ['prerouting', 'output'];

/** `text`: what `nft -y list chains` says; `isOwn`: whether a table is the agent's. */
export function markFindings(text: string, isOwn: (table: string) => boolean): readonly Finding[] {
  const findings: Finding[] = [];
  let [table, chain] = ['', ''];
  for (const line of text.split('\n')) {
    table = /^table \S+ (\S+) \{$/.exec(line)?.[1] ?? table;
    chain = /^\tchain (\S+) \{$/.exec(line)?.[1] ?? chain;
    const [, hook = '', priority] =
      /^\t\ttype \S+ hook (\S+)(?: device \S+)? priority (-?\d+);/.exec(line) ?? [];
    const at = Number(priority);
    if (isOwn(table) || !HOOKS.includes(hook) || !(at > SETS_MARK && at < READS_MARK)) continue;
    findings.push(
      good(
        'other rules',
        `chain ${chain} of table ${table} is between the agent's own chains (hook ${hook}, priority ${at}): it must not change the marks of packets to VIPs, or session affinity chooses no member`,
      ),
    );
  }
  return findings;
}
