// The settings in words: the flags of `--help`, and the words that the manual page and docs/settings.md share. Pure.

import { allSettings, flagOf, groups, type Setting } from './table.ts';

/** The flags of the settings in `--help`, ends with a newline. */
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
    'and a variable (HEADGATE_DRAIN_TIMEOUT). The flag has precedence, then the variable, then the file.',
    'A flag with ... takes several values: repeat it, or separate them as in its variable,',
    'PATH by a colon, NAME=VALUE by a semicolon, all others by a comma.',
  );
  return `${lines.join('\n')}\n`;
}

export function flagExample(name: string, { kind }: Setting<unknown>): string {
  if (kind.placeholder === '') return `--[no-]${flagOf(name)}`;
  return `--${flagOf(name)} ${kind.placeholder}${kind.separator === undefined ? '' : ' ...'}`;
}

/** The first sentence, and the one for a value of 0 or nothing. */
function summary(doc: string): string {
  const sentences = plain(seeing(doc, (page) => `docs/${page}`)).split(/(?<=\.) /);
  return sentences.filter((sentence, at) => at === 0 || /^(0|Empty): /.test(sentence)).join(' ');
}

/** Lines of at most 100 characters. */
export function wrapped(words: string, indent = '      '): string[] {
  return words.match(/\S.{0,92}\S(?= |$)|\S/g)?.map((line) => `${indent}${line}`) ?? [];
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

/** `see` and a link become `see` and where the reader finds the page. */
export function seeing(markdown: string, placeOf: (page: string) => string): string {
  return markdown.replaceAll(
    /\bsee \[[^\]]+\]\(([a-z-]+\.md)(#[a-z-]+)?\)/g,
    (_, page: string) => `see ${placeOf(page)}`,
  );
}

/** Removes the marks of Markdown; links become their text. */
export function plain(markdown: string): string {
  return markdown.replaceAll('`', '').replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1');
}
