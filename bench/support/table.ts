// Formats rows as a Markdown table. Pure.

import type { Row } from './row.ts';

export function table(rows: readonly Row[]): string {
  const cells = rows.map((each) => [
    `\`${each.name}\``,
    `${each.value} ${each.unit}`,
    each.target,
    each.met ? 'met' : '**missed**',
    `${each.reference.name}: ${each.reference.value}`,
    each.ratio === null ? '–' : String(each.ratio),
    [
      ...Object.entries(each.details).map(([name, value]) => `${name} ${value}`),
      ...each.others.map(({ name, value }) => `${name}: ${value}`),
    ].join('; '),
  ]);
  const head = ['row', 'value', 'target', '', 'reference', 'ratio', 'more'];
  const lines = [head, head.map(() => '---'), ...cells].map((line) => `| ${line.join(' | ')} |`);
  return `${lines.join('\n')}\n`;
}
