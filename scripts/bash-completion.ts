// Bash completion for `headgate`: commands, flags, and the values of flags that are a choice. Pure.

import { usages } from '../agent/cli/usage.ts';
import { allSettings, flagOf } from '../agent/settings/table.ts';

export function bashCompletion(): string {
  const commands = [...usages.map(({ command }) => command.split(' ')[0]), 'help', 'version'];
  const flags = allSettings().flatMap(([name, { kind }]) =>
    kind.placeholder === '' ? [`--${flagOf(name)}`, `--no-${flagOf(name)}`] : [`--${flagOf(name)}`],
  );
  const choices = allSettings()
    .filter(([, { kind }]) => /^[a-z|]+\|[a-z|]+$/.test(kind.placeholder))
    .map(([name, { kind }]) => `    --${flagOf(name)}) words='${kind.placeholder.replaceAll('|', ' ')}' ;;`);
  return `# Completes the commands and flags of headgate(8).
_headgate() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} words
  COMPREPLY=()
  case $previous in
    headgate) words='${commands.join(' ')}' ;;
    maintenance) words='on off' ;;
${choices.join('\n')}
    *) words='--config --json ${flags.join(' ')}' ;;
  esac
  if [[ $previous == headgate || $previous == maintenance || $current == -* || $words != --* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  fi
}
complete -o default -F _headgate headgate
`;
}
