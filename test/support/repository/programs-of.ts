// Lists the programs that a file starts by name: in TypeScript those of calls that start one, of the shell texts in these calls
// and of requires(), in a shell script those of its commands. Pure: takes the file's path and text.

import { shellCommands } from './shell-commands.ts';

/** A literal is the first argument: `spawn('sh', …)`, `machine.run('systemctl', …)`. */
const FIRST =
  /(?<![\w$]|etwork\.|this\.)(?:spawn|spawnSync|execFile|execFileSync|run|runCommand|runProgram|try)\(\s*'([a-z][\w.+-]*)'\s*[,)]/g;
/** The first argument is a host: `network.run('a', 'nft', …)`, `inNamespace(name, 'sysctl', …)`. */
const SECOND =
  /(?:etwork\.(?:run|try|start)|inNamespace)\(\s*(?:'[^']*'|[\w.[\]?]+(?:\([^()]*\))?),\s*'([a-z][\w.+-]*)'/g;
/** Programs that start what follows their options, anywhere. */
const LAUNCHERS = /'(setpriv|unshare|nsenter|timeout|prlimit|chroot|chrt)'/g;
/** The programs in a call of requires(). */
const NEEDS = /(?:programs(?:: | = )\[|kubeNeeds\()([^\])]*)[\])]/g;
/** A text after `sh -c`, or the name of a constant of this file that has it. */
const SHELL_ARGUMENT =
  /'(?:\/bin\/)?(?:sh|bash)',\s*\[?\s*(?:'--norc',\s*)?'-[eux]*c',\s*(?:(`(?:\\.|[^`\\])*`)|'((?:\\.|[^'\\])*)'|([A-Za-z_]\w*))/g;
/** Commands of a document's reader. */
const READER = /reader\.(?:run|start)\(\s*(?:(`(?:\\.|[^`\\])*`)|'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)")/g;

/** Each once, sorted. */
export function programsOf(path: string, text: string): string[] {
  const found = path.endsWith('.ts') ? ofTypeScript(text) : shellCommands(text);
  return [...new Set(found)].sort();
}

function ofTypeScript(source: string): string[] {
  const text = source.replaceAll(/^\s*(\/\/|\*|\/\*).*$/gm, '');
  const named = [FIRST, SECOND, LAUNCHERS].flatMap((pattern) =>
    [...text.matchAll(pattern)].map(([, name = '']) => name),
  );
  const needed = [...text.matchAll(NEEDS)].flatMap(([, list = '']) =>
    [...list.matchAll(/'([\w.+-]+)'/g)].map(([, name = '']) => name),
  );
  const shell = [...text.matchAll(READER)]
    .map(([, template, single, double]) => template ?? single ?? double ?? '')
    .concat(
      [...text.matchAll(SHELL_ARGUMENT)].flatMap(([, template, single, name]) =>
        name === undefined ? [template ?? single ?? ''] : constantOf(text, name),
      ),
    );
  return [...named, ...needed, ...shell.map(plainText).flatMap(shellCommands)];
}

function constantOf(text: string, name: string): string[] {
  const [, template, single] =
    new RegExp(`const ${name} =\\s*(?:(\`(?:\\\\.|[^\`\\\\])*\`)|'((?:\\\\.|[^'\\\\])*)')`).exec(text) ?? [];
  return template === undefined && single === undefined ? [] : [template ?? single ?? ''];
}

/** A template's expressions become variables of the shell. */
function plainText(literal: string): string {
  return literal
    .replaceAll(/(?<!\\)\$\{[^}]*\}/g, '"$x"')
    .replaceAll(/^`|`$/g, '')
    .replaceAll(/\\([`$\\'"])/g, '$1')
    .replaceAll('\\n', '\n');
}
