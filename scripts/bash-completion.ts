// The bash completion for `headgate`: commands, their flags, the flags of the settings, and the values of flags with a
// fixed choice. In all other places bash completes file names. Pure.

import { commands, nameOf } from '../agent/cli/cli.ts';
import { allSettings, flagOf } from '../agent/settings/table.ts';

export function bashCompletion(): string {
  const names = [...commands.map(({ usage }) => nameOf(usage)), 'help', 'version'];
  return `# Completes the commands and flags of headgate(8).
_headgate() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} words=''
  local settings='${settingsFlags().join(' ')}'
  COMPREPLY=()
  case $COMP_CWORD:$previous:$current in
    1:*) words='${names.join(' ')}' ;;
${choices().join('\n')}
    *:*:-*) case \${COMP_WORDS[1]} in
${commands.map(({ usage }) => `      ${nameOf(usage)}) words="${flagsOf(usage).join(' ')}" ;;`).join('\n')}
    esac ;;
    2:maintenance:*) words='on off' ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _headgate headgate
`;
}

/** The command's own flags, and those of all settings, or those that locate the running agent. */
function flagsOf(usage: string): readonly string[] {
  const own = usage.match(/--[a-z]+/g) ?? [];
  return [...own, ...(usage.includes('[FLAGS]') ? ['--config $settings'] : ['--config', '--runtime-dir'])];
}

function settingsFlags(): readonly string[] {
  return allSettings().flatMap(([name, { kind }]) =>
    kind.placeholder === '' ? [`--${flagOf(name)}`, `--no-${flagOf(name)}`] : [`--${flagOf(name)}`],
  );
}

function choices(): readonly string[] {
  return allSettings()
    .filter(([, { kind }]) => /^[a-z|]+\|[a-z|]+$/.test(kind.placeholder))
    .map(
      ([name, { kind }]) => `    *:--${flagOf(name)}:*) words='${kind.placeholder.replaceAll('|', ' ')}' ;;`,
    );
}
