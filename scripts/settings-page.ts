// docs/settings.md as one text, made from the table of settings. Pure.

import { defaultInWords, flagExample } from '../agent/settings/help.ts';
import { allSettings, groups, type Setting } from '../agent/settings/table.ts';

/** One sentence per line. */
export function settingsPage(): string {
  const lines = [
    '# Settings',
    '',
    '<!-- Written by scripts/write-settings-docs.ts from agent/settings/table.ts: change the table, then `make docs`. -->',
    '',
    'Every setting can be given in three places, in the order of precedence:',
    '',
    '1. a flag, `--drain-timeout 2m`;',
    '2. an environment variable, `HEADGATE_DRAIN_TIMEOUT=2m`, where an empty variable counts as absent;',
    '3. a key of the YAML file that `--config FILE` or `HEADGATE_CONFIG` names, `drainTimeout: 2m`.',
    '',
    '```yaml',
    'manifests: [/etc/headgate/manifests]',
    'listen: 127.0.0.1:9180',
    'drainTimeout: 2m',
    'defaults:',
    '  algorithm: least-connections',
    '```',
    '',
    'An unknown key, flag or `HEADGATE_` variable is an error, and so is an invalid value.',
    'All errors are listed together, each with its place, and the exit status is 2.',
    'A setting that [protects](security.md#what-protects) must have a value where it is named, also an empty variable is an error.',
    'Relative paths start from the working directory; those in the file start from the directory of the file.',
    'Turn a switch off with `--no-` before its name, or with `=false` after it.',
    'For a list or mapping (`...`), repeat the flag (`--manifests a --manifests b`) or use separators in flag or variable: `:` between paths (`HEADGATE_MANIFESTS=a:b`), `;` in mappings (`HEADGATE_DEFAULTS="algorithm=random;connection-limit=100"`), commas in all others; a comma in a URL separates only before `https://` or `http://`.',
    'On SIGHUP the agent reads the file again and logs the changes; a setting of which it says here that it needs a restart keeps its old value until then, and the log says so.',
  ];
  for (const group of groups) {
    lines.push('', `## ${group}`);
    for (const [name, setting] of allSettings()) {
      if (setting.group !== group) continue;
      lines.push('', `### \`${name}\``, '', ...setting.doc.split(/(?<=\.) /), '');
      lines.push(`- \`${flagExample(name, setting)}\`: ${setting.kind.allowed}`);
      lines.push(`- Default: ${defaultInWords(setting)}${changeNote(setting)}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

/** When a change takes effect, unless it is simply on SIGHUP. */
function changeNote(setting: Setting<unknown>): string {
  return setting.restart === undefined ? '' : `; ${changeInWords(setting).replace(/^A /, 'a ')}`;
}

/** When a change takes effect, in words. */
export function changeInWords({ restart }: Setting<unknown>): string {
  if (restart === true) return 'A change needs a restart';
  return `A change takes effect on SIGHUP${restart?.inWords ?? ''}`;
}
