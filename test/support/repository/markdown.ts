// Reads links, headings, code and first cells of tables from Markdown, for the tests of documents. Pure.

/** Targets of inline links and images, without those inside code. */
export function linksOf(markdown: string): string[] {
  const prose = withoutCode(markdown);
  return [...prose.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g)].map(([, target = '']) => target);
}

/** The anchors of headings on GitHub. */
export function anchorsOf(markdown: string): string[] {
  const anchors: string[] = [];
  for (const [, heading = ''] of withoutFences(markdown).matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)) {
    const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '');
    const anchor = text
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(/\s/g, '-');
    const before = anchors.filter((other) => other === anchor || other.startsWith(`${anchor}-`)).length;
    anchors.push(anchors.includes(anchor) ? `${anchor}-${before}` : anchor);
  }
  return anchors;
}

/** The code in the first cell of each row of the tables. */
export function firstCells(markdown: string): string[] {
  return [...markdown.matchAll(/^\|\s*`([^`]+)`\s*\|/gm)].map(([, cell = '']) => cell);
}

/** The texts of the fenced blocks of a language, without the indentation of a list. */
export function blocksOf(markdown: string, language: string): string[] {
  const fences = markdown.matchAll(new RegExp(`^( *)\`\`\`${language}\\n([\\s\\S]*?)^\\1\`\`\`$`, 'gm'));
  return [...fences].map(([, indentation = '', text = '']) =>
    text.replaceAll(new RegExp(`^${indentation}`, 'gm'), '').trimEnd(),
  );
}

function withoutCode(markdown: string): string {
  return withoutFences(markdown).replaceAll(/(`+)[^`][\s\S]*?\1/g, '');
}

function withoutFences(markdown: string): string {
  return markdown.replaceAll(/^(```+|~~~+)[\s\S]*?^\1\s*$/gm, '');
}
