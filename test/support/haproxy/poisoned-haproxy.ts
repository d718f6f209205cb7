// A script around the real HAProxy that refuses lines with certain words. It tests how the agent handles a refused
// configuration, although the agent renders none that a real HAProxy refuses.

import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { haproxyExecutable, isBehindScript } from './haproxy.ts';

export type Poison =
  /** `haproxy -c` and every start and reload fail, and the alert names the line. */
  | 'named'
  /** The same, but the alert names no line. */
  | 'silent'
  /** `haproxy -c` succeeds; every start and reload fails, and the alert names the line. */
  | 'late';

/** A reload can fail only if it executes the script again. */
export const poisons: readonly Poison[] = isBehindScript ? ['named', 'silent'] : ['named', 'silent', 'late'];

/**
 * Writes the script into `directory` and returns its path. The script refuses lines that match `words`, an extended
 * regular expression.
 */
export async function poisonedHaproxy(directory: string, kind: Poison, words: string): Promise<string> {
  const path = join(directory, 'poisoned-haproxy');
  await writeFile(
    path,
    `#!/bin/bash
# The real HAProxy reads a copy in which these lines are invalid, so its own alert names the line.
arguments=() checks=no
for word in "$@"; do
  [ "$word" = -c ] && checks=yes
  case $word in *.poisoned) word=\${word%.poisoned} ;; esac
  arguments+=("$word")
done
for at in "\${!arguments[@]}"; do
  [ "\${arguments[at]}" = -f ] && file=\${arguments[at + 1]} && where=$((at + 1))
done
if [ -n "\${file:-}" ] && grep -qE '${words}' "$file"; then
  if [ '${kind}' != silent ] && { [ '${kind}' = named ] || [ $checks = no ]; }; then
    sed -E 's/^.*(${words}).*$/    poison/' "$file" >"$file.poisoned"
    arguments[where]=$file.poisoned
  elif [ '${kind}' = silent ] && [ $checks = yes ]; then
    echo '[ALERT]    (1) : config : Fatal errors found in configuration.' >&2
    exit 1
  elif [ '${kind}' = silent ]; then
    { echo nonsense; cat "$file"; } >"$file.poisoned"
    arguments[where]=$file.poisoned
  fi
fi
exec -a "$0" '${haproxyExecutable}' "\${arguments[@]}"
`,
  );
  await chmod(path, 0o755);
  return path;
}
