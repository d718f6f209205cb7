// A count with its noun: `1 member`, `2 members`, `2 GatewayClasses`. Pure.

/** `noun`: in the singular; one that ends with a single s, such as Endpoints, has no other plural. */
export function counted(count: number, noun: string): string {
  return `${count} ${count === 1 ? noun : pluralOf(noun)}`;
}

function pluralOf(noun: string): string {
  if (noun.endsWith('ss')) return `${noun}es`;
  if (noun.endsWith('s')) return noun;
  return /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}s`;
}
