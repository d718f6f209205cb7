// Removes from a pushed text what this HAProxy cannot have, as Octavia's own agent does. Pure.

/** `group`: the agent gives HAProxy its group; `http-use-htx`: old controllers write it, HAProxy refuses it since 2.6. */
const UNWANTED = /^[ \t]+(?:group[ \t].*|(?:no )?option http-use-htx[ \t]*)(?:\n|$)/gm;

export function runnable(text: string): string {
  return text.replaceAll(UNWANTED, '');
}
