// Cuts a PEM text (RFC 7468) into its blocks. Text around the blocks is ignored, as OpenSSL does. Pure.

export interface PemBlock {
  /** `CERTIFICATE`, `PRIVATE KEY`. */
  readonly label: string;
  /** From BEGIN to END, with a line feed at the end. */
  readonly text: string;
}

/** Takes time proportional to the text. */
export function pemBlocks(text: string): readonly PemBlock[] {
  const blocks: PemBlock[] = [];
  let label: string | undefined;
  let lines: string[] = [];
  for (const raw of text.split('\n')) {
    const line = raw.trim();
    const [, edge, name] = /^-----(BEGIN|END) ([A-Z0-9 ]{1,40})-----$/.exec(line) ?? [];
    if (edge === 'BEGIN') {
      label = name;
      lines = [];
    }
    if (label !== undefined && line !== '') lines.push(line);
    if (edge !== 'END' || label === undefined) continue;
    if (name === label) blocks.push({ label, text: `${lines.join('\n')}\n` });
    label = undefined;
  }
  return blocks;
}
