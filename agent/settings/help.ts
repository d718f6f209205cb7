// The settings for people: the flags in `--help`, and docs/settings.md. Pure.

import { allSettings, changeInWords, flagOf, groups, type Setting, variableOf } from './table.ts';

/** The part of `--help` about the flags that are settings, ends with a newline. */
export function settingsHelp(): string {
  const lines: string[] = [];
  for (const group of groups) {
    lines.push(`${group}:`);
    for (const [name, setting] of allSettings()) {
      if (setting.group !== group) continue;
      lines.push(
        `  ${flagExample(name, setting)}`,
        ...wrapped(`${summary(setting.doc)}${defaultNote(setting)}`),
      );
    }
    lines.push('');
  }
  lines.push(
    'Each flag is also a key of the file that --config FILE names (--drain-timeout is drainTimeout)',
    'and a variable (HEADGATE_DRAIN_TIMEOUT). Flags come before variables, variables before the file.',
  );
  return `${lines.join('\n')}\n`;
}

/** docs/settings.md; one sentence per line. */
export function settingsDocument(): string {
  const lines = [
    '# Settings',
    '',
    '<!-- Written by scripts/write-settings-docs.ts from agent/settings/table.ts: change the table, then `make docs`. -->',
    '',
    'Every setting can be given in three places, the first of which has precedence:',
    '',
    '1. a flag, `--drain-timeout 2m`;',
    '2. an environment variable, `HEADGATE_DRAIN_TIMEOUT=2m`, where an empty one counts as absent;',
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
    'An unknown key, flag or `HEADGATE_` variable is an error, and so is a value that is not allowed.',
    'All errors are listed at once, each with its place, and the exit status is 2.',
    'Relative paths start from the working directory, or from the directory of the file they are written in.',
    'A switch is turned off with `--no-` before its name, or with `=false` after it.',
    'A list or mapping is given as a flag several times (`--manifests a --manifests b`), or as a variable with separators (`HEADGATE_MANIFESTS=a:b`, `HEADGATE_DEFAULTS="algorithm=random;connection-limit=100"`).',
    'On SIGHUP the agent reads the file again and logs what changed; where a restart is needed, it says so and goes on with the old value.',
  ];
  for (const group of groups) {
    lines.push('', `## ${group}`);
    for (const [name, setting] of allSettings()) {
      if (setting.group !== group) continue;
      lines.push('', `### \`${name}\``, '', ...setting.doc.split(/(?<=\.) /), '');
      lines.push(`- Flag \`${flagExample(name, setting)}\`, variable \`${variableOf(name)}\``);
      lines.push(`- Allowed: ${setting.kind.allowed}`);
      lines.push(`- Default: ${defaultInWords(setting)}`);
      lines.push(`- ${changeInWords(setting)}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

export function flagExample(name: string, { kind }: Setting<unknown>): string {
  if (kind.placeholder === '') return `--[no-]${flagOf(name)}`;
  return `--${flagOf(name)} ${kind.placeholder}${kind.separator === undefined ? '' : ' ...'}`;
}

/** The first sentence, and what a value that is none means. */
function summary(doc: string): string {
  const sentences = plain(doc).split(/(?<=\.) /);
  return sentences.filter((sentence, at) => at === 0 || /^(0|Empty): /.test(sentence)).join(' ');
}

/** Lines of at most 100 characters. */
function wrapped(words: string): string[] {
  return words.match(/\S.{0,92}\S(?= |$)|\S/g)?.map((line) => `      ${line}`) ?? [];
}

/** In Markdown. */
export function defaultInWords(setting: Setting<unknown>): string {
  if (setting.defaultInWords !== undefined) return setting.defaultInWords;
  const reading = setting.kind.read(setting.default, '/');
  const written = 'value' in reading ? setting.kind.write(reading.value) : '';
  return written === '' ? 'none' : `\`${written}\``;
}

function defaultNote(setting: Setting<unknown>): string {
  const words = plain(defaultInWords(setting));
  return words === 'none' ? '' : ` (default: ${words})`;
}

/** Without Markdown's marks, and links as their text. */
export function plain(markdown: string): string {
  return markdown.replaceAll('`', '').replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1');
}
