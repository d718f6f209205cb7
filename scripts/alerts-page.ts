// The table of docs/operations.md about the alerts, made from the rules: severity, and what an alert says. Pure.

import type { AlertRule } from '../test/support/report/rules.ts';

/** The lines between which the table stands. */
const BEGINNING =
  '<!-- Written by scripts/write-alert-docs.ts from deploy/prometheus/headgate.rules.yaml. -->';
const END = '<!-- The end of what is written. -->';

/** `page`: the document as it is. */
export function alertsPage(page: string, rules: readonly AlertRule[]): string {
  const [before = '', rest = ''] = page.split(BEGINNING);
  const at = rest.indexOf(END);
  const rows = rules.map(({ alert, labels, annotations: { summary = '', description = '' } }) => {
    const link = `[\`${alert}\`](#${alert.toLowerCase()})`;
    return `| ${link} | ${labels.severity} | ${plain(summary)}. ${plain(description)} |`;
  });
  const table = `| alert | severity | what it says |\n|---|---|---|\n${rows.join('\n')}`;
  return `${before}${BEGINNING}\n\n${table}\n\n${rest.slice(at)}`;
}

/** Without Prometheus' template: a label has its name, a value is `N`, and what stands only sometimes is left out. */
function plain(text: string): string {
  return text
    .replaceAll(/\{\{ if [^}]*\}\}.*?\{\{ else \}\}(.*?)\{\{ end \}\}/g, '$1')
    .replaceAll(/\{\{ with [^}]*\}\}.*?\{\{ \. \}\}.*?\{\{ end \}\}/g, '')
    .replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, '`$1`')
    .replaceAll(/\{\{ \$value[^}]*\}\}/g, '`N`');
}
