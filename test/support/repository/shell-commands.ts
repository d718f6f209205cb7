// Lists the programs that a text of shell commands starts, as sh would find them on its PATH: without builtins, and without
// functions of the text. Knows quotes, substitutions, here-documents and `case`. Pure.

const BUILTINS = new Set(
  `. : [ alias bg break cd command continue echo eval exec exit export false fg getopts hash jobs kill local printf pwd read
  readonly return set shift source test times trap true type ulimit umask unset unalias wait declare mapfile complete
  compgen compopt`.split(/\s+/),
);
/** The next word is a command too. */
const BEFORE_COMMANDS = new Set(
  'if then elif else while until do ! { } fi done esac time exec command nice sudo env nohup eval'.split(' '),
);
const NAME = /^[a-z][\w.+-]*$/;

/** In the order of the text, each once. A word that the shell makes from a variable is not listed. */
export function shellCommands(text: string): string[] {
  const found = new Set<string>();
  const functions = new Set([...text.matchAll(/^\s*([\w-]+) ?\(\)/gm)].map(([, name = '']) => name));
  read(text, 0, '', found);
  return [...found].filter((name) => !BUILTINS.has(name) && !functions.has(name) && NAME.test(name));
}

/** Reads to `end` (a bracket, a quote, or the end of the text), and returns the place after it. */
function read(text: string, start: number, end: string, found: Set<string>): number {
  let at = start;
  let expectsCommand = true;
  let word = '';
  let isLiteral = true;
  let documents: string[] = [];
  /** For each open `case`: whether a pattern comes next. */
  const cases: boolean[] = [];

  const endWord = (): void => {
    if (word === '' && isLiteral) return;
    const inCase = cases.length > 0;
    if (word === 'case' && expectsCommand) {
      cases.push(true);
      expectsCommand = false;
    } else if (word === 'esac' && inCase) {
      cases.pop();
      expectsCommand = true;
    } else if (inCase && cases.at(-1) === true) expectsCommand = false;
    else if (expectsCommand && (word === 'for' || word === 'select' || word === 'function'))
      expectsCommand = false;
    else if (expectsCommand) {
      const isAssignment = /^\w+\+?=/.test(word);
      const isOption = word.startsWith('-');
      if (!isAssignment && !isOption && isLiteral && !BEFORE_COMMANDS.has(word)) found.add(word);
      if (!isAssignment && !isOption) expectsCommand = BEFORE_COMMANDS.has(word) && isLiteral;
      if (['sudo', 'nice', 'env', 'nohup'].includes(word)) found.add(word);
    }
    word = '';
    isLiteral = true;
  };
  const newCommand = (): void => {
    endWord();
    expectsCommand = cases.at(-1) !== true;
  };

  while (at < text.length) {
    const char = text[at] as string;
    if (char === end && (end !== ')' || cases.length === 0)) {
      endWord();
      return at + 1;
    }
    if (char === '\\') {
      if (text[at + 1] !== '\n') word += text[at + 1] ?? '';
      at += 2;
    } else if (char === '#' && word === '' && isLiteral) {
      while (at < text.length && text[at] !== '\n') at++;
    } else if (char === "'") {
      const close = text.indexOf("'", at + 1);
      word += text.slice(at + 1, close < 0 ? text.length : close);
      if (/\s/.test(word)) isLiteral = false;
      at = close < 0 ? text.length : close + 1;
    } else if (char === '"') {
      isLiteral = false;
      at = quoted(text, at + 1, found);
    } else if (char === '`') {
      isLiteral = false;
      at = read(text, at + 1, '`', found);
    } else if (text.startsWith('$((', at)) {
      isLiteral = false;
      at = afterBrackets(text, at + 1, '(', ')');
    } else if (text.startsWith('$(', at) || text.startsWith('<(', at) || text.startsWith('>(', at)) {
      isLiteral = false;
      at = read(text, at + 2, ')', found);
    } else if (text.startsWith('${', at)) {
      isLiteral = false;
      at = afterBrackets(text, at + 1, '{', '}');
    } else if (char === '$') {
      isLiteral = false;
      at++;
    } else if (text.startsWith('<<', at) && text[at + 2] !== '<') {
      const [all = '<<', , name = ''] = /^<<-?\s*(['"]?)(\w+)\1/.exec(text.slice(at)) ?? [];
      documents.push(name);
      at += all.length;
    } else if (char === '<' || char === '>') {
      // The target of a redirection is no command; the number before it is no word.
      if (/^\d*$/.test(word)) word = '';
      endWord();
      const [all = char] = /^[<>]+[&|]?\s*(?:&?[-\w./]+|(?=["$]))/.exec(text.slice(at)) ?? [];
      at += all.length;
      if (text[at] === '"') at = quoted(text, at + 1, found);
      else while (at < text.length && /[^\s;&|()]/.test(text[at] as string)) at++;
    } else if (char === '\n') {
      newCommand();
      at++;
      for (const name of documents) {
        const close = new RegExp(`^\\t*${name}$`, 'm').exec(text.slice(at));
        at += close === null ? text.length : close.index + close[0].length;
      }
      documents = [];
    } else if (char === ';' || char === '&' || char === '|') {
      if (text.startsWith(';;', at) && cases.length > 0) {
        endWord();
        cases[cases.length - 1] = true;
        at++;
      }
      newCommand();
      at++;
    } else if (char === ')' && cases.at(-1) === true) {
      endWord();
      cases[cases.length - 1] = false;
      expectsCommand = true;
      at++;
    } else if (char === '(' || char === ')') {
      newCommand();
      at++;
    } else if (/\s/.test(char)) {
      endWord();
      at++;
    } else {
      word += char;
      at++;
    }
  }
  endWord();
  return at;
}

/** Reads a text in double quotes, in which only substitutions are commands. */
function quoted(text: string, start: number, found: Set<string>): number {
  let at = start;
  while (at < text.length && text[at] !== '"') {
    if (text[at] === '\\') at += 2;
    else if (text.startsWith('$((', at)) at = afterBrackets(text, at + 1, '(', ')');
    else if (text.startsWith('$(', at)) at = read(text, at + 2, ')', found);
    else if (text.startsWith('${', at)) at = afterBrackets(text, at + 1, '{', '}');
    else if (text[at] === '`') at = read(text, at + 1, '`', found);
    else at++;
  }
  return at + 1;
}

/** `at` is the place of the first bracket. */
function afterBrackets(text: string, at: number, open: string, close: string): number {
  let depth = 0;
  for (let place = at; place < text.length; place++) {
    if (text[place] === open) depth++;
    else if (text[place] === close && --depth === 0) return place + 1;
  }
  return text.length;
}
