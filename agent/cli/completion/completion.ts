// `headgate completion bash|zsh|fish`: the script that a shell reads to complete commands, flags and names. The script asks
// `headgate complete` (complete.ts), so that all shells offer the same.

import { quote } from '../../base/quote.ts';
import type { Command } from '../command.ts';
import { usageError } from '../command-line.ts';

export const completion: Command = {
  name: 'completion',
  purpose: 'print the completion script of a shell',
  details: [
    'It completes commands, flags, fixed choices, and the names of load balancers of the running agent.',
  ],
  arguments: [{ name: 'bash|zsh|fish' }],
  flags: {},
  settings: 'none',
  exits: { 0: 'printed' },
  examples: [
    { line: 'source <(headgate completion bash)', doc: 'for this bash or zsh' },
    {
      line: 'headgate completion bash > ~/.local/share/bash-completion/completions/headgate',
      doc: 'for bash, from the next shell on',
    },
    { line: 'headgate completion zsh > ~/.zfunc/_headgate', doc: 'for zsh, if ~/.zfunc is in fpath' },
    { line: 'headgate completion fish > ~/.config/fish/completions/headgate.fish', doc: 'for fish' },
  ],
  run: ({ positionals: [shell = ''] }) => {
    if (!Object.hasOwn(completionScripts, shell))
      throw usageError(`Cannot complete in ${quote(shell)}: the shells are "bash", "zsh" and "fish"`);
    console.log(completionScripts[shell as Shell].trimEnd());
    return 0;
  },
};

type Shell = 'bash' | 'zsh' | 'fish';

/** Each offers file names if the command offers nothing. */
export const completionScripts: Readonly<Record<Shell, string>> = {
  bash: `# Completes headgate(8) in bash.
_headgate() {
  local line=\${COMP_LINE:0:COMP_POINT} words
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  mapfile -t COMPREPLY < <("\${words[0]/#\\~/$HOME}" complete "\${words[@]:1}" 2>/dev/null)
  # For bash a colon ends a word: what stands before it is already on the line.
  local current=\${words[-1]}
  if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
    COMPREPLY=("\${COMPREPLY[@]#"\${current%"\${current##*:}"}"}")
  fi
}
complete -o default -F _headgate headgate
`,
  zsh: `#compdef headgate
# Completes headgate(8) in zsh.
_headgate() {
  local -a found
  found=(\${(f)"$(\${~words[1]} complete "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found )); then compadd -a found; else _files; fi
}
if [[ $funcstack[1] == _headgate ]]; then _headgate; else compdef _headgate headgate; fi
`,
  fish: `# Completes headgate(8) in fish.
function __headgate_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l found ($words[1] complete $words[2..-1] 2>/dev/null)
  if count $found >/dev/null
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c headgate -f -a '(__headgate_complete)'
`,
};
