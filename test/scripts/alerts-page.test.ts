import test from 'ava';
import { alertsPage } from '../../scripts/alerts-page.ts';

test('alertsPage() writes severity, summary and description of each alert, without the template of Prometheus', (t) => {
  const mark = '<!-- Written by scripts/write-alert-docs.ts from deploy/prometheus/headgate.rules.yaml. -->';
  const end = '<!-- The end of what is written. -->';
  const annotations = {
    summary:
      '{{ with $labels.owner }}{{ . }} {{ end }}{{ $labels.service }} uses {{ $value | humanizePercentage }}',
    description: '{{ if lt $value 0.0 }}It has expired{{ else }}It expires{{ end }}.',
  };
  const rule = { alert: 'HeadgateFull', expr: 'up', labels: { severity: 'warning' }, annotations };
  t.is(
    alertsPage(`Before.\n${mark}\nold\n${end}\nAfter.\n`, [rule]),
    `Before.\n${mark}\n\n| alert | severity | what it says |\n|---|---|---|\n| [\`HeadgateFull\`](#headgatefull) | warning | \`service\` uses \`N\`. It expires. |\n\n${end}\nAfter.\n`,
  );
});
