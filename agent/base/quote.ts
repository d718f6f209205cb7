// Shows a text that a user wrote inside a message, a log line or an Event. Pure.

const SHOWN = 60;

/**
 * The first 60 characters as a JSON string, with `…` where there were more. Whatever does not print (controls, line
 * separators, marks that turn the writing direction) is escaped, so that no value can forge a second line.
 */
export function quote(text: string): string {
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
  return JSON.stringify(shown).replaceAll(/(?! )[\p{C}\p{Z}]/gu, escapeUnits);
}

function escapeUnits(character: string): string {
  let escaped = '';
  for (let i = 0; i < character.length; i++) {
    escaped += `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`;
  }
  return escaped;
}
