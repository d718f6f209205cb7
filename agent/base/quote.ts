// Quotes a user's text inside a message, a log line or an Event. Pure.

const MAX_CHARACTERS = 60;

/**
 * The first 60 characters as a JSON string, with `…` if there are more. Escapes what does not print (controls, line
 * separators, marks of writing direction), so that no value can forge a second line.
 */
export function quote(text: string): string {
  const shown = text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text;
  return printable(JSON.stringify(shown));
}

/** The whole text, such as a path, without quotes; what does not print is escaped as in quote(). */
export function printable(text: string): string {
  return text.replaceAll(/(?! )[\p{C}\p{Z}]/gu, escapeUnits);
}

function escapeUnits(character: string): string {
  let escaped = '';
  for (let i = 0; i < character.length; i++) {
    escaped += `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`;
  }
  return escaped;
}
